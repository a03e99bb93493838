"""Random numbers that are a function of where and when they are drawn: those of Philox (`ops.training.philox`)."""

from functools import partial
from typing import Any

import numpy as np

from ops.common.apply import V, apply1
from ops.common.thunks import in_turn
from ops.common.widened import WIDE
from ops.schema.attributes import Attribute, element_type, integer, integers
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
)
from ops.tensor.dims import Dim
from ops.tensor.errors import DtypeError
from ops.tensor.limits import constant
from ops.tensor.spec import TensorSpec
from ops.training.philox import DRAWN, check_drawn, philox_specs, philox_steps, words_of

_BITS = {"float32": 24, "float64": 32}
"""Random bits of a number: as many of the 32 as it holds."""


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (step,) = inputs
    if attrs["dtype"] not in WIDE:
        raise DtypeError(f"gives float32 or float64, not {attrs['dtype']}")
    check_drawn(step, attrs["seed"])
    return (TensorSpec(attrs["shape"], attrs["dtype"]),)


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of random words, the generator's temporaries, and the step."""
    words = words_of(signature.y.size)
    return words, *philox_specs(words.shape), DRAWN.with_shape((1,))


def _bind(call: Binding) -> Thunk:
    words, *state, when = call.temporaries
    step, y = (a.reshape(-1) for a in (call.x, call.y))
    bits = _BITS[y.dtype.name]
    surplus, unit = np.asarray(32 - bits, words.dtype), constant(2.0**-bits, y.dtype)
    steps: list[Thunk] = [partial(np.copyto, when, step, casting="unsafe")]
    for start in range(0, y.size, words.size):
        out = y[start : start + words.size]
        drawn = words.reshape(-1)[: out.size]
        steps += philox_steps(start // DRAWN.size, call.attrs["seed"], words, state, when)
        steps.append(partial(np.right_shift, drawn, surplus, drawn))
        steps.append(partial(np.copyto, out, drawn, casting="unsafe"))
        steps.append(partial(np.multiply, out, unit, out))
    return in_turn(*steps)


def _cost(signature: Signature) -> Cost:
    return Cost(30 * signature.y.size, signature.y.nbytes)


RANDOM_UNIFORM = OpSchema(
    name="random_uniform",
    summary="Numbers in [0, 1): as place, `step` (a number) and `seed` say.",
    infer=_infer,
    kernels=(Kernel("passes", _bind, _temporaries, contiguous=all_contiguous),),
    arity=(1, 1),
    attributes=(
        Attribute("shape", integers),
        Attribute("seed", integer, 0),
        Attribute("dtype", element_type, np.dtype("float32")),
    ),
    cost=_cost,
)
OPS = (RANDOM_UNIFORM,)


def random_uniform(step: V, shape: tuple[int | Dim, ...], *, seed: int, dtype: Any = "float32") -> V:
    """Returns numbers in [0, 1) of this shape, each a function of `seed`, of `step` (one int64) and of its place.

    The same step gives the same numbers: let it be an input, or a parameter that is counted up, as for
    `dropout_training`.
    """
    return apply1(RANDOM_UNIFORM, step, shape=tuple(shape), seed=seed, dtype=dtype)
