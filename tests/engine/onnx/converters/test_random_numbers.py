"""ONNX operators that draw random numbers, by distribution, and Dropout and BatchNormalization in training."""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import engine
from engine.api import MODES
from engine.text.errors import ConstantNeededError, ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_ours, value

_SHAPE = (200, 300)
_TYPES = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16]


def _drawn(*nodes: Any, inputs: Any = (), feeds: Any = None, outputs: Any = ("y",), **more: Any) -> list[Array]:
    return run_ours(model(list(nodes), inputs, outputs, opset=22, **more), feeds or {})


def _is_of(numbers: Array, distribution: Callable[[float], float]) -> bool:
    """Returns whether numbers may be of a distribution, by the test of Kolmogorov and Smirnov at a level of 0.001."""
    wanted = np.asarray([distribution(v) for v in np.sort(numbers, axis=None).tolist()])
    steps = np.arange(len(wanted) + 1) / len(wanted)
    distance = max(np.max(wanted - steps[:-1]), np.max(steps[1:] - wanted))
    return bool(distance * np.sqrt(len(wanted)) < 1.95)


@pytest.mark.parametrize("dtype", _TYPES)
def test_uniform_numbers_have_their_distribution(dtype: int) -> None:
    (y,) = _drawn(node("RandomUniform", [], shape=_SHAPE, low=-2.0, high=3.0, dtype=dtype))
    assert y.shape == _SHAPE and y.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    assert y.min() >= -2 and y.max() <= 3
    assert _is_of(y, lambda v: (v + 2) / 5)


@pytest.mark.parametrize("dtype", _TYPES)
def test_normal_numbers_have_their_distribution(dtype: int) -> None:
    (y,) = _drawn(node("RandomNormal", [], shape=_SHAPE, mean=1.5, scale=0.5, dtype=dtype))
    assert y.shape == _SHAPE and y.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    assert np.isfinite(y).all()
    assert _is_of(y, statistics.NormalDist(1.5, 0.5).cdf)


def test_numbers_like_an_input_have_its_open_shape_and_its_type() -> None:
    nodes = [node("RandomNormalLike", ["x"], ["a"]), node("RandomUniformLike", ["x"], ["b"], dtype=TensorProto.DOUBLE)]
    graph = engine.load_onnx(model(nodes, [value("x", ("n", 4), np.float16)], ["a", "b"]))
    exe = engine.compile(graph)
    for n in (1, 7, 500):
        a, b = exe.run({"x": np.zeros((n, 4), np.float16)}).values()
        assert a.shape == b.shape == (n, 4)
        assert a.dtype == np.float16
        assert b.dtype == np.float64
        assert len(np.unique(b)) == b.size


def test_probabilities_decide_between_zero_and_one() -> None:
    p = np.repeat(np.asarray([0, 0.05, 0.5, 0.8, 1], np.float32), 20_000).reshape(5, -1)
    bernoulli = node("Bernoulli", ["p"], dtype=TensorProto.INT32)
    (y,) = _drawn(bernoulli, inputs=[value("p", p.shape)], feeds={"p": p})
    assert y.dtype == np.int32 and set(np.unique(y)) == {0, 1}
    np.testing.assert_allclose(y.mean(axis=1), p[:, 0], atol=0.015)
    assert not y[0].any() and y[4].all()


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    st.sampled_from([np.float32, np.float64, np.float16]),
)
def test_classes_are_drawn_as_often_as_they_weigh(weights: list[int], dtype: Any) -> None:
    share = np.asarray([weights, [1] * len(weights)]) / np.asarray([[sum(weights)], [len(weights)]])
    with np.errstate(divide="ignore"):
        x = (np.log(share) + 2).astype(dtype)
    drawing = node("Multinomial", ["x"], sample_size=4000, dtype=TensorProto.INT64)
    (y,) = _drawn(drawing, inputs=[value("x", x.shape, dtype)], feeds={"x": x})
    assert y.shape == (2, 4000) and y.dtype == np.int64
    counts = np.stack([np.bincount(row, minlength=len(weights)) for row in y])
    assert counts.shape == share.shape and not counts[share == 0].any()
    np.testing.assert_allclose(counts / 4000, share, atol=0.04)


def _pair(**attrs: Any) -> tuple[Array, Array]:
    nodes = [node("RandomUniform", [], [f"y{i}"], shape=(50,), name=f"draw{i}", **attrs) for i in range(2)]
    one, other = _drawn(*nodes, outputs=("y0", "y1"))
    return one, other


def test_each_run_draws_the_same_and_each_node_and_seed_draws_others() -> None:
    first, second, seeded = _pair(), _pair(), _pair(seed=3.0)
    np.testing.assert_array_equal(first, second)
    for i, one in enumerate((*first, *seeded)):
        for other in (*first, *seeded)[:i]:
            assert not np.intersect1d(one, other).size
    graph = engine.load_onnx(model([node("RandomUniformLike", ["x"])], [value("x", (9,))]))
    x = np.zeros(9, np.float32)
    runs: list[Any] = [engine.compile(graph, mode=mode) for mode in MODES]
    outputs = [run(x=x)["y"] for run in (*runs, engine.compile(graph, debug="poison"), *runs)]
    for output in outputs:
        np.testing.assert_array_equal(output, outputs[0])


def test_nodes_of_one_name_draw_different_numbers() -> None:
    one, other = _drawn(*(node("RandomUniform", [], [y], name="r", shape=[9]) for y in "ab"), outputs=("a", "b"))
    assert not np.intersect1d(one, other).size


