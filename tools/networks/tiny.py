"""Two networks of MLPerf Tiny (Banbury et al. 2021) for microcontrollers: keyword spotting and visual wake words.

The first is DS-CNN (Zhang et al. 2017, "Hello Edge"), the second MobileNet v1 (Howard et al. 2017) of width 0.25 for
96 x 96 pixels. Their normalizations are folded into convolutions, which are padded as TensorFlow's "same".
"""

from engine.onnx.library import ModelProto
from tools.networks.writer import Writer

FRAMES, FEATURES, FILTERS, KEYWORDS = 49, 10, 64, 12
"""The spectrogram, the channels of each layer, and the classes of DS-CNN."""
SEPARABLE = 4
IMAGE, PERSONS = 96, 2
FIRST = 8
BLOCKS = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1))
"""Channels and stride of each separable convolution: a quarter of table 1 of the MobileNet paper."""


def keyword_spotter() -> ModelProto:
    """Builds DS-CNN: x [1, 1, 49, 10] to the probabilities of 12 classes."""
    to = Writer()
    x = _conv(to, "x", (1, FILTERS), (10, 4), 2)
    for _ in range(SEPARABLE):
        x = _separable(to, x, (FILTERS, FILTERS), 1)
    x = to.node("GlobalAveragePool", [x])
    return _classified(to, "keyword_spotter", x, (1, 1, FRAMES, FEATURES), (FILTERS, KEYWORDS))


def person_detector() -> ModelProto:
    """Builds MobileNet v1 0.25: x [1, 3, 96, 96] to the probabilities of a person and of none."""
    to = Writer()
    x, channels = _conv(to, "x", (3, FIRST), (3, 3), 2), FIRST
    for wide, stride in BLOCKS:
        x, channels = _separable(to, x, (channels, wide), stride), wide
    x = to.node("GlobalAveragePool", [x])
    return _classified(to, "person_detector", x, (1, 3, IMAGE, IMAGE), (channels, PERSONS))


def _conv(
    to: Writer, x: str, channels: tuple[int, int], kernel: tuple[int, int], stride: int = 1, *, groups: int = 1
) -> str:
    """Adds a convolution with a bias and a ReLU."""
    before, after = channels
    sizes = {"kernel_shape": list(kernel), "strides": [stride] * 2, "auto_pad": "SAME_UPPER", "group": groups}
    weights = to.zeros(after, before // groups, *kernel)
    return to.node("Relu", [to.node("Conv", [x, weights, to.zeros(after)], sizes)])


def _separable(to: Writer, x: str, channels: tuple[int, int], stride: int) -> str:
    """Adds a 3 x 3 filter a channel and a convolution of single pixels."""
    x = _conv(to, x, (channels[0], channels[0]), (3, 3), stride, groups=channels[0])
    return _conv(to, x, channels, (1, 1))


def _classified(to: Writer, name: str, x: str, shape: tuple[int, ...], sizes: tuple[int, int]) -> ModelProto:
    logits = to.classifier(to.node("Flatten", [x], {"axis": 1}), *sizes)
    return to.model(name, shape, {to.node("Softmax", [logits], {"axis": 1}): (1, sizes[1])})
