"""ConvNeXt-atto (Liu et al. 2022; the size is that of timm, whose blocks have convolutions as linear layers)."""

from engine.onnx.library import ModelProto
from tools.networks.writer import CLASSES, Writer, window

IMAGE, STEM = 224, 4
STAGES = ((40, 2), (80, 2), (160, 6), (320, 2))
"""Channels and blocks."""
KERNEL, EXPANSION = 7, 4
EPSILON = 1e-6


def convnext_atto() -> ModelProto:
    """Builds ConvNeXt-atto: x [1, 3, 224, 224] to 1000 classes, without a softmax."""
    to = Writer()
    first, last = STAGES[0][0], STAGES[-1][0]
    x, before = _norm(to, _patches(to, "x", (3, first), STEM), first), first
    for channels, blocks in STAGES:
        if channels != before:
            x = _patches(to, _norm(to, x, before), (before, channels), 2)
        for _ in range(blocks):
            x = _block(to, x, channels)
        before = channels
    means = _norm(to, to.node("GlobalAveragePool", [x]), last)
    y = to.classifier(to.node("Flatten", [means], {"axis": 1}), last)
    return to.model("convnext_atto", (1, 3, IMAGE, IMAGE), {y: (1, CLASSES)})


def _patches(to: Writer, x: str, channels: tuple[int, int], size: int) -> str:
    """Adds a convolution of patches that do not overlap."""
    before, after = channels
    return to.node("Conv", [x, to.zeros(after, before, size, size), to.zeros(after)], window(size, size, 0))


def _block(to: Writer, x: str, channels: int) -> str:
    """Adds a block: a 7x7 filter a channel, a normalization, two linear layers, and a scale for each channel."""
    y = _norm(to, to.conv(x, (channels, channels), KERNEL, groups=channels), channels)
    y = to.gelu(to.conv(y, (channels, EXPANSION * channels), 1))
    y = to.conv(y, (EXPANSION * channels, channels), 1)
    return to.node("Add", [to.node("Mul", [y, to.zeros(1, channels, 1, 1)]), x])


def _norm(to: Writer, x: str, channels: int) -> str:
    """Adds a layer normalization of the channels, which PyTorch moves behind for it and back."""
    return to.transpose(to.layer_norm(to.transpose(x, 0, 2, 3, 1), channels, EPSILON), 0, 3, 1, 2)
