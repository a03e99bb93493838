"""MobileNetV2 (Sandler et al. 2018) and EfficientNet-B0 (Tan and Le 2019): wider, a filter a channel, narrower."""

from collections.abc import Callable

from engine.onnx.library import ModelProto
from tools.networks.writer import CLASSES, Writer

IMAGE = 224
STEM, LAST = 32, 1280
"""Channels of the first and of the last convolution, in both networks."""
MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks and stride: table 2 of the paper."""
EFFICIENTNET = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
"""Expansion, channels, blocks, stride and kernel: table 1 of the paper."""
SQUEEZE = 4
"""Channels in front of a block over those between the two layers of its squeeze and excitation."""

Activation = Callable[[Writer, str], str]


def mobilenet_v2() -> ModelProto:
    """Builds MobileNetV2: x [1, 3, 224, 224] to 1000 classes, without a softmax."""
    to = Writer()
    x, channels = _clipped(to, to.conv("x", (3, STEM), 3, 2)), STEM
    for expansion, wide, blocks, first in MOBILENET:
        for block in range(blocks):
            x = _block(to, x, (channels, wide), (expansion, first if block == 0 else 1, 3), _clipped)
            channels = wide
    return _classified(to, "mobilenet_v2", _clipped(to, to.conv(x, (channels, LAST), 1)))


def efficientnet_b0() -> ModelProto:
    """Builds EfficientNet-B0: x [1, 3, 224, 224] to 1000 classes, without a softmax."""
    to = Writer()
    x, channels = to.swish(to.conv("x", (3, STEM), 3, 2)), STEM
    for expansion, wide, blocks, first, kernel in EFFICIENTNET:
        for block in range(blocks):
            shape = expansion, first if block == 0 else 1, kernel
            x = _block(to, x, (channels, wide), shape, Writer.swish, squeeze=SQUEEZE)
            channels = wide
    return _classified(to, "efficientnet_b0", to.swish(to.conv(x, (channels, LAST), 1)))


def _block(
    to: Writer,
    x: str,
    channels: tuple[int, int],
    shape: tuple[int, int, int],
    activation: Activation,
    *,
    squeeze: int = 0,
) -> str:
    """Adds a block of an expansion, a stride and a kernel; with `squeeze`, channels are weighed between its layers."""
    expansion, stride, kernel = shape
    inner = channels[0] * expansion
    y = activation(to, to.conv(x, (channels[0], inner), 1)) if expansion > 1 else x
    y = activation(to, to.conv(y, (inner, inner), kernel, stride, groups=inner))
    if squeeze:
        y = _excited(to, y, inner, channels[0] // squeeze)
    y = to.conv(y, (inner, channels[1]), 1)
    return to.node("Add", [y, x]) if stride == 1 and channels[0] == channels[1] else y


def _excited(to: Writer, x: str, channels: int, inner: int) -> str:
    """Adds a squeeze and excitation (Hu et al. 2018): each channel is multiplied by a weight of its own."""
    means = to.node("GlobalAveragePool", [x])
    weights = to.conv(to.swish(to.conv(means, (channels, inner), 1)), (inner, channels), 1)
    return to.node("Mul", [to.node("Sigmoid", [weights]), x])


def _clipped(to: Writer, x: str) -> str:
    return to.node("Clip", [x, to.number(0), to.number(6)])


def _classified(to: Writer, name: str, x: str) -> ModelProto:
    x = to.node("Flatten", [to.node("GlobalAveragePool", [x])], {"axis": 1})
    return to.model(name, (1, 3, IMAGE, IMAGE), {to.classifier(x, LAST): (1, CLASSES)})
