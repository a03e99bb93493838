"""Batch normalization with given statistics (ONNX BatchNormalization-15, training_mode 0)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.batches import dense_images
from ops.common.boxes import CACHE_BYTES, pieces
from ops.common.thunks import in_turn
from ops.common.tiling import image_stripes
from ops.common.widened import widened
from ops.norm.batch_norm_training import CHANNEL_SUMS
from ops.norm.channels import flat_channels, piece_channels, scale_shift_steps
from ops.norm.channels_compiled import scale_shift
from ops.schema.attributes import Attribute, number
from ops.schema.backends import NUMBA
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    any_strides,
    overwrites_first,
    unless,
)
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.limits import constant
from ops.tensor.spec import FLOATS, Array, TensorSpec, compute_dtype
from ops.vector.bytecode import Script
from ops.vector.kernel import is_lane, run


def _infer(inputs: Specs, _: Attrs) -> Specs:
    x = inputs[0]
    if x.ndim < 2:
        raise ShapeError(f"data {x.shape} must have 2 dimensions or more: images, channels, ...")
    if any(s.dtype not in FLOATS for s in inputs):
        raise DtypeError(f"takes floating-point numbers, not {', '.join(s.dtype.name for s in inputs)}")
    for name, array in zip(("scale", "bias", "mean", "var"), inputs[1:], strict=True):
        if array.shape != x.shape[1:2]:
            raise ShapeError(f"{name} has shape {array.shape}, not {x.shape[1:2]}")
    return (x,)


def _packed(signature: Signature) -> bool:
    return {1, 2, 3, 4} <= signature.constants


def _few(signature: Signature) -> int:
    """Returns the number of channels of one piece."""
    width = math.prod(signature.x.shape[2:]) * compute_dtype(signature.x.dtype).itemsize
    return max(1, min(signature.x.shape[1], CACHE_BYTES // 2 // max(width, 1)))


def _plain(signature: Signature) -> bool:
    return compute_dtype(signature.x.dtype) == signature.x.dtype


_not_plain = unless(_plain, "float16")


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of factors, shifts and one more number a channel.

    For float16 there is also a piece of the data in float32.
    """
    dtype, channels = compute_dtype(signature.x.dtype), signature.x.shape[1]
    numbers = TensorSpec((0 if _packed(signature) else channels,), dtype)
    wide = 0 if _plain(signature) else _few(signature)
    return numbers, numbers, numbers, TensorSpec((wide, *signature.x.shape[2:]), dtype)


def _fold(parameters: Sequence[Array], epsilon: float, scratch: Sequence[Array]) -> Iterator[Thunk]:
    """Yields steps that write factor = scale / sqrt(var + epsilon) and shift = bias - mean * factor.

    `scratch` are factor, shift and a buffer.
    """
    scale, bias, mean, var = parameters
    factor, shift, buffer = scratch
    yield partial(np.copyto, buffer, var, casting="same_kind")
    yield partial(np.add, buffer, constant(epsilon, buffer.dtype), buffer)
    yield partial(np.sqrt, buffer, buffer)
    yield partial(np.copyto, factor, scale, casting="same_kind")
    yield partial(np.divide, factor, buffer, factor)
    yield partial(np.copyto, buffer, mean, casting="same_kind")
    yield partial(np.multiply, buffer, factor, buffer)
    yield partial(np.copyto, shift, bias, casting="same_kind")
    yield partial(np.subtract, shift, buffer, shift)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    if not _packed(signature):
        return ()
    scratch = [np.empty(spec.shape, spec.dtype) for spec in (*_packed_specs(signature), _packed_specs(signature)[0])]
    with np.errstate(all="ignore"):
        in_turn(*_fold([constants[i] for i in (1, 2, 3, 4)], signature.attrs["epsilon"], scratch))()
    return scratch[0], scratch[1]


def _packed_specs(signature: Signature) -> Specs:
    channels = TensorSpec(signature.x.shape[1:2], compute_dtype(signature.x.dtype))
    return (channels, channels) if _packed(signature) else ()


def _piece(x: Array, y: Array, wide: Array, factor: Array, shift: Array) -> Iterator[Thunk]:
    """Yields steps for a few channels of one image of float16, computed in float32."""
    column, out = (-1,) + (1,) * (x.ndim - 1), wide[: len(x)]
    yield partial(np.copyto, out, x)
    yield partial(np.multiply, out, factor.reshape(column), out)
    yield partial(np.add, out, shift.reshape(column), out)
    yield partial(np.copyto, y, out, casting="same_kind")


def _prepare(call: Binding) -> tuple[list[Thunk], Array, Array, Array]:
    """Returns steps that write factors and shifts, these two arrays, and the buffer for a piece.

    There are no steps where factors and shifts are packed.
    """
    *scratch, wide = call.temporaries
    steps = [] if call.packed else list(_fold(call.inputs[1:], call.attrs["epsilon"], scratch))
    factor, shift = call.packed or scratch[:2]
    return steps, factor, shift, wide


