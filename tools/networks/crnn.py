"""CRNN, a text recogniser (Shi, Bai and Yao 2015): convolutions over a line of text, and two LSTMs along it."""

from typing import Any

from engine.onnx.library import ModelProto
from tools.networks.writer import Writer, window

HEIGHT, WIDTH = 32, 100
CONVOLUTIONS = ((64, "2x2"), (128, "2x2"), (256, ""), (256, "2x1"), (512, ""), (512, "2x1"))
"""Channels, and the stride of the pool behind: table 1 of the paper. The last convolution has a 2x2 kernel."""
CHANNELS, HIDDEN, CHARACTERS = 512, 256, 37
"""Channels of the sequence, units of a direction, and letters, digits and the blank."""
STEPS = WIDTH // 4 + 1


def crnn() -> ModelProto:
    """Builds CRNN: a line of text x [1, 1, 32, 100] to scores of 37 characters at 26 steps [26, 1, 37]."""
    to, x, before = Writer(), "x", 1
    for channels, pool in CONVOLUTIONS:
        x = to.node("Relu", [to.conv(x, (before, channels), 3)])
        if pool:
            x = to.node("MaxPool", [x], _pool(pool))
        before = channels
    last = to.node("Conv", [x, to.zeros(CHANNELS, before, 2, 2), to.zeros(CHANNELS)], window(2, 1, 0))
    steps = to.transpose(to.node("Squeeze", [to.node("Relu", [last]), to.integers(2)]), 2, 0, 1)
    hidden = _recurrent(to, steps, CHANNELS, HIDDEN)
    y = _recurrent(to, hidden, HIDDEN, CHARACTERS)
    return to.model("crnn", (1, 1, HEIGHT, WIDTH), {y: (STEPS, 1, CHARACTERS)})


def _pool(stride: str) -> dict[str, Any]:
    """Returns the attributes of a pool; one that keeps the width has a column of padding on both sides."""
    narrow = stride == "2x1"
    pads = [0, 1, 0, 1] if narrow else [0] * 4
    return {"kernel_shape": [2, 2], "strides": [2, 1 if narrow else 2], "pads": pads, "ceil_mode": 0}


def _recurrent(to: Writer, x: str, inputs: int, outputs: int) -> str:
    """Adds an LSTM of both directions and a linear layer of what both give."""
    weights = to.zeros(2, 4 * HIDDEN, inputs), to.zeros(2, 4 * HIDDEN, HIDDEN), to.zeros(2, 8 * HIDDEN)
    states = to.zeros(2, 1, HIDDEN), to.zeros(2, 1, HIDDEN)
    attributes = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    hidden = to.node("LSTM", [x, *weights, "", *states], attributes)
    rows = to.reshape(to.transpose(hidden, 0, 2, 1, 3), STEPS, 2 * HIDDEN)
    return to.reshape(to.classifier(rows, 2 * HIDDEN, outputs), STEPS, 1, outputs)
