"""How each operator is computed where channels stand last: (N, spatial..., C) in place of (N, C, spatial...).

A tensor is turned by moving its last axes, the spatial ones, to behind the first. How many these are is one number for
all that hangs together; so a tensor whose channels are two axes for a moment (a channel shuffle) is turned as well.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from attrs import frozen

import ops
from engine.operator import Operator
from engine.passes.affine import affine
from engine.passes.edit import Edit
from engine.passes.movement import Perm, composed, permutation
from engine.var import Var
from ops.batch_norm import BATCH_NORM
from ops.concat import CONCAT
from ops.conv import CONV
from ops.conv_transpose import CONV_TRANSPOSE
from ops.depth import DEPTH_TO_SPACE, SPACE_TO_DEPTH
from ops.fused_conv import FUSED_CONV, RESIDUAL
from ops.global_pool import GLOBAL_AVERAGE_POOL, GLOBAL_MAX_POOL
from ops.lrn import LRN
from ops.nhwc.conv import NHWC_CONV
from ops.nhwc.conv_transpose import NHWC_CONV_TRANSPOSE
from ops.nhwc.lrn import NHWC_LRN
from ops.nhwc.pool import NHWC_AVERAGE_POOL, NHWC_MAX_POOL
from ops.pad import PAD
from ops.pool import AVERAGE_POOL, MAX_POOL
from ops.reduce import OPS as REDUCTIONS
from ops.reshape import RESHAPE
from ops.resize import RESIZE
from ops.schema import OpSchema
from ops.slicing import SLICE
from ops.softmax import LOG_SOFTMAX, SOFTMAX
from ops.spec import Shape, normalize_axes, normalize_axis
from ops.views import SPLIT, TRANSPOSE

_WIDE = frozenset(map(np.dtype, ("float32", "float64")))
_NO_SHAPES = frozenset({"storage_order", "with_indices"})


@frozen(eq=False)
class Turned:
    """An operator on turned tensors.

    `reads` are the positions of inputs that are turned; `build` is given all inputs so, and adds what computes the
    outputs, turned where it `leaves` them so. `gains` tells operators for whose sake others are turned.
    """

    reads: tuple[int, ...]
    build: Callable[[Sequence[Var]], tuple[Var, ...]]
    leaves: bool = True
    gains: bool = False


Rule = Callable[[Edit, Operator, int], Turned | None]
"""Of an operator and a number of spatial axes: how it is computed, or None where it cannot be."""


def order(ndim: int, spatial: int) -> Perm:
    """The axes in the order in which a turned tensor has them."""
    return (0, *range(ndim - spatial, ndim), *range(1, ndim - spatial))


def inverse(perm: Perm) -> Perm:
    """The permutation that undoes another."""
    return tuple(int(axis) for axis in np.argsort(perm))


def turned_shape(shape: Shape, spatial: int) -> Shape:
    """The shape that a turned tensor has."""
    return tuple(shape[axis] for axis in order(len(shape), spatial))


def is_free(shape: Shape, spatial: int) -> bool:
    """Whether turning moves no element: one pixel, or one channel."""
    inner, outer = shape[len(shape) - spatial :], shape[1 : len(shape) - spatial]
    return math.prod(inner) <= 1 or math.prod(outer) <= 1


def turn(var: Var, spatial: int) -> Var:
    """The turned tensor."""
    if is_free(var.shape, spatial):
        return ops.reshape(var, turned_shape(var.shape, spatial))
    return ops.transpose(var, order(var.ndim, spatial))


def turn_back(var: Var, spatial: int, shape: Shape) -> Var:
    """The tensor of that shape that was turned."""
    if is_free(shape, spatial):
        return ops.reshape(var, shape)
    return ops.transpose(var, inverse(order(var.ndim, spatial)))


def turn_constant(edit: Edit, var: Var, spatial: int) -> Var:
    """A constant, turned."""
    array = edit.constants[var]
    return edit.constant(np.ascontiguousarray(array.transpose(order(array.ndim, spatial))), edit.name(var))


def _operand(edit: Edit, var: Var, ndim: int, spatial: int) -> Var:
    """A constant that is broadcast to so many axes, turned; axes of length 1 in front of all others are left out."""
    array = edit.constants[var]
    if array.size == 1:
        return var if array.ndim == 0 else edit.constant(array.reshape(()), edit.name(var))
    whole = array.reshape((1,) * (ndim - array.ndim) + array.shape).transpose(order(ndim, spatial))
    lead = next(i for i, n in enumerate(whole.shape) if n != 1)
    return edit.constant(np.ascontiguousarray(whole.reshape(whole.shape[lead:])), edit.name(var))


def find(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    """How an operator is computed on turned tensors, if it can be."""
    if not edit.updated.isdisjoint(operator.outputs) or any(map(edit.is_old_state, operator.inputs)):
        return None
    rule = RULES.get(operator.schema, _elementwise if operator.schema.elementwise else None)
    return rule(edit, operator, spatial) if rule is not None else None


def _has_channels(var: Var, spatial: int) -> bool:
    return var.ndim >= spatial + 2


def _is_image(var: Var, spatial: int) -> bool:
    return var.ndim == spatial + 2


def _elementwise(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    (y,) = operator.outputs
    reads = tuple(i for i, v in enumerate(operator.inputs) if v.ndim == y.ndim and v not in edit.constants)
    rest = [v for i, v in enumerate(operator.inputs) if i not in reads]
    if not _has_channels(y, spatial) or not reads or any(v.ndim and v not in edit.constants for v in rest):
        return None

    def build(inputs: Sequence[Var]) -> tuple[Var, ...]:
        given = [_operand(edit, v, y.ndim, spatial) if v in edit.constants else v for v in inputs]
        return edit.add(operator.schema, given, operator.attrs)

    return Turned(reads, build)


def _conv(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    if not _is_image(operator.inputs[0], spatial) or operator.inputs[0].dtype not in _WIDE:
        return None
    reads = tuple(i for i in (0, RESIDUAL) if i < len(operator.inputs))
    return Turned(reads, lambda inputs: edit.add(NHWC_CONV, inputs, operator.attrs), gains=True)


def _conv_transpose(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    if not _is_image(operator.inputs[0], spatial) or operator.inputs[0].dtype not in _WIDE:
        return None
    return Turned((0,), lambda inputs: edit.add(NHWC_CONV_TRANSPOSE, inputs, operator.attrs), gains=True)


def _window(schema: OpSchema) -> Rule:
    """Of pooling and normalization: the schema that does the same on turned tensors."""

    def rule(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
        x, half = operator.inputs[0], np.dtype("float16")
        if not _is_image(x, spatial) or len(operator.outputs) > 1 or (x.dtype == half and schema is not NHWC_MAX_POOL):
            return None
        attrs = {name: value for name, value in operator.attrs.items() if name not in _NO_SHAPES}
        return Turned((0,), lambda inputs: edit.add(schema, inputs, attrs), gains=True)

    return rule


def _global(function: Callable[..., Var]) -> Rule:
    def rule(_: Edit, operator: Operator, spatial: int) -> Turned | None:
        if not _is_image(operator.inputs[0], spatial):
            return None
        return Turned((0,), lambda inputs: (function(inputs[0], range(1, 1 + spatial), keepdims=True),), gains=True)

    return rule


def _batch_norm(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    """With constants: times a vector, plus a vector."""
    x = operator.inputs[0]
    found = affine(edit, operator, 1) if _is_image(x, spatial) and x.dtype in _WIDE else None
    if found is None:
        return None
    factor, shift = (array.astype(x.dtype) for array in (found.factor, found.shift))
    return Turned((0,), lambda inputs: (inputs[0] * edit.constant(factor) + edit.constant(shift),))


def _along(name: str) -> Rule:
    """Of operators with one axis: the same with that axis where it is now; constants are turned whole."""

    def rule(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
        x = operator.inputs[0]
        if not _has_channels(x, spatial):
            return None
        axis = order(x.ndim, spatial).index(normalize_axis(operator.attrs[name], x.ndim))
        attrs = {**operator.attrs, name: axis}
        return Turned(tuple(range(len(operator.inputs))), lambda inputs: edit.add(operator.schema, inputs, attrs))

    return rule


def _reduction(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    (x,) = operator.inputs
    if not _has_channels(x, spatial) or operator.attrs["axes"] is None:
        return None
    axes, perm = normalize_axes(operator.attrs["axes"], x.ndim), order(x.ndim, spatial)
    left = [axis for axis in perm if axis not in axes]
    if not operator.attrs["keepdims"] and left != sorted(left):
        return None
    attrs = {**operator.attrs, "axes": tuple(sorted(perm.index(a) for a in axes))}
    return Turned((0,), lambda inputs: edit.add(operator.schema, inputs, attrs), leaves=operator.attrs["keepdims"])


def _pad(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    x = operator.inputs[0]
    if not _has_channels(x, spatial):
        return None
    pads, perm = operator.attrs["pads"], order(x.ndim, spatial)
    attrs = {**operator.attrs, "pads": tuple(half[a] for half in (pads[: x.ndim], pads[x.ndim :]) for a in perm)}
    return Turned((0,), lambda inputs: edit.add(PAD, inputs, attrs))


def _slice(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    (x,) = operator.inputs
    if not _has_channels(x, spatial):
        return None
    axes = operator.attrs["axes"]
    given = range(len(operator.attrs["starts"])) if axes is None else normalize_axes(axes, x.ndim)
    attrs = {**operator.attrs, "axes": tuple(order(x.ndim, spatial).index(a) for a in given)}
    return Turned((0,), lambda inputs: edit.add(SLICE, inputs, attrs))


def _resize(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    x = operator.inputs[0]
    if not _has_channels(x, spatial) or operator.attrs["roi"]:
        return None
    perm, lengths = order(x.ndim, spatial), ("sizes", "scales")
    turned = {name: tuple(operator.attrs[name][a] for a in perm) for name in lengths if operator.attrs[name]}
    return Turned((0,), lambda inputs: edit.add(RESIZE, inputs, {**operator.attrs, **turned}))


def _reshape(_: Edit, operator: Operator, spatial: int) -> Turned | None:
    """Of channels alone, as in a channel shuffle; or of a single pixel or channel, to anything and from anything."""
    ((x,), (y,)) = operator.inputs, operator.outputs
    turnable = [_has_channels(v, spatial) for v in (x, y)]
    if all(turnable) and x.shape[0] == y.shape[0] and x.shape[x.ndim - spatial :] == y.shape[y.ndim - spatial :]:
        return Turned((0,), lambda inputs: (ops.reshape(inputs[0], turned_shape(y.shape, spatial)),))
    if turnable[0] and is_free(x.shape, spatial):
        return Turned((0,), lambda inputs: (ops.reshape(inputs[0], y.shape),), leaves=False)
    if turnable[1] and is_free(y.shape, spatial):
        return Turned((), lambda inputs: (ops.reshape(inputs[0], turned_shape(y.shape, spatial)),))
    return None


def _transpose(_: Edit, operator: Operator, spatial: int) -> Turned | None:
    """Of channel axes among themselves; or any, of which what is left is an order of axes as well."""
    (x,), perm = operator.inputs, permutation(operator)
    if not _has_channels(x, spatial):
        return None
    channels = x.ndim - spatial
    if (perm[0], *perm[channels:]) == (0, *range(channels, x.ndim)):
        kept = (*range(1 + spatial), *(spatial + axis for axis in perm[1:channels]))
        return Turned((0,), lambda inputs: (ops.transpose(inputs[0], kept),))
    rest = composed(inverse(order(x.ndim, spatial)), perm)
    same = rest == tuple(range(x.ndim))
    return Turned((0,), lambda inputs: (inputs[0] if same else ops.transpose(inputs[0], rest),), leaves=False)


def _depth_to_space(_: Edit, operator: Operator, spatial: int) -> Turned | None:
    (x,), b = operator.inputs, operator.attrs["blocksize"]
    if spatial != 2:
        return None
    (n, c, h, w), is_last = x.shape, operator.attrs["mode"] == "DCR"
    apart = (n, h, w, b, b, c // (b * b)) if is_last else (n, h, w, c // (b * b), b, b)
    perm = (0, 1, 3, 2, 4, 5) if is_last else (0, 1, 4, 2, 5, 3)
    return _moved(apart, perm, turned_shape(operator.outputs[0].shape, spatial))


def _space_to_depth(_: Edit, operator: Operator, spatial: int) -> Turned | None:
    (x,), b = operator.inputs, operator.attrs["blocksize"]
    if spatial != 2:
        return None
    n, c, h, w = x.shape
    perm = (0, 1, 3, 2, 4, 5) if operator.attrs["mode"] == "DCR" else (0, 1, 3, 5, 2, 4)
    return _moved((n, h // b, b, w // b, b, c), perm, turned_shape(operator.outputs[0].shape, spatial))


def _moved(apart: Shape, perm: Perm, shape: Shape) -> Turned:
    """Seen as one shape, its axes in another order, seen as another shape."""
    return Turned((0,), lambda inputs: (ops.reshape(ops.transpose(ops.reshape(inputs[0], apart), perm), shape),))


RULES: Mapping[OpSchema, Rule] = MappingProxyType(
    {
        CONV: _conv,
        FUSED_CONV: _conv,
        CONV_TRANSPOSE: _conv_transpose,
        MAX_POOL: _window(NHWC_MAX_POOL),
        AVERAGE_POOL: _window(NHWC_AVERAGE_POOL),
        LRN: _window(NHWC_LRN),
        GLOBAL_AVERAGE_POOL: _global(ops.reduce_mean),
        GLOBAL_MAX_POOL: _global(ops.reduce_max),
        BATCH_NORM: _batch_norm,
        CONCAT: _along("axis"),
        SPLIT: _along("axis"),
        SOFTMAX: _along("axis"),
        LOG_SOFTMAX: _along("axis"),
        **dict.fromkeys(REDUCTIONS, _reduction),
        PAD: _pad,
        DEPTH_TO_SPACE: _depth_to_space,
        SPACE_TO_DEPTH: _space_to_depth,
        SLICE: _slice,
        RESIZE: _resize,
        RESHAPE: _reshape,
        TRANSPOSE: _transpose,
    }
)
"""By schema; other elementwise operators do not care for the order of axes."""
