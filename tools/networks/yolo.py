"""YOLOv8n (Jocher et al. 2023, "Ultralytics YOLOv8", file yolov8.yaml at scale n) for 320 x 320 pixels.

Normalizations are folded into convolutions. The outputs are those of the three heads: the distributions of the four
sides of a box, and the scores of 80 classes, for each cell. What makes boxes of them is left to the caller.
"""

from engine.onnx.library import ModelProto
from tools.networks.writer import Writer

IMAGE, CLASSES, BINS = 320, 80, 16
STRIDES = (8, 16, 32)
STAGES = ((32, 1), (64, 2), (128, 2), (256, 1))
"""Channels of the stages of the backbone, and bottlenecks of each."""


def yolo_nano() -> ModelProto:
    """Builds YOLOv8n: x [1, 3, 320, 320] to [1, 144, n, n] for n of 40, 20 and 10."""
    to = Writer()
    x, before, levels = _conv(to, "x", (3, 16), 3, 2), 16, []
    for channels, bottlenecks in STAGES:
        x = _stage(to, _conv(to, x, (before, channels), 3, 2), (channels, channels), bottlenecks, adds=True)
        before = channels
        levels.append(x)
    _, fine, middle, coarse = levels
    coarse = _pooled(to, coarse, before)
    middle = _stage(to, to.node("Concat", [to.doubled(coarse), middle], {"axis": 1}), (384, 128), 1, adds=False)
    fine = _stage(to, to.node("Concat", [to.doubled(middle), fine], {"axis": 1}), (192, 64), 1, adds=False)
    narrower = _conv(to, fine, (64, 64), 3, 2)
    middle = _stage(to, to.node("Concat", [narrower, middle], {"axis": 1}), (192, 128), 1, adds=False)
    narrower = _conv(to, middle, (128, 128), 3, 2)
    coarse = _stage(to, to.node("Concat", [narrower, coarse], {"axis": 1}), (384, 256), 1, adds=False)
    heads = [_head(to, level, channels) for level, channels in ((fine, 64), (middle, 128), (coarse, 256))]
    depth = 4 * BINS + CLASSES
    shapes = {head: (1, depth, IMAGE // stride, IMAGE // stride) for head, stride in zip(heads, STRIDES, strict=True)}
    return to.model("yolo_nano", (1, 3, IMAGE, IMAGE), shapes)


def _conv(to: Writer, x: str, channels: tuple[int, int], kernel: int, stride: int = 1) -> str:
    return to.swish(to.conv(x, channels, kernel, stride))


def _stage(to: Writer, x: str, channels: tuple[int, int], bottlenecks: int, *, adds: bool) -> str:
    """Adds a C2f: half of the channels pass bottlenecks, one after the other, and all that was there is joined."""
    before, after = channels
    half = after // 2
    parts = to.split(_conv(to, x, (before, after), 1), [half, half], axis=1)
    for _ in range(bottlenecks):
        y = _conv(to, _conv(to, parts[-1], (half, half), 3), (half, half), 3)
        parts.append(to.node("Add", [parts[-1], y]) if adds else y)
    return _conv(to, to.node("Concat", parts, {"axis": 1}), (len(parts) * half, after), 1)


def _pooled(to: Writer, x: str, channels: int) -> str:
    """Adds an SPPF: three pools one after the other, joined with their input."""
    sizes = {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2] * 4}
    parts = [_conv(to, x, (channels, channels // 2), 1)]
    for _ in range(3):
        parts.append(to.node("MaxPool", [parts[-1]], sizes))
    return _conv(to, to.node("Concat", parts, {"axis": 1}), (2 * channels, channels), 1)


def _head(to: Writer, x: str, channels: int) -> str:
    """Adds both branches of a head, and joins them."""
    outputs = []
    for width, depth in ((4 * BINS, 4 * BINS), (CLASSES, CLASSES)):
        y = _conv(to, _conv(to, x, (channels, width), 3), (width, width), 3)
        outputs.append(to.conv(y, (width, depth), 1))
    return to.node("Concat", outputs, {"axis": 1})
