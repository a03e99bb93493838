"""Operators that only move, cut, join or reduce, on tensors with channels last: the same ones along other axes."""

from collections.abc import Mapping
from types import MappingProxyType

import ops
from engine.graph.operator import Operator
from engine.passes.cleanup.movement import Perm, composed, permutation
from engine.passes.edit import Edit
from engine.passes.layout.turned import Rule, Turned, has_channels, inverse, is_free, order, turned_shape
from ops.movement.concat import CONCAT
from ops.movement.reshape import RESHAPE
from ops.movement.slicing import SLICE
from ops.movement.views import SPLIT, TRANSPOSE
from ops.reduce.reduce import OPS as REDUCTIONS
from ops.reduce.softmax import LOG_SOFTMAX, SOFTMAX
from ops.schema.schema import OpSchema
from ops.spatial.depth_to_space import DEPTH_TO_SPACE, SPACE_TO_DEPTH
from ops.spatial.pad import PAD
from ops.spatial.resize import RESIZE
from ops.tensor.spec import Shape, normalize_axes, normalize_axis


def _along_axis(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    """Of operators with one axis: the same with that axis where it is now; constants are turned whole."""
    x = operator.inputs[0]
    if not has_channels(x, spatial):
        return None
    axis = order(x.ndim, spatial).index(normalize_axis(operator.attrs["axis"], x.ndim))
    attrs = {**operator.attrs, "axis": axis}
    return Turned(tuple(range(len(operator.inputs))), lambda inputs: edit.add(operator.schema, inputs, attrs))


def _reduction(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    (x,) = operator.inputs
    if not has_channels(x, spatial) or operator.attrs["axes"] is None:
        return None
    axes, perm = normalize_axes(operator.attrs["axes"], x.ndim), order(x.ndim, spatial)
    left = [axis for axis in perm if axis not in axes]
    if not operator.attrs["keepdims"] and left != sorted(left):
        return None
    attrs = {**operator.attrs, "axes": tuple(sorted(perm.index(a) for a in axes))}
    return Turned((0,), lambda inputs: edit.add(operator.schema, inputs, attrs), leaves=operator.attrs["keepdims"])


def _pad(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    x = operator.inputs[0]
    if not has_channels(x, spatial):
        return None
    pads, perm = operator.attrs["pads"], order(x.ndim, spatial)
    attrs = {**operator.attrs, "pads": tuple(half[a] for half in (pads[: x.ndim], pads[x.ndim :]) for a in perm)}
    return Turned((0,), lambda inputs: edit.add(PAD, inputs, attrs))


def _slice(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    (x,) = operator.inputs
    if not has_channels(x, spatial):
        return None
    axes = operator.attrs["axes"]
    given = range(len(operator.attrs["starts"])) if axes is None else normalize_axes(axes, x.ndim)
    attrs = {**operator.attrs, "axes": tuple(order(x.ndim, spatial).index(a) for a in given)}
    return Turned((0,), lambda inputs: edit.add(SLICE, inputs, attrs))


def _resize(edit: Edit, operator: Operator, spatial: int) -> Turned | None:
    x = operator.inputs[0]
    if not has_channels(x, spatial) or operator.attrs["roi"]:
        return None
    perm, lengths = order(x.ndim, spatial), ("sizes", "scales")
    turned = {name: tuple(operator.attrs[name][a] for a in perm) for name in lengths if operator.attrs[name]}
    return Turned((0,), lambda inputs: edit.add(RESIZE, inputs, {**operator.attrs, **turned}))


def _reshape(_: Edit, operator: Operator, spatial: int) -> Turned | None:
    """Of channels alone, as in a channel shuffle; or of a single pixel or channel, to anything and from anything."""
    ((x,), (y,)) = operator.inputs, operator.outputs
    turnable = [has_channels(v, spatial) for v in (x, y)]
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
    if not has_channels(x, spatial):
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


MOVES: Mapping[OpSchema, Rule] = MappingProxyType(
    {
        **dict.fromkeys((CONCAT, SPLIT, SOFTMAX, LOG_SOFTMAX), _along_axis),
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
"""The rules by schema."""
