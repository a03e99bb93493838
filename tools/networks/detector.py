"""Tiny YOLOv3 (Redmon and Farhadi 2018) with non-maximum suppression in the file: data decide how many boxes leave it.

Batch normalizations stay, as in the model of the ONNX model zoo.
"""

import numpy as np
from onnx import TensorProto

from engine.onnx.library import ModelProto
from engine.onnx.seeded import seed_weights
from tools.networks.writer import Writer, window

IMAGE, CLASSES = 416, 80
BACKBONE = ((16, 2), (32, 2), (64, 2), (128, 2), (256, 2), (512, 1), (1024, 0))
"""Channels, and the stride of the pool behind; 0: none. The first head reads the features of stride 16 as well."""
SKIP = 4
NARROW = 256
ANCHORS = (((81, 82), (135, 169), (344, 319)), ((10, 14), (23, 27), (37, 58)))
"""Width and height in pixels, for the cells of stride 32 and of stride 16."""
STRIDES = (32, 16)
MOST, OVERLAP, LEAST = 20, 0.5, 0.8
"""Most boxes of a class, and both thresholds. Random weights make many scores high; hence so high a least score."""


def detector() -> ModelProto:
    """Builds a detector with seeded weights: x [1, 3, 416, 416] to "boxes" [n, 4], "scores" [n] and "classes" [n].

    Sizes must follow from shapes where weights are seeded; so the tail is written behind the seeded backbone.
    """
    to = Writer()
    cells = [IMAGE // stride for stride in STRIDES]
    depth = len(ANCHORS[0]) * (5 + CLASSES)
    heads = _heads(to, depth)
    shapes = {head: (1, depth, size, size) for head, size in zip(heads, cells, strict=True)}
    seeded = seed_weights(to.model("backbone", (1, 3, IMAGE, IMAGE), shapes))
    tail = Writer(list(seeded.graph.node), list(seeded.graph.initializer))
    return _suppressed(tail, [_decoded(tail, head, i) for i, head in enumerate(heads)])


def _heads(to: Writer, depth: int) -> tuple[str, str]:
    """Adds the convolutions. Returns the heads of stride 32 and 16: boxes and scores of three anchors a cell."""
    x, before, skip = "x", 3, ""
    for i, (channels, stride) in enumerate(BACKBONE):
        x = _conv(to, x, (before, channels), 3)
        skip = x if i == SKIP else skip
        if stride:
            attributes = {"kernel_shape": [2, 2], "strides": [stride] * 2, "auto_pad": "SAME_UPPER"}
            x = to.node("MaxPool", [x], attributes)
        before = channels
    x = _conv(to, x, (before, NARROW), 1)
    coarse = to.conv(_conv(to, x, (NARROW, 512), 3), (512, depth), 1)
    wide = to.doubled(_conv(to, x, (NARROW, 128), 1))
    both = to.node("Concat", [wide, skip], {"axis": 1})
    return coarse, to.conv(_conv(to, both, (128 + BACKBONE[SKIP][0], 256), 3), (256, depth), 1)


def _conv(to: Writer, x: str, channels: tuple[int, int], kernel: int) -> str:
    """Adds a convolution without a bias, a batch normalization and a leaky ReLU."""
    before, after = channels
    attributes = window(kernel, 1, kernel // 2)
    x = to.node("Conv", [x, to.zeros(after, before, kernel, kernel)], attributes)
    x = to.node("BatchNormalization", [x, *(to.zeros(after) for _ in range(4))], {"epsilon": 1e-5})
    return to.node("LeakyRelu", [x], {"alpha": 0.1})


def _decoded(to: Writer, head: str, scale: int) -> tuple[str, str]:
    """Adds what makes boxes [1, n, 4], as corners, and scores [1, n, 80] of a head."""
    size, anchors = IMAGE // STRIDES[scale], ANCHORS[scale]
    count = len(anchors) * size * size
    values = to.transpose(to.reshape(head, 1, len(anchors), 5 + CLASSES, size, size), 0, 1, 3, 4, 2)
    parts = to.split(values, (2, 2, 1, CLASSES), axis=-1)
    y, x = np.mgrid[:size, :size].astype(np.float32)
    grid = np.stack([x, y], axis=-1).reshape(1, 1, size, size, 2)
    middle = to.node("Add", [to.node("Sigmoid", [parts[0]]), to.array(grid)])
    middle = to.node("Mul", [middle, to.number(STRIDES[scale])])
    sizes = np.array(anchors, np.float32).reshape(1, len(anchors), 1, 1, 2)
    half = to.node("Div", [to.node("Mul", [to.node("Exp", [parts[1]]), to.array(sizes)]), to.number(2)])
    corners = to.node("Sub", [middle, half]), to.node("Add", [middle, half])
    boxes = to.reshape(to.node("Concat", corners, {"axis": -1}), 1, count, 4)
    scores = to.node("Mul", [to.node("Sigmoid", [parts[2]]), to.node("Sigmoid", [parts[3]])])
    return boxes, to.reshape(scores, 1, count, CLASSES)


def _suppressed(to: Writer, heads: list[tuple[str, str]]) -> ModelProto:
    """Adds the suppression, and gathers what it selects."""
    boxes, scores = (to.node("Concat", parts, {"axis": 1}) for parts in zip(*heads, strict=True))
    by_class = to.transpose(scores, 0, 2, 1)
    limits = to.index(MOST), to.number(OVERLAP), to.number(LEAST)
    selected = to.node("NonMaxSuppression", [boxes, by_class, *limits])
    numbers = to.node("Gather", [selected, to.index(2)], {"axis": 1})
    flat = to.node("Squeeze", [boxes, to.integers(0)])
    classes = to.node("Gather", [selected, to.index(1)], {"axis": 1})
    outputs = {
        to.node("Gather", [flat, numbers], {"axis": 0}, "boxes"): ("selected", 4),
        to.node("GatherND", [by_class, selected], output="scores"): ("selected",),
        to.node("Cast", [classes], {"to": TensorProto.FLOAT}, "classes"): ("selected",),
    }
    return to.model("detector", (1, 3, IMAGE, IMAGE), outputs)
