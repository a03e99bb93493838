"""Each operator whose meaning or form has changed, in each of its versions, against onnxruntime."""

from typing import Any

import numpy as np
import pytest

from engine.onnx.load import load_onnx
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, run_ours, value

Case = tuple[int, Any, tuple[int, ...], dict[str, Any]]


def _array(*shape: int) -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def _ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


_STATS = {name: _array(4) ** 2 + np.float32(0.5) for name in ("s", "b", "m", "v")}
CASES: dict[str, Case] = {
    "Softmax flattens before 13": (11, node("Softmax", ["x"], axis=1), (2, 3, 4), {}),
    "Softmax flattens at a negative axis": (11, node("Softmax", ["x"], axis=-1), (2, 3, 4), {}),
    "Softmax flattens by default at 1": (9, node("Softmax", ["x"]), (2, 3, 4), {}),
    "Softmax from 13 on": (13, node("Softmax", ["x"]), (2, 3, 4), {}),
    "LogSoftmax flattens before 13": (12, node("LogSoftmax", ["x"], axis=2), (2, 3, 4), {}),
    "Hardmax flattens before 13": (11, node("Hardmax", ["x"], axis=1), (2, 3, 4), {}),
    "Squeeze with axes as attribute": (11, node("Squeeze", ["x"], axes=[0, -1]), (1, 3, 1), {}),
    "Squeeze of everything": (11, node("Squeeze", ["x"]), (1, 3, 1), {}),
    "Squeeze with axes as input": (13, node("Squeeze", ["x", "a"]), (1, 3, 1), {"a": _ints(-1)}),
    "Unsqueeze with axes as attribute": (11, node("Unsqueeze", ["x"], axes=[0, 3]), (2, 3), {}),
    "Unsqueeze with axes as input": (13, node("Unsqueeze", ["x", "a"]), (2, 3), {"a": _ints(-1, 0)}),
    "ReduceSum with axes as attribute": (11, node("ReduceSum", ["x"], axes=[1], keepdims=0), (2, 3, 4), {}),
    "ReduceSum over everything": (9, node("ReduceSum", ["x"]), (2, 3, 4), {}),
    "ReduceSum with axes as input": (13, node("ReduceSum", ["x", "a"]), (2, 3, 4), {"a": _ints(0, -1)}),
    "ReduceSum of nothing": (13, node("ReduceSum", ["x"], noop_with_empty_axes=1), (2, 3), {}),
    "ReduceMax with axes as attribute": (13, node("ReduceMax", ["x"], axes=[-1]), (2, 3, 4), {}),
    "ReduceMean with axes as input": (18, node("ReduceMean", ["x", "a"], keepdims=0), (2, 3), {"a": _ints(1)}),
    "Split evenly": (11, node("Split", ["x"], ["y", "z"], axis=1), (2, 4), {}),
    "Split by attribute": (11, node("Split", ["x"], ["y", "z"], axis=-1, split=[1, 3]), (2, 4), {}),
    "Split by input": (13, node("Split", ["x", "n"], ["y", "z"], axis=1), (2, 4), {"n": _ints(3, 1)}),
    "Split into a shorter last part": (18, node("Split", ["x"], ["y", "z"], num_outputs=2), (5, 2), {}),
    "Clip by attributes": (6 + 1, node("Clip", ["x"], min=-0.5, max=0.25), (2, 4), {}),
    "Clip by one attribute": (10, node("Clip", ["x"], max=0.25), (2, 4), {}),
    "Clip by one input": (13, node("Clip", ["x", "", "h"]), (2, 4), {"h": np.asarray(0.1, np.float32)}),
    "Slice by attributes": (9, node("Slice", ["x"], starts=[1, -3], ends=[9, -1], axes=[0, 1]), (3, 4), {}),
    "Slice by attributes on the first axes": (9, node("Slice", ["x"], starts=[1], ends=[3]), (3, 4), {}),
    "Slice by inputs": (
        10,
        node("Slice", ["x", "s", "e", "a", "t"]),
        (3, 4),
        {"s": _ints(-1), "e": _ints(-(2**62)), "a": _ints(1), "t": _ints(-2)},
    ),
    "Pad by attributes": (10, node("Pad", ["x"], pads=[0, 1, 2, 0], value=1.5), (2, 3), {}),
    "Pad with the border": (10, node("Pad", ["x"], pads=[0, 1, 0, 1], mode="reflect"), (2, 3), {}),
    "Pad by inputs": (
        13,
        node("Pad", ["x", "p", "c"]),
        (2, 3),
        {"p": _ints(1, 0, 0, -1), "c": np.asarray(2, np.float32)},
    ),
    "Pad of some axes": (18, node("Pad", ["x", "p", "", "a"]), (2, 3), {"p": _ints(1, 2), "a": _ints(-1)}),
    "Upsample by attribute": (7, node("Upsample", ["x"], scales=[1.0, 1.0, 2.0, 3.0]), (1, 2, 2, 3), {}),
    "Upsample by input": (
        9,
        node("Upsample", ["x", "s"], mode="linear"),
        (1, 1, 2, 3),
        {"s": np.asarray([1, 1, 2, 2], np.float32)},
    ),
    "Resize in its first version": (
        10,
        node("Resize", ["x", "s"]),
        (1, 1, 4, 4),
        {"s": np.asarray([1, 1, 0.6, 2.3], np.float32)},
    ),
    "Resize to sizes of some axes": (
        18,
        node("Resize", ["x", "", "", "n"], mode="linear", axes=[2, 3]),
        (1, 2, 3, 4),
        {"n": _ints(6, 5)},
    ),
    "Resize with the ratio kept": (
        18,
        node("Resize", ["x", "", "", "n"], mode="linear", axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
        (1, 1, 3, 4),
        {"n": _ints(7, 6)},
    ),
    "Reshape with 0 and -1": (13, node("Reshape", ["x", "s"]), (2, 3, 4), {"s": _ints(0, -1)}),
    "Flatten at a negative axis": (11, node("Flatten", ["x"], axis=-1), (2, 3, 4), {}),
    "TopK by attribute": (7, node("TopK", ["x"], ["y", "i"], k=2, axis=1), (3, 5), {}),
    "TopK by input": (11, node("TopK", ["x", "k"], ["y", "i"], largest=0), (3, 5), {"k": _ints(2)}),
    "Dropout before 10": (7, node("Dropout", ["x"], ratio=0.7), (2, 3), {}),
    "Dropout with a mask": (12, node("Dropout", ["x"], ["y", "mask"]), (2, 3), {}),
    "BatchNormalization before 9": (7, node("BatchNormalization", ["x", "s", "b", "m", "v"]), (2, 4, 3), _STATS),
    "BatchNormalization from 15 on": (15, node("BatchNormalization", ["x", "s", "b", "m", "v"]), (2, 4, 3), _STATS),
    "Gemm with everything": (
        11,
        node("Gemm", ["x", "w", "c"], alpha=0.5, beta=2.0, transA=1, transB=1),
        (3, 2),
        {"w": _array(4, 3), "c": _array(4)},
    ),
    "Gemm without a bias": (11, node("Gemm", ["x", "w"]), (2, 3), {"w": _array(3, 4)}),
    "LpNormalization": (17, node("LpNormalization", ["x"], axis=1, p=1), (2, 3), {}),
    "ArgMax with the last index": (13, node("ArgMax", ["x"], axis=1, select_last_index=1, keepdims=0), (2, 5), {}),
    "Where by a constant": (9, node("Where", ["c", "x", "x"]), (2, 2), {"c": np.asarray([True, False])}),
    "Cast to whole numbers": (9, node("Cast", ["x"], to=7), (2, 5), {}),
    "ConvTranspose with a bias": (
        11,
        node("ConvTranspose", ["x", "w", "b"], strides=[2], output_padding=[1]),
        (1, 2, 4),
        {"w": _array(2, 3, 3), "b": _array(3)},
    ),
    "MaxPool with indices": (
        12,
        node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        (1, 2, 5, 5),
        {},
    ),
    "AveragePool that counts the pad": (
        7,
        node("AveragePool", ["x"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
        (1, 2, 5, 5),
        {},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_version_of_an_operator_means_what_onnxruntime_says(name: str) -> None:
    opset, operator, shape, initializers = CASES[name]
    proto = model([operator], [value("x", shape)], list(operator.output), initializers, opset)
    proto.ir_version = 8
    feeds = {"x": _array(*shape)}
    ours, theirs = run_ours(proto, feeds), run_onnxruntime(proto, feeds)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_group_normalization_before_21_has_one_scale_a_group() -> None:
    x = _array(2, 4, 3)
    initializers = {"s": np.asarray([2, 3], np.float32), "b": np.asarray([1, -1], np.float32)}
    operator = node("GroupNormalization", ["x", "s", "b"], num_groups=2)
    (y,) = run_ours(model([operator], [value("x", x.shape)], initializers=initializers, opset=18), {"x": x})
    groups = x.reshape(2, 2, 6)
    normal = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    expected = normal * initializers["s"][:, None] + initializers["b"][:, None]
    np.testing.assert_allclose(y, expected.reshape(x.shape), rtol=1e-5, atol=1e-6)


def test_all_forms_of_a_constant_are_read() -> None:
    forms: list[tuple[dict[str, Any], Array]] = [
        ({"value_float": 1.5}, np.asarray(1.5, np.float32)),
        ({"value_floats": [1.5, 2]}, np.asarray([1.5, 2], np.float32)),
        ({"value_int": 3}, np.asarray(3)),
        ({"value_ints": [3, 4]}, np.asarray([3, 4])),
    ]
    for attrs, expected in forms:
        (y,) = run_ours(model([node("Constant", [], **attrs)], []), {})
        assert y.dtype == expected.dtype
        np.testing.assert_array_equal(y, expected)
    with pytest.raises(UnsupportedError, match="value_string"):
        load_onnx(model([node("Constant", [], value_string="a")], []))


def test_positions_that_are_not_zero_are_found_where_they_are_known() -> None:
    nodes = [node("NonZero", ["c"])]
    (y,) = run_ours(model(nodes, [], initializers={"c": np.asarray([[0, 2], [3, 0]])}), {})
    assert y.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(("bounds", "expected"), [((1, 8, 3), [1, 4, 7]), ((5, 0, -2), [5, 3, 1]), ((3, 1, 1), [])])
def test_a_range_of_constants_is_one_constant(bounds: tuple[int, ...], expected: list[int]) -> None:
    initializers = {k: np.asarray(v) for k, v in zip("abc", bounds, strict=True)}
    (y,) = run_ours(model([node("Range", list("abc"))], [], initializers=initializers), {})
    assert y.tolist() == expected


@pytest.mark.parametrize(
    ("operator", "initializers", "message"),
    [
        (node("Range", ["x", "z", "z"]), {"x": _ints(1)[0], "z": _ints(0)[0]}, "in steps of 0"),
        (node("Reshape", ["i", "x"]), {"x": _ints(-1, -1)}, "only one dimension may be -1"),
        (node("Reshape", ["i", "x"]), {"x": _ints(5, -1)}, "do not fit"),
        (node("Reshape", ["i", "x"]), {"x": _ints(2, 3, 0)}, "copies a dimension"),
        (node("Split", ["i", "x"], ["y", "z"]), {"x": _ints(1, 1, 1)}, "3 parts for 2 outputs"),
        (node("Squeeze", ["i", "x"]), {"x": _ints(0)}, "longer than 1"),
        (node("Resize", ["i"]), {}, "either scales or sizes"),
        (node("Resize", ["i", "", "x"]), {"x": np.asarray([1, -2], np.float32)}, "not all positive"),
        (node("ConstantOfShape", ["x"]), {"x": _ints(-2)}, "negative"),
    ],
)
def test_constants_that_make_no_sense_are_told(operator: Any, initializers: dict[str, Array], message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        load_onnx(model([operator], [value("i", (2, 3))], list(operator.output)[:1], initializers))
    assert operator.op_type in str(caught.value)
