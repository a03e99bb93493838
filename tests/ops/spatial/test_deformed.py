"""Deformable convolutions, against onnxruntime and against plain convolutions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from ops.schema.schema import evaluate
from ops.spatial.deformed import DEFORMED_WINDOWS
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, run_ours, value
from tests.helpers.ops.kernel_checks import check_no_allocation, check_strides, kernels, run, sign
from tests.helpers.ops.sample_arrays import SEEDS

_NAMES = ("x", "w", "o", "b", "m")


def _case(data: st.DataObject) -> tuple[dict[str, Array], dict[str, Any]]:
    """Draws the operands of a DeformConv, by name, and its attributes."""
    kernel = data.draw(st.tuples(*[st.integers(1, 3)] * 2))
    attrs: dict[str, Any] = {
        "strides": data.draw(st.tuples(*[st.integers(1, 2)] * 2)),
        "dilations": data.draw(st.tuples(*[st.integers(1, 2)] * 2)),
        "pads": data.draw(st.tuples(*[st.integers(0, 2)] * 4)),
        "group": data.draw(st.integers(1, 2)),
        "offset_group": data.draw(st.integers(1, 2)),
    }
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, attrs["dilations"], strict=True)]
    sizes = [data.draw(st.integers(e, e + 4)) for e in extents]
    padded = [n + attrs["pads"][i] + attrs["pads"][i + 2] for i, n in enumerate(sizes)]
    outputs = [(n - e) // s + 1 for n, e, s in zip(padded, extents, attrs["strides"], strict=True)]
    images, taps, groups = data.draw(st.integers(1, 2)), int(np.prod(kernel)), attrs["offset_group"]
    random = np.random.default_rng(data.draw(SEEDS))
    shapes = {
        "x": (images, 4, *sizes),
        "w": (6, 4 // attrs["group"], *kernel),
        "o": (images, groups * taps * 2, *outputs),
        "b": (6,),
        "m": (images, groups * taps, *outputs),
    }
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}, attrs


def _model(shapes: dict[str, Any], attrs: dict[str, Any]) -> Any:
    names = [name if name in shapes else "" for name in _NAMES]
    return model([node("DeformConv", names, **attrs)], [value(n, s) for n, s in shapes.items()], opset=19)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_deformable_convolutions_are_those_of_onnxruntime(data: st.DataObject) -> None:
    feeds, attrs = _case(data)
    left_out = data.draw(st.sets(st.sampled_from("bm")))
    feeds = {name: array for name, array in feeds.items() if name not in left_out}
    feeds["o"] = feeds["o"] * data.draw(st.sampled_from([0, 1, 3]))
    proto = _model({name: array.shape for name, array in feeds.items()}, attrs)
    (ours,), (theirs,) = run_ours(proto, feeds), run_onnxruntime(proto, feeds)
    assert ours.shape == theirs.shape
    assert np.allclose(ours, theirs, atol=2e-4)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_without_offsets_it_is_a_convolution(data: st.DataObject) -> None:
    feeds, attrs = _case(data)
    del feeds["m"]
    feeds["o"] = np.zeros_like(feeds["o"])
    (ours,) = run_ours(_model({name: array.shape for name, array in feeds.items()}, attrs), feeds)
    plain = {n: v for n, v in attrs.items() if n != "offset_group"}
    inputs = [value(n, feeds[n].shape) for n in "xwb"]
    (wanted,) = run_ours(model([node("Conv", ["x", "w", "b"], **plain)], inputs), {n: feeds[n] for n in "xwb"})
    assert np.allclose(ours, wanted, atol=1e-5)


def test_images_of_open_lengths() -> None:
    dims = {"x": ("n", 2, "h", "w"), "w": (3, 2, 3, 3), "o": ("n", 18, "h", "w")}
    executable = engine.compile(engine.load_onnx(_model(dims, {"pads": (1, 1, 1, 1)})))
    for n, h, w in ((1, 4, 5), (3, 6, 3)):
        shapes = {"x": (n, 2, h, w), "w": (3, 2, 3, 3), "o": (n, 18, h, w)}
        random = np.random.default_rng(h)
        feeds = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        (theirs,) = run_onnxruntime(_model(shapes, {"pads": (1, 1, 1, 1)}), feeds)
        assert np.allclose(executable.run(feeds)["y"], theirs, atol=1e-4)


def test_a_whole_offset_moves_the_elements_and_what_is_outside_is_0() -> None:
    x = np.arange(1.0, 13).reshape(1, 1, 3, 4)
    offset = np.zeros((1, 2, 3, 4))
    offset[:, 0] = 1
    (y,) = evaluate(DEFORMED_WINDOWS, x, offset, kernel_shape=(1, 1))
    assert y[0, 0].tolist() == [[5, 6, 7, 8], [9, 10, 11, 12], [0, 0, 0, 0]]
    (y,) = evaluate(DEFORMED_WINDOWS, x, offset / 2, kernel_shape=(1, 1))
    assert y[0, 0, :, 0].tolist() == [3, 7, 4.5]
    (y,) = evaluate(DEFORMED_WINDOWS, x, offset * 1e300, kernel_shape=(1, 1))
    assert not y.any()


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_compiled_windows_have_the_numbers_of_those_of_numpy(data: st.DataObject) -> None:
    feeds, attrs = _case(data)
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    operands = [(feeds[n] * (5 if n == "o" else 1)).astype(dtype) for n in data.draw(st.sampled_from(["xo", "xom"]))]
    attrs = {n: v for n, v in attrs.items() if n != "group"} | {"kernel_shape": feeds["w"].shape[2:]}
    signature = sign(DEFORMED_WINDOWS, operands, attrs)
    (compiled,), (plain,) = (run(kernel, signature, operands) for kernel in kernels(DEFORMED_WINDOWS, signature))
    np.testing.assert_array_equal(compiled, plain)


def test_bits_do_not_depend_on_strides_and_nothing_is_allocated() -> None:
    random = np.random.default_rng(0)
    shapes = (2, 4, 20, 30), (2, 36, 20, 30), (2, 18, 20, 30)
    arrays = [random.standard_normal(s).astype(np.float32) for s in shapes]
    attrs: dict[str, Any] = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "offset_group": 2}
    check_strides(DEFORMED_WINDOWS, arrays, **attrs)
    check_no_allocation(DEFORMED_WINDOWS, arrays, **attrs)


X, OFFSET = np.zeros((1, 2, 3, 3)), np.zeros((1, 2, 3, 3))


@pytest.mark.parametrize(
    ("operands", "attrs", "message"),
    [
        ([X, OFFSET[:, :1]], {}, r"not \(1, 2, 3, 3\)"),
        ([X, OFFSET, OFFSET], {}, r"not \(1, 1, 3, 3\)"),
        ([X, OFFSET], {"offset_group": 3}, "2 channels are no multiple"),
        ([X, OFFSET], {"offset_group": 0}, "offset_group is 0"),
        ([X, OFFSET.astype("f4")], {}, "takes float32 or float64 for all inputs"),
        ([X[..., 0], OFFSET], {}, r"takes images \(N, C, H, W\)"),
        ([X[..., :0], OFFSET], {}, "nothing to sample"),
        ([X, OFFSET], {"kernel_shape": (2**31, 1)}, "kernel_shape"),
    ],
)
def test_operands_that_do_not_fit_are_refused(operands: list[Array], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(DEFORMED_WINDOWS, *operands, **({"kernel_shape": (1, 1)} | attrs))
