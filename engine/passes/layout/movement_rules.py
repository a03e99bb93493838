"""Forms with channels last of operators that move, cut, join or reduce: the same operators along other axes."""

from collections.abc import Mapping
from types import MappingProxyType

import ops
from engine.graph.operator import Operator
from engine.passes.edit import Edit
from engine.passes.layout.nhwc_form import NhwcForm, Rule, has_channels, keeps_element_order, nhwc_perm, nhwc_shape
from engine.passes.permutation import Perm, composed, inverse, is_identity, permutation
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


def _along_axis(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    """Returns the form of an operator with one axis: f(x, axis) -> f(nhwc(x), the position of axis in nhwc(x))."""
    x = operator.inputs[0]
    if not has_channels(x, spatial):
        return None
    axis = nhwc_perm(x.ndim, spatial).index(normalize_axis(operator.attrs["axis"], x.ndim))
    attrs = {**operator.attrs, "axis": axis}
    return NhwcForm(tuple(range(len(operator.inputs))), lambda inputs: edit.add(operator.schema, inputs, attrs))


def _reduction(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    """Returns the form of a reduction. Without keepdims it has one only where the other axes keep their order."""
    (x,) = operator.inputs
    if not has_channels(x, spatial) or operator.attrs["axes"] is None:
        return None
    axes, perm = normalize_axes(operator.attrs["axes"], x.ndim), nhwc_perm(x.ndim, spatial)
    remaining = [axis for axis in perm if axis not in axes]
    if not operator.attrs["keepdims"] and remaining != sorted(remaining):
        return None
    attrs = {**operator.attrs, "axes": tuple(sorted(perm.index(a) for a in axes))}
    return NhwcForm(
        (0,), lambda inputs: edit.add(operator.schema, inputs, attrs), nhwc_outputs=operator.attrs["keepdims"]
    )


def _pad(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    x = operator.inputs[0]
    if not has_channels(x, spatial):
        return None
    pads, perm = operator.attrs["pads"], nhwc_perm(x.ndim, spatial)
    attrs = {**operator.attrs, "pads": tuple(half[a] for half in (pads[: x.ndim], pads[x.ndim :]) for a in perm)}
    return NhwcForm((0,), lambda inputs: edit.add(PAD, inputs, attrs))


def _slice(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    (x,) = operator.inputs
    if not has_channels(x, spatial):
        return None
    axes = operator.attrs["axes"]
    sliced = range(len(operator.attrs["starts"])) if axes is None else normalize_axes(axes, x.ndim)
    attrs = {**operator.attrs, "axes": tuple(nhwc_perm(x.ndim, spatial).index(a) for a in sliced)}
    return NhwcForm((0,), lambda inputs: edit.add(SLICE, inputs, attrs))


def _resize(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    """Returns the form of a resize: its sizes and scales in the order of the axes.

    It has none with a region (roi), or of some rows alone, which are along axis 1.
    """
    x = operator.inputs[0]
    if not has_channels(x, spatial) or operator.attrs["roi"] or operator.attrs["rows"]:
        return None
    perm, lengths = nhwc_perm(x.ndim, spatial), ("sizes", "scales")
    permuted = {name: tuple(operator.attrs[name][a] for a in perm) for name in lengths if operator.attrs[name]}
    return NhwcForm((0,), lambda inputs: edit.add(RESIZE, inputs, {**operator.attrs, **permuted}))


def _reshape(_: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    """Returns the form of a reshape.

    1. reshape of the channel axes among themselves (a channel shuffle) -> the same with channels last
    2. reshape(x), where x has one pixel or one channel -> reshape(nhwc(x)) to the same shape, channels first
    3. reshape(x) to a result with one pixel or one channel -> reshape(x) to the shape with channels last
    """
    ((x,), (y,)) = operator.inputs, operator.outputs
    candidates = [has_channels(v, spatial) for v in (x, y)]
    if all(candidates) and x.shape[0] == y.shape[0] and x.shape[x.ndim - spatial :] == y.shape[y.ndim - spatial :]:
        return NhwcForm((0,), lambda inputs: (ops.reshape(inputs[0], nhwc_shape(y.shape, spatial)),))
    if candidates[0] and keeps_element_order(x.shape, spatial):
        return NhwcForm((0,), lambda inputs: (ops.reshape(inputs[0], y.shape),), nhwc_outputs=False)
    if candidates[1] and keeps_element_order(y.shape, spatial):
        return NhwcForm((), lambda inputs: (ops.reshape(inputs[0], nhwc_shape(y.shape, spatial)),))
    return None


def _transpose(_: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    """Returns the form of a transpose.

    1. transpose of the channel axes among themselves -> the same with channels last
    2. any other transpose(x, p) -> transpose(nhwc(x), nhwc to nchw then p), whose result has channels first
    """
    (x,), perm = operator.inputs, permutation(operator)
    if not has_channels(x, spatial):
        return None
    channels = x.ndim - spatial
    if (perm[0], *perm[channels:]) == (0, *range(channels, x.ndim)):
        channel_perm = (*range(1 + spatial), *(spatial + axis for axis in perm[1:channels]))
        return NhwcForm((0,), lambda inputs: (ops.transpose(inputs[0], channel_perm),))
    rest = composed(inverse(nhwc_perm(x.ndim, spatial)), perm)
    return NhwcForm(
        (0,), lambda inputs: (inputs[0] if is_identity(rest) else ops.transpose(inputs[0], rest),), nhwc_outputs=False
    )


def _depth_to_space(_: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    (x,), b = operator.inputs, operator.attrs["blocksize"]
    if spatial != 2:
        return None
    (n, c, h, w), is_last = x.shape, operator.attrs["mode"] == "DCR"
    split_shape = (n, h, w, b, b, c // (b * b)) if is_last else (n, h, w, c // (b * b), b, b)
    perm = (0, 1, 3, 2, 4, 5) if is_last else (0, 1, 4, 2, 5, 3)
    return _permuted(split_shape, perm, nhwc_shape(operator.outputs[0].shape, spatial))


def _space_to_depth(_: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    (x,), b = operator.inputs, operator.attrs["blocksize"]
    if spatial != 2:
        return None
    n, c, h, w = x.shape
    perm = (0, 1, 3, 2, 4, 5) if operator.attrs["mode"] == "DCR" else (0, 1, 3, 5, 2, 4)
    return _permuted((n, h // b, b, w // b, b, c), perm, nhwc_shape(operator.outputs[0].shape, spatial))


def _permuted(split_shape: Shape, perm: Perm, shape: Shape) -> NhwcForm:
    """Returns the form reshape(transpose(reshape(x, split_shape), perm), shape)."""
    return NhwcForm(
        (0,), lambda inputs: (ops.reshape(ops.transpose(ops.reshape(inputs[0], split_shape), perm), shape),)
    )


MOVEMENT_RULES: Mapping[OpSchema, Rule] = MappingProxyType(
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
