"""What a fused convolution or product does to its sums while they are near: adds a tensor, applies an activation."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ops.schema.attributes import Attribute, number, one_of
from ops.schema.schema import Attrs, Signature, Thunk
from ops.tensor.errors import AttributeValueError
from ops.tensor.limits import constant
from ops.tensor.spec import Array

BIAS, RESIDUAL = 2, 3
"""Positions of the optional inputs: the bias, and the tensor that is added."""
NONE, CLIP, LEAK = "none", "clip", "leaky_relu"
GELU_ERF, GELU_TANH, SILU = "gelu_erf", "gelu_tanh", "silu"
FINISH_ATTRIBUTES = (
    Attribute("activation", one_of(NONE, CLIP, LEAK), NONE),
    Attribute("low", number, -math.inf),
    Attribute("high", number, math.inf),
    Attribute("slope", number, 1.0),
)
"""clip: min(max(x, low), high), which with low 0 is ReLU; leaky_relu: x where x > 0, else slope * x."""


def require_finish(attrs: Attrs) -> None:
    """Raises AttributeValueError for numbers that the activation does not have."""
    defaults = {"low": -math.inf, "high": math.inf, "slope": 1.0}
    idle = {NONE: ("low", "high", "slope"), CLIP: ("slope",), LEAK: ("low", "high")}[attrs["activation"]]
    if any(attrs[name] != defaults[name] for name in idle):
        raise AttributeValueError(f"activation {attrs['activation']!r} has no {' and no '.join(idle)}")


def needs_sums(signature: Signature) -> bool:
    """Returns whether sums of a numpy kernel need a scratch array until y may be written."""
    return len(signature.inputs) > RESIDUAL or signature.attrs["activation"] == LEAK


def limits(attrs: Attrs) -> tuple[float, ...]:
    """Returns the activation in numbers: none, (slope,), or (low, high)."""
    if attrs["activation"] == NONE:
        return ()
    return (attrs["slope"],) if attrs["activation"] == LEAK else (attrs["low"], attrs["high"])


def hold(y: Array, attrs: Attrs) -> Iterator[Thunk]:
    """Yields steps that hold y between the bounds of the activation, where it has any."""
    if attrs["activation"] == CLIP:
        yield partial(y.clip, constant(attrs["low"], y.dtype), constant(attrs["high"], y.dtype), y)


def finish(sums: Array, y: Array, bias: Array | None, residual: Array | None, attrs: Attrs) -> Iterator[Thunk]:
    """Yields steps that write y out of `sums`, which they use up; `y` may be the very residual."""
    if bias is not None:
        yield partial(np.add, sums, bias, sums)
    if residual is not None:
        yield partial(np.add, sums, residual, sums)
    if attrs["activation"] == LEAK:
        yield from _leak(sums, y, attrs["slope"])
    else:
        yield from hold(sums, attrs)
        yield partial(np.copyto, y, sums)


def _leak(sums: Array, y: Array, slope: float) -> Iterator[Thunk]:
    zero = constant(0, y.dtype)
    yield partial(np.minimum, sums, zero, out=y)
    yield partial(np.multiply, y, constant(slope, y.dtype), y)
    yield partial(np.maximum, sums, zero, out=sums)
    yield partial(np.add, sums, y, y)
