"""U-Net for segmentation (Ronneberger, Fischer and Brox 2015), padded and with half the paper's channels."""

from engine.onnx.library import ModelProto
from tools.networks.writer import Writer

IMAGE = 256
CHANNELS = (32, 64, 128, 256, 512)
CLASSES = 2


def unet() -> ModelProto:
    """Builds a U-Net: x [1, 3, 256, 256] to scores of two classes a pixel [1, 2, 256, 256]."""
    to, x, before = Writer(), "x", 3
    skips = []
    for channels in CHANNELS[:-1]:
        x = _twice(to, x, (before, channels))
        skips.append(x)
        x = to.node("MaxPool", [x], {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0] * 4, "ceil_mode": 0})
        before = channels
    x = _twice(to, x, (before, CHANNELS[-1]))
    for channels, skip in zip(reversed(CHANNELS[:-1]), reversed(skips), strict=True):
        x = to.node("Concat", [skip, _doubled(to, x, (2 * channels, channels))], {"axis": 1})
        x = _twice(to, x, (2 * channels, channels))
    return to.model("unet", (1, 3, IMAGE, IMAGE), {to.conv(x, (CHANNELS[0], CLASSES), 1): (1, CLASSES, IMAGE, IMAGE)})


def _twice(to: Writer, x: str, channels: tuple[int, int]) -> str:
    before, after = channels
    x = to.node("Relu", [to.conv(x, (before, after), 3)])
    return to.node("Relu", [to.conv(x, (after, after), 3)])


def _doubled(to: Writer, x: str, channels: tuple[int, int]) -> str:
    """Adds an up-convolution: a transposed convolution of 2x2 that doubles height and width."""
    before, after = channels
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0] * 4, "dilations": [1, 1], "group": 1}
    return to.node("ConvTranspose", [x, to.zeros(before, after, 2, 2), to.zeros(after)], attributes)
