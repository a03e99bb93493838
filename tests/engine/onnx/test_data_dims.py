"""ONNX operators whose sizes only data decide, against onnxruntime: nothing is fixed, several sizes for one graph."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.api import MODES
from engine.text.errors import ConstantNeededError, EngineError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, value

INT = np.int64
Feeds = dict[str, Array]
Rng = np.random.Generator


@frozen(eq=False)
class Case:
    """A model, what may be fed to it, and how many stages a run has; `stages` is 0 where data decide that, too."""

    proto: Any
    feeds: Callable[[Rng], Feeds]
    stages: int


def _case(
    nodes: Sequence[Any], inputs: Mapping[str, Any], feeds: Callable[[Rng], Feeds], stages: int, **initializers: Any
) -> Case:
    """Returns a case; `inputs` are shapes of floats, or shapes and element types."""
    infos = [value(k, *v) if isinstance(v, list) else value(k, v) for k, v in inputs.items()]
    outputs = [o for o in nodes[-1].output if o]
    opset = initializers.pop("opset", 17)
    return Case(model(nodes, infos, outputs, initializers, opset), feeds, stages)


def _ints(*numbers: int) -> Array:
    return np.asarray(numbers, INT)


def _floats(*numbers: float) -> Array:
    return np.asarray(numbers, np.float32)


def _x(rng: Rng, *shape: int) -> Array:
    return rng.integers(-2, 3, shape).astype(np.float32)


def _rows(*more: int) -> Callable[[Rng], Feeds]:
    return lambda rng: {"x": _x(rng, int(rng.integers(1, 9)), *more)}


def _with(make: Callable[[Rng, Array], Feeds], *more: int) -> Callable[[Rng], Feeds]:
    def feeds(rng: Rng) -> Feeds:
        x = _x(rng, int(rng.integers(1, 9)), *more)
        return {"x": x, **make(rng, x)}

    return feeds


def _shape_of(rng: Rng, x: Array) -> Feeds:
    shape = [-1, x.shape[0]] if rng.integers(2) else [x.size // 2, 2]
    return {"s": _ints(*shape)}


def _reshaped() -> Case:
    return _case([node("Reshape", ["x", "s"], ["r"]), node("Neg", ["r"])], {"x": ("n", 4), "s": [(2,), INT]},
                 _with(_shape_of, 4), 1)  # fmt: skip


def _sizes(rng: Rng, _: Array) -> Feeds:
    return {"s": _ints(*rng.integers(1, 7, 2))}


def _bounds(rng: Rng, _: Array) -> Feeds:
    a, b = rng.integers(-5, 6, 2), rng.integers(-5, 6, 2)
    return {"a": _ints(*a), "b": _ints(*b), "t": _ints(*rng.choice([-2, -1, 1, 2, 3], 2))}


def _boxes(rng: Rng) -> Feeds:
    n = int(rng.integers(1, 12))
    corner = rng.random((2, n, 2), np.float32)
    boxes = np.concatenate([corner, corner + rng.random((2, n, 2), np.float32)], axis=2)
    return {"boxes": boxes, "scores": rng.random((2, 3, n), np.float32)}


def _computed_boxes(rng: Rng) -> Feeds:
    feeds = _boxes(rng)
    return {**feeds, "most": _ints(int(rng.integers(0, 5))), "least": np.asarray([rng.random()], np.float32)}


CASES = {
    "NonZero": _case([node("NonZero", ["x"])], {"x": ("n", 4)}, _rows(4), 2),
    "NonZero of a fixed shape": _case([node("NonZero", ["x"])], {"x": (3, 2)}, lambda rng: {"x": _x(rng, 3, 2)}, 2),
    "NonZero, twice": _case(
        [node("NonZero", ["x"], ["i"]), node("Transpose", ["i"], ["t"]), node("GatherND", ["x", "t"], ["v"]),
         node("Relu", ["v"], ["p"]), node("NonZero", ["p"], ["j"]), node("Gather", ["v", "j"])],
        {"x": ("n", 4)}, _rows(4), 3),
    "rows by NonZero": _case(
        [node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=0), node("Relu", ["m"], ["p"]),
         node("NonZero", ["p"], ["i"]), node("Squeeze", ["i", "axis"], ["j"]), node("Gather", ["x", "j"], ["g"]),
         node("Shape", ["g"], ["s"]), node("ConstantOfShape", ["s"], ["z"]), node("Sub", ["z", "g"])],
        {"x": ("n", 4)}, _rows(4), 2, axis=_ints(0)),
    "Compress": _case(
        [node("Compress", ["x", "c"], axis=1)], {"x": ("n", 4), "c": [(3,), bool]},
        _with(lambda rng, _: {"c": rng.random(3) < 0.5}, 4), 2),
    "Compress of elements": _case(
        [node("Greater", ["x", "o"], ["g"]), node("Reshape", ["g", "all"], ["c"]), node("Compress", ["x", "c"])],
        {"x": ("n", 4)}, _rows(4), 2, o=np.float32(0), all=_ints(-1)),
    "Unique": _case([node("Unique", ["x"], ["y", "first", "inverse", "counts"])], {"x": ("n", 4)}, _rows(4), 2),
    "Unique along an axis": _case(
        [node("Unique", ["x"], ["y", "", "inverse"], axis=0, sorted=0)], {"x": ("n", 1)}, _rows(1), 2),
    "NonMaxSuppression": _case(
        [node("NonMaxSuppression", ["boxes", "scores", "most", "iou"])],
        {"boxes": (2, "n", 4), "scores": (2, 3, "n")}, _boxes, 2, most=_ints(3), iou=_floats(0.2)),
    "NonMaxSuppression by the run": _case(
        [node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"])],
        {"boxes": (2, "n", 4), "scores": (2, 3, "n"), "most": [(1,), INT], "least": (1,)}, _computed_boxes, 2,
        iou=_floats(0.5)),
    "Range": _case(
        [node("Range", ["a", "b", "c"])], {"a": [(), INT], "b": [(), INT], "c": [(), INT]},
        lambda rng: {"a": np.asarray(rng.integers(5)), "b": np.asarray(rng.integers(9)), "c": np.asarray(2)}, 2),
    "Range of what was computed": _case(
        [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Range", ["zero", "m", "one"], ["r"]), node("Exp", ["r"])],
        {"x": ("n", 4)}, _rows(4), 2, zero=np.float32(0), one=np.float32(0.5)),
    "Reshape": _reshaped(),
    "Expand": _case([node("Expand", ["x", "s"])], {"x": ("n", 1, 1), "s": [(2,), INT]}, _with(_sizes, 1, 1), 1),
    "Tile": _case([node("Tile", ["x", "s"])], {"x": ("n", 2), "s": [(2,), INT]}, _with(_sizes, 2), 1),
    "ConstantOfShape": _case(
        [node("ConstantOfShape", ["s"], ["z"]), node("Add", ["z", "one"])], {"s": [(2,), INT]},
        lambda rng: _sizes(rng, _ints()), 1, one=np.float32(1)),
    "Slice": _case(
        [node("Slice", ["x", "a", "b", "", "t"])],
        {"x": ("n", 4), "a": [(2,), INT], "b": [(2,), INT], "t": [(2,), INT]}, _with(_bounds, 4), 1),
    "Slice along axes of the run": _case(
        [node("Slice", ["x", "a", "b", "axes"])],
        {"x": ("n", 4), "a": [(1,), INT], "b": [(1,), INT], "axes": [(1,), INT]},
        _with(lambda rng, _: {"a": _ints(0), "b": _ints(2), "axes": _ints(int(rng.integers(-2, 2)))}, 4), 1),
    "TopK": _case(
        [node("TopK", ["x", "k"], ["y", "at"], axis=0)], {"x": ("n", 4), "k": [(1,), INT]},
        _with(lambda rng, x: {"k": _ints(int(rng.integers(1, len(x) + 1)))}, 4), 1),
    "TopK of what was counted": _case(
        [node("Relu", ["x"], ["p"]), node("Sign", ["p"], ["s"]), node("ReduceSum", ["s"], ["f"], keepdims=0),
         node("Cast", ["f"], ["c"], to=7), node("Reshape", ["c", "one"], ["k"]), node("Reshape", ["x", "all"], ["v"]),
         node("TopK", ["v", "k"], ["y", "at"])],
        {"x": ("n", 4)}, _rows(4), 2, one=_ints(1), all=_ints(-1)),
    "OneHot": _case(
        [node("OneHot", ["i", "d", "v"])], {"i": [("n",), INT], "d": [(), INT]},
        lambda rng: {"i": rng.integers(0, 4, 5), "d": np.asarray(rng.integers(1, 7))}, 1, v=_floats(0, 1)),
    "Pad": _case(
        [node("Pad", ["x", "p"])], {"x": ("n", 4), "p": [(4,), INT]},
        _with(lambda rng, _: {"p": rng.integers(0, 4, 4)}, 4), 1),
    "Split": _case(
        [node("Split", ["x", "p"], ["a", "b"], axis=1)], {"x": ("n", 4), "p": [(2,), INT]},
        _with(lambda rng, _: {"p": _ints(k := int(rng.integers(5)), 4 - k)}, 4), 1),
    "Resize": _case(
        [node("Resize", ["x", "", "", "z"])], {"x": (1, 1, 4, 4), "z": [(4,), INT]},
        lambda rng: {"x": _x(rng, 1, 1, 4, 4), "z": _ints(1, 1, *rng.integers(1, 9, 2))}, 1),
    "CumSum": _case(
        [node("CumSum", ["x", "axis"])], {"x": ("n", 4), "axis": [(), INT]},
        _with(lambda rng, _: {"axis": np.asarray(rng.integers(-2, 2))}, 4), 1),
    "ReduceSum": _case(
        [node("ReduceSum", ["x", "axes"], keepdims=0)], {"x": ("n", 4), "axes": [(1,), INT]},
        _with(lambda rng, _: {"axes": _ints(int(rng.integers(-2, 2)))}, 4), 1),
    "Trilu": _case(
        [node("Trilu", ["x", "k"])], {"x": ("n", 4), "k": [(), INT]},
        _with(lambda rng, _: {"k": np.asarray(rng.integers(-3, 4))}, 4), 1),
    "a shape of what is known and what is not": _case(
        [node("Shape", ["x"], ["s"]), node("Slice", ["s", "i0", "i1"], ["n"]),
         node("Concat", ["n", "k"], ["t"], axis=0), node("Concat", ["t", "left"], ["u"], axis=0),
         node("Reshape", ["x", "u"])],
        {"x": ("n", 12), "k": [(1,), INT]}, _with(lambda rng, _: {"k": _ints(int(rng.choice([1, 2, 3, 4, 6])))}, 12), 2,
        i0=_ints(0), i1=_ints(1), left=_ints(-1)),
}  # fmt: skip


def _check(case: Case, exe: engine.Executable, feeds: Feeds) -> None:
    for (name, output), want in zip(exe.run(feeds).items(), run_onnxruntime(case.proto, feeds), strict=True):
        assert output.dtype == want.dtype and output.shape == want.shape, name
        np.testing.assert_allclose(output, want, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_onnx_operators_of_data_decided_sizes_equal_onnxruntime(name: str) -> None:
    case = CASES[name]
    exe = engine.compile(engine.load_onnx(case.proto))
    rng = np.random.default_rng(0)
    for _ in range(12):
        _check(case, exe, case.feeds(rng))
    assert len(exe.stages) == case.stages


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"mode": mode} for mode in MODES] + [{"debug": "poison"}])
@settings(max_examples=15, deadline=None)
@given(st.sampled_from(list(CASES)), st.integers(0, 2**32))
def test_onnx_models_with_data_decided_sizes_agree_in_every_mode(options: dict[str, Any], name: str, seed: int) -> None:
    case = CASES[name]
    exe = engine.compile(engine.load_onnx(case.proto), **options)
    rng = np.random.default_rng(seed)
    for _ in range(2):
        _check(case, exe, case.feeds(rng))


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.sampled_from(list(CASES)), st.integers(0, 2**32))
def test_onnx_sizes_decided_by_any_data(name: str, seed: int) -> None:
    case = CASES[name]
    exe = engine.compile(engine.load_onnx(case.proto))
    rng = np.random.default_rng(seed)
    for _ in range(20):
        _check(case, exe, case.feeds(rng))


@pytest.mark.slow
def test_a_detector_ends_in_stages() -> None:
    """Boxes, suppression, the boxes that are left, and the best of them: as a network for detection ends."""
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["rows"]),
        node("Slice", ["rows", "i2", "i3", "i1"], ["at"]),
        node("Squeeze", ["at", "i1"], ["index"]),
        node("Squeeze", ["boxes", "i0"], ["flat_boxes"]),
        node("Gather", ["flat_boxes", "index"], ["kept"]),
        node("Squeeze", ["scores", "i01"], ["flat_scores"]),
        node("Gather", ["flat_scores", "index"], ["marks"]),
        node("Shape", ["marks"], ["count"]),
        node("Min", ["count", "best"], ["k"]),
        node("TopK", ["marks", "k"], ["top", "order"]),
        node("Gather", ["kept", "order"], ["y"]),
    ]
    initializers = {
        **{f"i{n}": _ints(n) for n in range(4)},
        **{"i01": _ints(0, 1), "best": _ints(3), "most": _ints(20)},
        **{"iou": _floats(0.3), "least": _floats(0.2)},
    }
    proto = model(nodes, [value("boxes", (1, "n", 4)), value("scores", (1, 1, "n"))], ["top", "y"], initializers)
    exe = engine.compile(engine.load_onnx(proto))
    rng = np.random.default_rng(3)
    for _ in range(20):
        feeds = {name: array[:1, ..., :] for name, array in _boxes(rng).items()}
        feeds["scores"] = feeds["scores"][:, :1]
        _check(Case(proto, _boxes, 2), exe, feeds)
        assert len(exe.stages) == 2


def test_onnx_sizes_fixed_by_constants_leave_one_plan() -> None:
    proto = CASES["Reshape"].proto
    graph = engine.load_onnx(proto, shapes={"x": (3, 4)}, constants={"s": [2, 6]}, stages=False)
    assert graph.outputs["y"].shape == (2, 6)
    assert not graph.is_symbolic


@pytest.mark.parametrize(
    ("operator", "inputs", "message"),
    [
        (node("Squeeze", ["x", "s"]), {"s": [(1,), INT]}, "'axes' decides a shape"),
        (node("Unsqueeze", ["x", "s"]), {"s": [(1,), INT]}, "'axes' decides a shape"),
        (node("Resize", ["x", "", "z"]), {"z": (2,)}, "'scales' decides a shape"),
        (node("Reshape", ["x", "s"]), {"s": [("k",), INT]}, "a number of dimensions"),
    ],
)
def test_onnx_data_that_would_change_the_rank_is_refused(operator: Any, inputs: Any, message: str) -> None:
    with pytest.raises(ConstantNeededError if "decides" in message else EngineError, match=message):
        engine.load_onnx(_case([operator], {"x": ("n", 4), **inputs}, _rows(4), 0).proto)


def test_numbers_that_do_not_fit_are_told_when_they_are_known() -> None:
    exe = engine.compile(engine.load_onnx(CASES["Reshape"].proto))
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(EngineError, match="12 elements of shape"):
        exe.run({"x": x, "s": _ints(5, -1)})
    assert exe.run({"x": x, "s": _ints(6, -1)})["y"].shape == (6, 2)
