"""Fourier transforms against numpy's, and against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.onnx.load import load_onnx
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, run_ours, value


def _signal(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def _complex(x: Array) -> Array:
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def _parts(z: Array) -> Array:
    return np.stack([z.real, z.imag], -1)


def _agrees(proto: Any, x: Array, tolerance: float) -> bool:
    """Returns whether the model gives what onnxruntime gives."""
    (ours,), (theirs,) = run_ours(proto, {"x": x}), run_onnxruntime(proto, {"x": x})
    return ours.shape == theirs.shape and np.allclose(ours, theirs, atol=tolerance)


def _dft(x: Array, axis: int, length: int, **attrs: Any) -> tuple[Any, Array]:
    """Returns the model of a transform, and numpy's result; a length of 0 leaves it out."""
    proto = model(
        [node("DFT", ["x", "n" if length else "", "a"], **attrs)],
        [value("x", x.shape, x.dtype)],
        initializers={"a": np.int64(axis), **({"n": np.int64(length)} if length else {})},
        opset=20,
    )
    z, n, at = _complex(x), length or None, axis if axis >= 0 else axis + 1
    if attrs["onesided"]:
        wanted = np.fft.irfft(z, n, at)[..., None] if attrs["inverse"] else _parts(np.fft.rfft(z, n, at))
    else:
        wanted = _parts((np.fft.ifft if attrs["inverse"] else np.fft.fft)(z, n, at))
    return proto, wanted


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_transforms_are_those_of_numpy(data: st.DataObject) -> None:
    onesided, inverse = data.draw(st.booleans()), data.draw(st.booleans())
    parts = 1 + inverse if onesided else data.draw(st.integers(1, 2))
    shape = data.draw(st.lists(st.integers(2, 9), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape) - 1, len(shape) - 1).filter(lambda a: a != -1))
    x = _signal(*shape, parts, dtype=np.float64)
    length = data.draw(st.sampled_from((0, 2, 5, 12)))
    proto, wanted = _dft(x, axis, length, onesided=int(onesided), inverse=int(inverse))
    (y,) = run_ours(proto, {"x": x})
    assert y.shape == wanted.shape
    assert np.allclose(y, wanted, atol=1e-9)


@pytest.mark.parametrize(
    ("shape", "attrs"),
    [((3, 16, 1), {"onesided": 1}), ((3, 16, 2), {"inverse": 1}), ((2, 15, 1), {}), ((2, 6, 5, 2), {"axis": 2})],
)
def test_transforms_are_those_of_onnxruntime(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    proto = model([node("DFT", ["x"], **attrs)], [value("x", shape)], opset=17)
    x = _signal(*shape)
    assert _agrees(proto, x, 2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
def test_windows_that_slide_are_those_of_onnxruntime(onesided: int, windowed: bool) -> None:
    initializers = {"step": np.int64(5), "length": np.int64(16)}
    window = {"w": np.hanning(16).astype(np.float32)} if windowed else {}
    proto = model(
        [node("STFT", ["x", "step", "w" if windowed else "", "length"], onesided=onesided)],
        [value("x", (2, 64, 1))],
        initializers={**initializers, **window},
    )
    x = _signal(2, 64, 1)
    assert _agrees(proto, x, 2e-5)


def test_a_signal_of_open_length_has_as_many_frames_as_fit() -> None:
    proto = model(
        [node("STFT", ["x", "step", "w"])],
        [value("x", ("batch", "samples", 1))],
        initializers={"step": np.int64(4), "w": np.hanning(8).astype(np.float32)},
    )
    exe = engine.compile(load_onnx(proto))
    for samples in (8, 11, 40):
        x = _signal(3, samples, 1)
        frames = np.lib.stride_tricks.sliding_window_view(x[..., 0], 8, 1)[:, ::4]
        wanted = _parts(np.fft.rfft(frames * np.hanning(8), axis=-1))
        assert np.allclose(exe.run({"x": x})["y"], wanted, atol=1e-5)


def test_a_transform_along_an_axis_beside_open_ones() -> None:
    proto = model([node("DFT", ["x"], axis=1, onesided=1)], [value("x", ("n", 8, "m", 1))])
    x = _signal(2, 8, 3, 1)
    y = engine.compile(load_onnx(proto)).run({"x": x})["y"]
    assert np.allclose(y, _parts(np.fft.rfft(x[..., 0], axis=1)), atol=1e-5)


def _mel(bins: int, length: int, rate: int, low: float, high: float) -> Any:
    """Returns a model of mel weights, and of a number that is added."""
    numbers = {"b": np.int64(bins), "n": np.int64(length), "r": np.int64(rate)}
    edges = {"l": np.float32(low), "h": np.float32(high)}
    mel = node("MelWeightMatrix", ["b", "n", "r", "l", "h"], ["m"])
    return model([mel, node("Add", ["m", "x"])], [value("x", (1,))], initializers={**numbers, **edges})


def test_mel_weights_are_those_of_onnxruntime() -> None:
    for numbers in ((8, 16, 8192, 0.0, 4096.0), (40, 512, 16000, 20.0, 7600.0)):
        assert _agrees(_mel(*numbers), np.zeros(1, np.float32), 1e-6)


@pytest.mark.parametrize("numbers", [(0, 0.0, 9.0), (8192, -1000.0, 9.0), (8192, 0.0, np.inf), (8192, np.nan, 9.0)])
def test_edges_that_are_no_frequencies_are_refused(numbers: tuple[int, float, float]) -> None:
    with pytest.raises(ModelError, match="are no mel bins"):
        load_onnx(_mel(8, 16, *numbers))


@pytest.mark.parametrize(
    ("proto", "kind", "message"),
    [
        (model([node("DFT", ["x"], axis=1)], [value("x", (2, "n", 1))]), UnsupportedError, "its length n is left open"),
        (model([node("DFT", ["x"], axis=1)], [value("x", (2, 8, 3))]), UnsupportedError, "1 element .* and has 3"),
        (model([node("DFT", ["x"], axis=2)], [value("x", (2, 8, 1))]), ModelError, "cannot be transformed"),
        (model([node("DFT", ["x"], onesided=1)], [value("x", (2, 8, 2))]), ModelError, "onesided transforms real"),
        (model([node("DFT", ["x"])], [value("x", (1, 10_000, 1))]), UnsupportedError, "10000 points is a matrix"),
        (
            model([node("STFT", ["x", "s"])], [value("x", (2, 8, 1))], initializers={"s": np.int64(0)}),
            ModelError,
            "frame_step is 0",
        ),
    ],
)
def test_what_cannot_be_transformed_is_refused(proto: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        load_onnx(proto)
