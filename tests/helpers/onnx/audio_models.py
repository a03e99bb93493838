"""ONNX models of sound whose windows and strides are long: samples of a second are many, frames are few."""

from typing import Any

import numpy as np
from onnx import ValueInfoProto, helper, numpy_helper

from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import Dims, model, node, value

CHANNELS, STATE = 6, 5
_TAPS = {16000: (256, 128), 8000: (128, 64)}
"""Window and stride of the first convolution of the detector, by rate."""


def strided_encoder(dims: Dims) -> Any:
    """Returns seven convolutions, as in wav2vec: 400 samples make the first frame, and 320 more each other one."""
    x, nodes, weights = "x", [], {}
    for i, (window, stride) in enumerate(zip((10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2), strict=True)):
        weights[f"w{i}"] = _random((CHANNELS, CHANNELS if i else 1, window))
        nodes += [node("Conv", [x, f"w{i}"], [f"c{i}"], strides=[stride]), node("Relu", [f"c{i}"], [f"h{i}"])]
        x = f"h{i}"
    return model([*nodes, node("Transpose", [x], perm=[0, 2, 1])], [value("x", dims)], initializers=weights)


def long_window(dims: Dims, window: int = 512) -> Any:
    """Returns one convolution whose stride is its window."""
    weights = {"w": _random((CHANNELS, 1, window))}
    return model([node("Conv", ["x", "w"], strides=[window])], [value("x", dims)], initializers=weights)


def voice_detector(batch: str, time: str) -> Any:
    """Returns a detector with a state: a spectrum, three convolutions and an LSTM over all frames, for two rates.

    The rate is an input, which an If reads.
    """
    inputs = [value("x", (batch, time)), value("state", (2, batch, STATE)), value("rate", (), np.int64)]
    bodies = {name: _detector_body(rate) for name, rate in (("then_branch", 16000), ("else_branch", 8000))}
    nodes = [node("Equal", ["rate", "fast"], ["is_fast"]), node("If", ["is_fast"], ["y", "after"], **bodies)]
    return model(nodes, inputs, ["y", "after"], {"fast": np.asarray(16000)})


def squeezed_detector(batch: str, time: str, *, has_lstm: bool = True) -> Any:
    """Returns a network that takes its frames away where there is one, as PyTorch exports `squeeze`.

    An LSTM behind takes nothing else.
    """
    nodes = [
        *_frames("", "x", 16000),
        node("Shape", ["frames"], ["shape"]),
        node("Gather", ["shape", "last"], ["count"]),
        node("Equal", ["count", "one"], ["is_one"]),
        node("If", ["is_one"], ["row"], then_branch=_body([node("Squeeze", ["frames", "axis"], ["row1"])], ["row1"]),
             else_branch=_body([node("Identity", ["frames"], ["row2"])], ["row2"])),
    ]  # fmt: skip
    if has_lstm:
        nodes += [node("Unsqueeze", ["row", "front"], ["sequence"]), *_lstm("", "sequence")]
    ints = {"last": np.asarray(2), "one": np.asarray(1), "axis": np.asarray([2]), "front": np.asarray([0])}
    weights = _weights("", 16000) | ints
    return model(nodes, [value("x", (batch, time))], ["y0" if has_lstm else "row"], weights)


def _detector_body(rate: int) -> Any:
    mark = f"{rate}_"
    nodes = [
        *_frames(mark, "x", rate),
        node("Transpose", [f"{mark}frames"], [f"{mark}sequence"], perm=[2, 0, 1]),
        node("Split", ["state", f"{mark}halves"], [f"{mark}h", f"{mark}c"], axis=0),
        *_lstm(mark, f"{mark}sequence", f"{mark}h", f"{mark}c"),
        node("ReduceMean", [f"{mark}y0"], [f"{mark}score"], axes=[0, 1, 3], keepdims=0),
        node("Concat", [f"{mark}h1", f"{mark}c1"], [f"{mark}after"], axis=0),
    ]
    return _body(nodes, [f"{mark}score", f"{mark}after"], {**_weights(mark, rate), f"{mark}halves": np.asarray([1, 1])})


def _frames(mark: str, x: str, rate: int) -> list[Any]:
    """Returns the nodes that make `frames` (batch, channels, frames) of samples (batch, time)."""
    wave, spectrum, power, *inner = (f"{mark}{stem}" for stem in ("wave", "spectrum", "power", "f1", "f2", "f3", "f4"))
    return [
        node("Unsqueeze", [x, f"{mark}channel"], [wave]),
        node("Conv", [wave, f"{mark}taps"], [spectrum], strides=[_TAPS[rate][1]]),
        node("Mul", [spectrum, spectrum], [power]),
        node("Conv", [power, f"{mark}w1"], [inner[0]], strides=[2], pads=[1, 1]),
        node("Relu", inner[:1], inner[1:2]),
        node("Conv", [inner[1], f"{mark}w2"], [inner[2]], strides=[2], pads=[1, 1]),
        node("Relu", inner[2:3], inner[3:4]),
        node("Conv", [inner[3], f"{mark}w3"], [f"{mark}frames"], strides=[2], pads=[1, 1]),
    ]


def _lstm(mark: str, x: str, *states: str) -> list[Any]:
    inputs = [x, f"{mark}W", f"{mark}R", *(["", "", *states] if states else [])]
    return [node("LSTM", inputs, [f"{mark}y0", f"{mark}h1", f"{mark}c1"], hidden_size=STATE)]


def _weights(mark: str, rate: int) -> dict[str, Array]:
    arrays = {
        "channel": np.asarray([1]),
        "taps": _random((CHANNELS, 1, _TAPS[rate][0])),
        "w1": _random((CHANNELS, CHANNELS, 3)),
        "w2": _random((CHANNELS, CHANNELS, 3)),
        "w3": _random((CHANNELS, CHANNELS, 3)),
        "W": _random((1, 4 * STATE, CHANNELS)),
        "R": _random((1, 4 * STATE, STATE)),
    }
    return {mark + name: array for name, array in arrays.items()}


def _body(nodes: list[Any], outputs: list[str], arrays: dict[str, Array] | None = None) -> Any:
    tensors = [numpy_helper.from_array(array, name) for name, array in (arrays or {}).items()]
    return helper.make_graph(nodes, "body", [], [ValueInfoProto(name=name) for name in outputs], tensors)


def _random(shape: tuple[int, ...]) -> Array:
    random = np.random.default_rng(shape)
    return (random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)
