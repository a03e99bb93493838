"""Channels moved into blocks of pixels and back (ONNX DepthToSpace, SpaceToDepth)."""

from ops.common.apply import V, apply1
from ops.movement.copies import Move
from ops.movement.kernels import movement
from ops.schema.attributes import Attribute, integer, one_of
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, OpSchema, Specs
from ops.tensor.errors import AttributeValueError, ShapeError

_ATTRIBUTES = (Attribute("blocksize", integer), Attribute("mode", one_of("DCR", "CRD"), "DCR"))


def _check(inputs: Specs, attrs: Attrs) -> None:
    if inputs[0].ndim != 4:
        raise ShapeError(f"data {inputs[0].shape} must have 4 dimensions: images, channels, height, width")
    if attrs["blocksize"] < 1:
        raise AttributeValueError(f"blocksize is {attrs['blocksize']}; at least 1 is wanted")


def _infer_space(inputs: Specs, attrs: Attrs) -> Specs:
    _check(inputs, attrs)
    (n, c, h, w), b = inputs[0].shape, attrs["blocksize"]
    if c % (b * b):
        raise ShapeError(f"{c} channels are no multiple of {b} * {b}")
    return (inputs[0].with_shape((n, c // (b * b), h * b, w * b)),)


def _infer_depth(inputs: Specs, attrs: Attrs) -> Specs:
    _check(inputs, attrs)
    (n, c, h, w), b = inputs[0].shape, attrs["blocksize"]
    if h % b or w % b:
        raise ShapeError(f"{h} x {w} pixels cannot be cut into blocks of {b} x {b}")
    return (inputs[0].with_shape((n, c * b * b, h // b, w // b)),)


def _space_moves(call: Binding) -> tuple[Move, ...]:
    (n, c, h, w), b = call.x.shape, call.attrs["blocksize"]
    kept = c // (b * b)
    target = call.y.reshape((n, kept, h, b, w, b))
    if call.attrs["mode"] == "DCR":
        return ((call.x.reshape((n, b, b, kept, h, w)).transpose(0, 3, 4, 1, 5, 2), target),)
    return ((call.x.reshape((n, kept, b, b, h, w)).transpose(0, 1, 4, 2, 5, 3), target),)


def _depth_moves(call: Binding) -> tuple[Move, ...]:
    (n, c, h, w), b = call.x.shape, call.attrs["blocksize"]
    perm = (0, 3, 5, 1, 2, 4) if call.attrs["mode"] == "DCR" else (0, 1, 3, 5, 2, 4)
    source = call.x.reshape((n, c, h // b, b, w // b, b)).transpose(perm)
    return ((source, call.y.reshape(source.shape)),)


def _back_to_depth(b: Backward) -> Terms:
    return (b.apply1(SPACE_TO_DEPTH, b.dy, **b.attrs),)


def _back_to_space(b: Backward) -> Terms:
    return (b.apply1(DEPTH_TO_SPACE, b.dy, **b.attrs),)


DEPTH_TO_SPACE = OpSchema(
    name="depth_to_space",
    summary="(N, C, H, W) to (N, C / b / b, H * b, W * b), b = blocksize: channels become blocks of pixels.",
    infer=_infer_space,
    kernels=movement(_space_moves, "copy"),
    attributes=_ATTRIBUTES,
    gradient=_back_to_depth,
    bit_copies=True,
)
SPACE_TO_DEPTH = OpSchema(
    name="space_to_depth",
    summary="(N, C, H, W) to (N, C * b * b, H / b, W / b), b = blocksize: blocks of pixels become channels.",
    infer=_infer_depth,
    kernels=movement(_depth_moves, "copy"),
    attributes=_ATTRIBUTES,
    gradient=_back_to_space,
    bit_copies=True,
)
OPS = (DEPTH_TO_SPACE, SPACE_TO_DEPTH)


def depth_to_space(x: V, blocksize: int, mode: str = "DCR") -> V:
    """Moves channels into space: (N, C, H, W) to (N, C / b / b, H * b, W * b)."""
    return apply1(DEPTH_TO_SPACE, x, blocksize=blocksize, mode=mode)


def space_to_depth(x: V, blocksize: int, mode: str = "DCR") -> V:
    """Moves space into channels: (N, C, H, W) to (N, C * b * b, H / b, W / b)."""
    return apply1(SPACE_TO_DEPTH, x, blocksize=blocksize, mode=mode)
