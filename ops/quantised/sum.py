"""Sums and means of quantised values. Inputs and outputs have different scales, so the sums are computed in float32.

`a_factor` is a_scale / y_scale.
"""

from collections.abc import Iterator
from functools import partial
from math import inf

import numpy as np
from attrs import frozen

from allocator.machine_code.door import address
from ops.common.costs import flops_per_element, flops_per_input_element
from ops.common.elementwise import require_dtype
from ops.common.thunks import in_turn
from ops.native.call import native_call
from ops.quantised.args import ADD_ARGS
from ops.quantised.params import BYTES, PIECE, SINGLE, ends, pieces
from ops.schema.attributes import Attribute, element_type, integer, integers, number
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, overwrites_from, unless
from ops.schema.workspace import prefix
from ops.tensor.errors import AttributeValueError
from ops.tensor.limits import constant
from ops.tensor.spec import Array, TensorSpec, broadcast_shapes, normalize_axes
from ops.windows.pixels import dense_pixels, pitch

QUANTISED_ATTRIBUTES = (
    Attribute("y_zero", integer, 0),
    Attribute("to", element_type, np.dtype("uint8")),
    Attribute("low", number, -inf),
    Attribute("high", number, inf),
)
"""Zero point and element type of y, and the bounds of its values."""
_INT8, _INT32, _SHIFT = np.dtype("int8"), np.dtype("int32"), 128


def check_quantised(attrs: Attrs) -> None:
    """Raises AttributeValueError where zero point or bounds do not fit the element type."""
    if attrs["to"] not in BYTES:
        raise AttributeValueError(f"gives int8 or uint8, not {attrs['to']}")
    least, most = ends(attrs["to"])
    if not least <= attrs["y_zero"] <= most:
        raise AttributeValueError(f"the zero point {attrs['y_zero']} does not fit {attrs['to']}")
    if not bounds(attrs)[0] <= bounds(attrs)[1]:
        raise AttributeValueError(f"no {attrs['to']} is between {attrs['low']} and {attrs['high']}")


def bounds(attrs: Attrs) -> tuple[float, float]:
    """Returns the least and the greatest value of y."""
    least, most = ends(attrs["to"])
    return max(attrs["low"], least), min(attrs["high"], most)


def round_to_quantised(real: Array, zero: float, limits: tuple[float, float]) -> Iterator[Thunk]:
    """Yields the steps to real = round(real) + zero, clipped to limits, in place; NaN becomes the lower limit."""
    least, most = (constant(n, SINGLE) for n in limits)
    yield partial(np.rint, real, real)
    yield partial(np.add, real, constant(zero, SINGLE), real)
    yield partial(np.fmax, real, least, real)
    yield partial(np.fmin, real, most, real)


@frozen
class Addend:
    """Quantised values that are added: their zero point, and their scale divided by that of y."""

    zero: int
    factor: float

    def scaled(self, values: Array, real: Array) -> Iterator[Thunk]:
        """Yields the steps to real = (values - zero) * factor; `values` may be `real` itself."""
        if values is not real:
            yield partial(np.copyto, real, values, casting="unsafe")
        yield partial(np.subtract, real, constant(self.zero, SINGLE), real)
        yield partial(np.multiply, real, constant(self.factor, SINGLE), real)


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    for spec in inputs:
        require_dtype(spec, BYTES)
    check_quantised(attrs)
    return (TensorSpec(broadcast_shapes(*(s.shape for s in inputs)), attrs["to"]),)


def _scratch_specs(signature: Signature) -> tuple[TensorSpec, TensorSpec]:
    piece = TensorSpec((min(PIECE, signature.y.size),), SINGLE)
    return piece, piece


def _bind(call: Binding) -> Thunk:
    first, second = call.temporaries
    attrs, steps = call.attrs, list[Thunk]()
    a, b = (Addend(attrs[f"{n}_zero"], attrs[f"{n}_factor"]) for n in "ab")
    flat = all(v.flags.c_contiguous and v.shape == call.y.shape for v in (*call.inputs, call.y))
    arrays = [v.reshape(-1) if flat else v for v in (call.y, *call.inputs)]
    for y, left, right in pieces(*arrays):
        sums, more = prefix(first, y.shape), prefix(second, y.shape)
        steps += (*a.scaled(left, sums), *b.scaled(right, more), partial(np.add, sums, more, sums))
        steps += round_to_quantised(sums, attrs["y_zero"], bounds(attrs))
        steps.append(partial(np.copyto, y, sums, casting="unsafe"))
    return in_turn(*steps)