def _bind(call: Binding) -> Thunk:
    steps, factor, shift, wide = _prepare(call)
    for x, y in zip(call.x, call.y, strict=True):
        for a, b in pieces(len(x), _few(call.signature)):
            steps += _piece(x[a:b], y[a:b], wide, factor[a:b], shift[a:b])
    return in_turn(*steps)


def _bind_plain(call: Binding) -> Thunk:
    steps, factor, shift, _ = _prepare(call)
    x, y = flat_channels(call.x), flat_channels(call.y)
    return in_turn(*steps, *scale_shift_steps(x, factor, shift, y, piece_channels(call.signature.x)))


def _bind_fused(call: Binding) -> Thunk:
    steps, factor, shift, _ = _prepare(call)
    return in_turn(*steps, scale_shift(flat_channels(call.x), factor, shift, flat_channels(call.y)))


def _bind_vector(call: Binding) -> Thunk:
    factor, shift = (v.reshape(-1, *(1,) * (call.x.ndim - 2)) for v in call.packed)
    script = Script(3)
    script.append("add", script.append("mul", 0, 1), 2)
    return run(script, (call.x, factor, shift), call.y)


def _is_vector(signature: Signature) -> bool:
    return _packed(signature) and is_lane(signature.x)


_not_vector = unless(_is_vector, "not float32 with constant scales and statistics")


def _images_or_row(layout: Layout) -> bool:
    """Returns whether the kernel reads a layout: that of dense images, or of fewer than 2 dimensions."""
    return len(layout.shape) < 2 or dense_images(layout)


def _half(signature: Signature) -> bool:
    return not _plain(signature)


_not_half = unless(_half, "not float16")


def _cost(signature: Signature) -> Cost:
    return Cost(2 * signature.x.size, signature.x.nbytes + signature.y.nbytes)


def _gradient(b: Backward) -> Terms:
    """Returns the gradients: dx = dy * f * scale with f = 1 / sqrt(variance + epsilon), and sums over channels.

    Scale, bias and statistics may be constants, parameters, or inputs to train. Their gradients are computed before dx.
    """
    dtype, epsilon = b.x.dtype, b.attrs["epsilon"]
    scale, mean, variance = (b.cast(b.inputs[i], dtype) for i in (1, 3, 4))
    factor = scale / b.sqrt(variance + np.asarray(epsilon, dtype))
    products = sums = None
    if any(b.wants(i) for i in (1, 2, 3, 4)):
        products, sums = widened(b, CHANNEL_SUMS, b.dy, b.x, mean, variance, epsilon=epsilon)

    def of_variance() -> Tensor:
        return products * scale * np.asarray(-0.5, dtype) / (variance + np.asarray(epsilon, dtype))

    terms = b.terms(
        None,
        lambda: b.cast(products, b.inputs[1].dtype),
        lambda: b.cast(sums, b.inputs[2].dtype),
        lambda: b.cast(-(sums * factor), b.inputs[3].dtype),
        lambda: b.cast(of_variance(), b.inputs[4].dtype),
    )
    dx = b.dy * b.reshape(factor, (-1, *(1,) * (b.x.ndim - 2))) if b.wants(0) else None
    return (dx, *terms[1:])


VECTOR = Kernel(
    "vector",
    _bind_vector,
    pack=_pack,
    packed_specs=_packed_specs,
    unsupported=_not_vector,
    writes=any_strides,
    backend=NUMBA,
)
"""float32 with constant statistics: a program of two instructions."""
FUSED = Kernel(
    "fused",
    _bind_fused,
    _temporaries,
    reads=_images_or_row,
    pack=_pack,
    packed_specs=_packed_specs,
    unsupported=_not_plain,
    writes=dense_images,
    backend=NUMBA,
)
"""float32 and float64: one pass."""
PASSES = Kernel(
    "passes",
    _bind_plain,
    _temporaries,
    reads=_images_or_row,
    pack=_pack,
    packed_specs=_packed_specs,
    unsupported=_not_plain,
    writes=dense_images,
)
"""float32 and float64: two passes over a piece at a time."""
PIECES = Kernel("pieces", _bind, _temporaries, pack=_pack, packed_specs=_packed_specs, unsupported=_not_half)
"""float16: a piece at a time in float32."""
BATCH_NORM = OpSchema(
    name="batch_norm",
    summary="(x - mean) / sqrt(var + epsilon) * scale + bias, one of each a channel; x (N, C, ...).",
    infer=_infer,
    kernels=(VECTOR, FUSED, PASSES, PIECES),
    arity=(5, 5),
    attributes=(Attribute("epsilon", number, 1e-5),),
    overwrites=overwrites_first,
    cost=_cost,
    gradient=_gradient,
    stripes=image_stripes,
)
OPS = (BATCH_NORM,)


def batch_norm(x: V, scale: Operand, bias: Operand, mean: Operand, var: Operand, *, epsilon: float = 1e-5) -> V:
    """Returns (x - mean) / sqrt(var + epsilon) * scale + bias, one of each a channel; x (N, C, ...)."""
    return apply1(BATCH_NORM, x, scale, bias, mean, var, epsilon=epsilon)