def _loop(trips: Any) -> Any:
    body = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("RandomUniform", [], ["r"], shape=(20,), name="draw", seed=1.0)],
        "body",
        [value("i", (), np.int64), value("c", (), np.bool_)],
        [value("c2", (), np.bool_), value("r", (20,))],
    )
    constants = {} if trips is None else {"M": np.asarray(trips)}
    return model(
        [node("Loop", ["M", ""], body=body)],
        [value("M", (), np.int64)] if trips is None else [],
        initializers=constants,
    )


def test_each_turn_of_a_loop_draws_others() -> None:
    (y,) = run_ours(_loop(4), {})
    assert y.shape == (4, 20) and len(np.unique(y)) == 80
    with pytest.raises(UnsupportedError, match="draws other numbers in each turn"):
        engine.load_onnx(_loop(None))
    assert engine.load_onnx(_loop(None), constants={"M": 2}).outputs["y"].shape == (2, 20)


def test_a_branch_may_draw() -> None:
    graphs = [
        helper.make_graph([node("RandomUniformLike", ["x"], ["r"], low=low, high=low + 1)], "b", [], [value("r", None)])
        for low in (1.0, 5.0)
    ]
    choice = node("If", ["c"], then_branch=graphs[0], else_branch=graphs[1])
    exe = engine.compile(engine.load_onnx(model([choice], [value("c", (), np.bool_), value("x", (40,))])))
    for c, low in ((True, 1), (False, 5)):
        y = exe.run({"c": np.asarray(c), "x": np.zeros(40, np.float32)})["y"]
        assert len(np.unique(y)) > 38 and y.min() >= low and y.max() <= low + 1


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (node("RandomUniform", [], shape=[2, -1]), "negative"),
        (node("RandomUniform", [], shape=[2], dtype=TensorProto.INT64), "dtype is int64; floating-point"),
        (node("RandomNormalLike", ["i"]), "dtype is int64; floating-point"),
        (node("Multinomial", ["x"]), r"1 samples of shape \(3,\); rows of classes"),
        (node("Multinomial", ["x"], sample_size=-1), "-1 samples"),
    ],
    ids=lambda p: p if isinstance(p, str) else p.op_type,
)
def test_what_cannot_be_drawn_is_refused(bad: Any, text: str) -> None:
    with pytest.raises((ModelError, UnsupportedError), match=text):
        engine.load_onnx(model([bad], [value("x", (3,)), value("i", (3,), np.int64)]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_dropout_in_training_drops_as_many_as_it_says(ratio: float, dtype: Any) -> None:
    x = np.linspace(1, 2, 60_000).astype(dtype)
    constants = {"ratio": np.asarray(ratio, dtype), "training": np.asarray(True)}
    dropping = node("Dropout", ["x", "ratio", "training"], ["y", "mask"], seed=7)
    inputs = [value("x", x.shape, dtype)]
    y, mask = _drawn(dropping, inputs=inputs, feeds={"x": x}, outputs=("y", "mask"), initializers=constants)
    assert mask.dtype == np.bool_ and y.dtype == dtype
    assert abs(mask.mean() - (1 - ratio)) < 0.01
    np.testing.assert_allclose(y[mask], x[mask] / (1 - ratio), rtol=2e-3 if dtype == np.float16 else 1e-6)
    assert not y[~mask].any()


def test_whether_dropout_trains_must_be_known() -> None:
    proto = model([node("Dropout", ["x", "", "t"])], [value("x", (3,)), value("t", (), np.bool_)])
    with pytest.raises(ConstantNeededError, match="'training_mode'"):
        engine.load_onnx(proto)
    np.testing.assert_array_equal(
        engine.compile(engine.load_onnx(proto, constants={"t": False}))(x=np.ones(3, np.float32))["y"], 1
    )


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
    st.sampled_from([np.float32, np.float64, np.float16]),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_batch_normalization_in_training_uses_and_moves_statistics(
    shape: list[int], dtype: Any, momentum: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(dtype)
    scale, bias, mean, var = rng.random((4, shape[1])).astype(np.float32 if dtype == np.float16 else dtype)
    axes = (0, *range(2, len(shape)))
    wide = x.astype(np.float64)
    of_x, spread = wide.mean(axes), wide.var(axes)
    column = (-1, *(1,) * (len(shape) - 2))
    normal = (wide - of_x.reshape(column)) / np.sqrt(spread + 1e-3).reshape(column)
    wanted = normal * scale.reshape(column) + bias.reshape(column)
    names = ("x", "scale", "bias", "mean", "var")
    arrays = dict(zip(names, (x, scale, bias, mean, var), strict=True))
    norm = node("BatchNormalization", names, ["y", "m", "v"], training_mode=1, epsilon=1e-3, momentum=momentum)
    inputs = [value(name, array.shape, array.dtype) for name, array in arrays.items()]
    y, m, v = _drawn(norm, inputs=inputs, feeds=arrays, outputs=("y", "m", "v"))
    assert (y.dtype, m.dtype, v.dtype) == (x.dtype, mean.dtype, var.dtype)
    tolerance: Any = {"rtol": 1e-2, "atol": 1e-2} if dtype == np.float16 else {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(y, wanted, **tolerance)
    np.testing.assert_allclose(m, mean * momentum + of_x * (1 - momentum), **tolerance)
    np.testing.assert_allclose(v, var * momentum + spread * (1 - momentum), **tolerance)