def _supports_compiled(signature: Signature) -> bool:
    a, b = signature.inputs
    return a.shape == b.shape and a.size > 0


_not_compiled = unless(_supports_compiled, "inputs of different shapes, or without elements")


def _bind_compiled(call: Binding) -> Thunk:
    (a, b), y, attrs = call.inputs, call.y, call.attrs
    arrays = (a, b, y)
    flat = all(v.flags.c_contiguous for v in arrays)
    length = y.size if flat else y.shape[-1]
    flips = [_SHIFT if v.dtype == _INT8 else 0 for v in (a, b)]
    low, high = bounds(attrs)
    return native_call(
        address("ops.quantised.elementwise_code", "add"),
        ADD_ARGS,
        a=a,
        b=b,
        y=y,
        lines=y.size // length,
        length=length,
        **{f"{name}_hop": 0 if flat else pitch(v) for name, v in zip("aby", arrays, strict=True)},
        **{f"{name}_flip": flip for name, flip in zip("ab", flips, strict=True)},
        a_zero=float(attrs["a_zero"] + flips[0]),
        a_factor=attrs["a_factor"],
        b_zero=float(attrs["b_zero"] + flips[1]),
        b_factor=attrs["b_factor"],
        zero=float(attrs["y_zero"]),
        low=low,
        high=high,
    )


COMPILED_ADD = Kernel(
    "native",
    _bind_compiled,
    reads=dense_pixels,
    unsupported=_not_compiled,
    writes=dense_pixels,
    backend=NUMBA,
)
"""Two tensors of one shape."""
QUANTISED_ADD = OpSchema(
    name="quantised_add",
    summary="round((a - a_zero) * a_factor + (b - b_zero) * b_factor) + y_zero, clipped to low and high.",
    infer=_infer,
    kernels=(COMPILED_ADD, Kernel("numpy", _bind, _scratch_specs)),
    arity=(2, 2),
    attributes=(
        *(Attribute(f"{n}_zero", integer, 0) for n in "ab"),
        *(Attribute(f"{n}_factor", number) for n in "ab"),
        *QUANTISED_ATTRIBUTES,
    ),
    overwrites=overwrites_from(0),
    cost=flops_per_element(6),
    elementwise=True,
)


def _infer_mean(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_dtype(x, BYTES)
    check_quantised(attrs)
    axes = normalize_axes(attrs["axes"], x.ndim)
    kept = (1 if i in axes else n for i, n in enumerate(x.shape))
    return (TensorSpec(tuple(kept), attrs["to"]),)


def _mean_scratch(signature: Signature) -> tuple[TensorSpec, TensorSpec]:
    return signature.y.with_dtype(_INT32), signature.y.with_dtype(SINGLE)


def _bind_mean(call: Binding) -> Thunk:
    sums, real = call.temporaries
    attrs, axes = call.attrs, normalize_axes(call.attrs["axes"], call.x.ndim)
    count = int(np.prod([call.x.shape[a] for a in axes], dtype=np.int64))
    return in_turn(
        partial(np.add.reduce, call.x, axes, _INT32, sums, True),
        partial(np.subtract, sums, np.int32(count * attrs["x_zero"]), sums),
        partial(np.copyto, real, sums, casting="same_kind"),
        partial(np.multiply, real, constant(attrs["factor"], SINGLE), real),
        *round_to_quantised(real, attrs["y_zero"], bounds(attrs)),
        partial(np.copyto, call.y, real, casting="unsafe"),
    )


QUANTISED_MEAN = OpSchema(
    name="quantised_mean",
    summary="round(sum of x - x_zero over axes, which stay as 1, * factor) + y_zero; factor includes 1 / count.",
    infer=_infer_mean,
    kernels=(Kernel("numpy", _bind_mean, _mean_scratch),),
    attributes=(
        Attribute("axes", integers),
        Attribute("x_zero", integer, 0),
        Attribute("factor", number),
        *QUANTISED_ATTRIBUTES,
    ),
    cost=flops_per_input_element(1),
)
OPS = (QUANTISED_ADD, QUANTISED_MEAN)
