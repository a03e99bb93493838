"""ONNX If, Loop and Scan against onnxruntime, and what of them is refused."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import engine
from engine.api import MODES
from engine.text.errors import ConstantNeededError, FeedError, ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, value

X = np.asarray([[1, -2, 3], [-4, 5, -6]], np.float32)
TRUE, FALSE = np.asarray(True), np.asarray(False)
INT = np.int64


def _graph(nodes: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any] = (), **initializers: Any) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in initializers.items()]
    return helper.make_graph(list(nodes), "inner", list(inputs), list(outputs), tensors)


def _same(proto: Any, *feeds: Mapping[str, Array], schemas: Sequence[str]) -> None:
    """Checks that every mode gives what onnxruntime gives, and that these operators remain."""
    graph = engine.load_onnx(proto)
    assert schema_names(graph) == list(schemas)
    ways: list[dict[str, Any]] = [{"mode": mode} for mode in MODES]
    for options in (*ways, {"debug": "poison"}):
        exe = engine.compile(graph, **options)
        for feed in feeds:
            wanted = run_onnxruntime(proto, feed)
            for output, want in zip(exe.run(feed).values(), wanted, strict=True):
                assert output.dtype == want.dtype and output.shape == want.shape
                np.testing.assert_allclose(output, want, rtol=1e-5, atol=1e-6)


def _out(name: str, dtype: Any = np.float32) -> Any:
    return value(name, None, dtype)


def _choice(then: Any, otherwise: Any, outputs: Sequence[str] = ("y",)) -> Any:
    return node("If", ["c"], outputs, then_branch=then, else_branch=otherwise)


def test_a_condition_that_the_run_knows_chooses_between_two_bodies() -> None:
    then = _graph([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["o"])], [_out("o"), _out("h")])
    nodes = [node("Add", ["z", "k"], ["o"]), node("Identity", ["z"], ["same"])]
    other = _graph(nodes, [_out("o"), _out("same")], k=np.ones(3, np.float32))
    inputs = [value("c", (1,), np.bool_), value("x", (2, 3)), value("z", (2, 3))]
    proto = model([_choice(then, other, ["y", "u"])], inputs, ["y", "u"], {"w": np.eye(3, dtype=np.float32) * 2})
    feeds = {"x": X, "z": -X}
    _same(proto, {"c": np.asarray([True]), **feeds}, {"c": np.asarray([False]), **feeds}, schemas=["if"])


def test_a_branch_may_give_what_stands_outside_and_what_is_known() -> None:
    then, other = _graph([], [_out("x")]), _graph([], [_out("k")], k=-X)
    exe = engine.compile(
        engine.load_onnx(model([_choice(then, other)], [value("c", (), np.bool_), value("x", (2, 3))]))
    )
    for c, wanted in ((True, X), (False, -X)):
        np.testing.assert_array_equal(exe(c=np.asarray(c), x=X)["y"], wanted)


def test_a_constant_in_a_body_is_the_constant_outside() -> None:
    then, other = (_graph([node(op, ["x", "w"], ["o"])], [_out("o")]) for op in ("Add", "Sub"))
    proto = model([_choice(then, other)], [value("c", (), np.bool_), value("x", (3,))], initializers={"w": X})
    graph = engine.load_onnx(proto)
    (operator,) = graph.operators
    kept = [array for name in ("then_body", "else_body") for array in operator.attrs[name].graph.constants.values()]
    assert len(kept) == 2 and np.shares_memory(kept[0], kept[1]) and not graph.constants
    assert [v.name for v in operator.inputs] == ["c", "x"]


def test_branches_may_give_other_lengths() -> None:
    then, other = (
        _graph([node("Relu", ["x"], ["o"])], [_out("o")]),
        _graph([node("Concat", ["x", "x"], ["o"], axis=0)], [_out("o")]),
    )
    nodes = [_choice(then, other, ["h"]), node("Neg", ["h"])]
    proto = model(nodes, [value("c", (), np.bool_), value("x", (2, 3))])
    _same(proto, *({"c": np.asarray(c), "x": X} for c in (True, False, True)), schemas=["if_late", "neg"])


def test_a_condition_that_lengths_decide_chooses_when_they_are_known() -> None:
    """One branch is impossible for most lengths, so that the choice is made for the model."""
    length = [node("Shape", ["x"], ["s"], start=1), node("Equal", ["s", "one"], ["c"])]
    then = _graph([node("Squeeze", ["x", "axis"], ["o"])], [_out("o")])
    other = _graph([node("Relu", ["x"], ["o"])], [_out("o")])
    initializers = {"one": np.asarray([1]), "axis": np.asarray([1])}
    proto = model([*length, _choice(then, other)], [value("x", ("n", "m"))], initializers=initializers)
    _same(proto, {"x": X}, {"x": X[:1]}, schemas=["relu"])
    with pytest.raises(FeedError, match="build the graph with these lengths as numbers"):
        engine.compile(engine.load_onnx(proto)).run({"x": X[:, :1]})
    assert engine.load_onnx(proto, shapes={"x": ("n", 1)}).outputs["y"].ndim == 1


def test_branches_of_different_shapes_need_a_constant_condition() -> None:
    then, other = (
        _graph([node("Relu", ["x"], ["o"])], [_out("o")]),
        _graph([node("Flatten", ["x"], ["o"])], [_out("o")]),
    )
    proto = model([_choice(then, other)], [value("c", (), np.bool_), value("x", (3,))])
    with pytest.raises(ConstantNeededError, match="'cond' decides a shape") as caught:
        engine.load_onnx(proto)
    assert caught.value.inputs == ("c",)
    graph = engine.load_onnx(proto, constants={"c": False})
    assert graph.outputs["y"].shape == (3, 1)


@pytest.mark.parametrize("backwards", [0, 1])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_scan_of_operator_set_8_has_a_batch(batch: int, backwards: int) -> None:
    body = _graph(
        [node("Add", ["s", "row"], ["s2"]), node("Mul", ["s2", "row"], ["y2"])],
        [_out("s2"), _out("y2")],
        [value("s", (3,)), value("row", (3,))],
    )
    scan = node("Scan", ["", "start", "x"], ["last", "y"], body=body, num_scan_inputs=1, directions=[backwards])
    inputs = [value("start", (batch, 3)), value("x", (batch, 4, 3))]
    rng = np.random.default_rng(0)
    feeds = {"start": rng.random((batch, 3), np.float32), "x": rng.random((batch, 4, 3), np.float32)}
    exe = engine.compile(engine.load_onnx(model([scan], inputs, ["last", "y"], opset=8)))
    last, y = exe.run(feeds).values()
    x = feeds["x"][:, ::-1] if backwards else feeds["x"]
    sums = feeds["start"][:, None] + np.cumsum(x, axis=1)
    np.testing.assert_allclose(last, sums[:, -1], rtol=1e-5)
    np.testing.assert_allclose(y, sums * x, rtol=1e-5)


def test_a_batch_of_a_scan_is_a_number_and_has_no_lengths() -> None:
    body = _graph([node("Neg", ["row"], ["y2"])], [_out("y2")], [value("row", (3,))])
    scan = node("Scan", ["n", "x"], body=body, num_scan_inputs=1)
    x = value("x", ("b", 4, 3))
    with pytest.raises(UnsupportedError, match="lengths of the sequences of a batch"):
        engine.load_onnx(model([scan], [x, value("n", ("b",), INT)], opset=8))
    scan.input[0] = ""
    with pytest.raises(UnsupportedError, match="a batch of b is not supported"):
        engine.load_onnx(model([scan], [x], opset=8))


def _loop_body(nodes: Sequence[Any], carried: Sequence[Any], outputs: Sequence[Any], **initializers: Any) -> Any:
    """Returns a body with the inputs i, c and what it carries; its first output is c2."""
    inputs = [value("i", (), INT), value("c", (), np.bool_), *carried]
    return _graph(nodes, [_out("c2", np.bool_), *outputs], inputs, **initializers)


def _swap(*more: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Returns a body that carries a and b, which swap places, and gives rows r."""
    nodes = [
        node("Cast", ["i"], ["f"], to=1),
        node("Add", ["b", "f"], ["a2"]),
        node("Mul", ["a", "x"], ["b2"]),
        node("ReduceSum", ["a2"], ["r"], keepdims=0),
        *more,
    ]
    return nodes, [value("a", (2, 3)), value("b", (2, 3))], [_out("a2"), _out("b2"), _out("r")]


ALWAYS = node("Identity", ["c"], ["c2"])


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_a_loop_of_constant_length(trips: int) -> None:
    loop = node("Loop", ["M", "go", "x", "z"], ["p", "q", "rows"], body=_loop_body(*_swap(ALWAYS)))
    initializers = {"M": np.asarray(trips), "go": TRUE}
    proto = model([loop], [value("x", (2, 3)), value("z", (2, 3))], ["p", "q", "rows"], initializers)
    _same(proto, {"x": X, "z": X * 2}, schemas=["loop"])


def test_a_loop_whose_length_the_run_knows() -> None:
    loop = node("Loop", ["M", "go", "x", "z"], ["p", "q"], body=_loop_body(*_without_rows(ALWAYS)))
    inputs = [value("x", (2, 3)), value("z", (2, 3)), value("M", (), INT), value("go", (), np.bool_)]
    feeds = {"x": X, "z": X * 2}
    many = [{**feeds, "M": np.asarray(n), "go": np.asarray(go)} for n in (0, 1, 4, 7) for go in (True, False)]
    _same(model([loop], inputs, ["p", "q"]), *many, schemas=["loop"])


def _without_rows(*more: Any) -> tuple[list[Any], list[Any], list[Any]]:
    nodes, carried, outputs = _swap(*more)
    return nodes, carried, outputs[:2]


def _until(limit: str) -> list[Any]:
    return [node("ReduceMax", ["a2"], ["top"], keepdims=0), node("Less", ["top", limit], ["c2"])]


@pytest.mark.parametrize("trips", ["", "M"])
@pytest.mark.parametrize("go", ["", "go"])
def test_a_loop_that_ends_when_its_body_says_so(trips: str, go: str) -> None:
    body = _loop_body(*_without_rows(*_until("limit")))
    loop = node("Loop", [trips, go, "x", "z"], ["p", "q"], body=body)
    initializers = {"M": np.asarray(6), "go": TRUE}
    inputs = [value("x", (2, 3)), value("z", (2, 3)), value("limit", ())]
    proto = model([loop], inputs, ["p", "q"], {k: v for k, v in initializers.items() if k in (trips, go)})
    many = [{"x": abs(X), "z": abs(X) * 2, "limit": np.asarray(n, np.float32)} for n in (0, 9, 99, 999)]
    _same(proto, *many, schemas=["loop"])


def test_a_choice_in_a_loop_in_a_choice_sees_all_that_is_around_it() -> None:
    inner = _choice(
        _graph([node("Add", ["h", "x"], ["o"])], [_out("o")]),
        _graph([node("Sub", ["h", "z"], ["o"])], [_out("o")]),
        ["h2"],
    )
    total, low = node("ReduceSum", ["h"], ["s"], keepdims=0), node("Less", ["s", "w"], ["low"])
    inner.input[0] = "low"
    body = _loop_body([total, low, ALWAYS, inner], [value("h", (2, 3))], [_out("h2")])
    loop = node("Loop", ["M", "", "x"], ["o"], body=body)
    then, other = _graph([loop], [_out("o")]), _graph([node("Neg", ["z"], ["o"])], [_out("o")])
    inputs = [value("c", (), np.bool_), value("x", (2, 3)), value("z", (2, 3)), value("M", (), INT)]
    proto = model([_choice(then, other)], inputs, initializers={"w": np.asarray(9, np.float32)})
    many = [{"c": np.asarray(c), "M": np.asarray(n), "x": abs(X), "z": X} for c in (True, False) for n in (0, 3, 6)]
    _same(proto, *many, schemas=["if"])


def test_rows_of_which_the_run_says_how_many() -> None:
    loop = node("Loop", ["M", "go", "x", "z"], ["p", "q", "rows"], body=_loop_body(*_swap(ALWAYS)))
    inputs = [value("x", (2, 3)), value("z", (2, 3)), value("M", (), INT)]
    proto = model([loop], inputs, ["p", "q", "rows"], {"go": TRUE})
    _same(proto, *({"x": X, "z": -X, "M": np.asarray(n)} for n in (0, 1, 2, 7, 1)), schemas=["loop"])


def test_rows_of_a_loop_that_may_end_early_are_cut_off() -> None:
    loop = node("Loop", ["M", "go", "x", "z"], ["p", "q", "rows"], body=_loop_body(*_swap(*_until("limit"))))
    inputs = [value("x", (2, 3)), value("z", (2, 3)), value("limit", ())]
    proto = model([loop], inputs, ["p", "q", "rows"], {"go": TRUE, "M": np.asarray(6)})
    many = [{"x": abs(X), "z": abs(X) * 2, "limit": np.asarray(n, np.float32)} for n in (0, 9, 99, 999, 10**9)]
    _same(proto, *many, schemas=["loop", "slice"])


@pytest.mark.parametrize("trips", ["", "M", "huge"])
def test_rows_without_a_limit_are_made_by_a_second_run_of_the_loop(trips: str) -> None:
    loop = node("Loop", [trips, "", "x", "z"], ["p", "q", "rows"], body=_loop_body(*_swap(*_until("limit"))))
    inputs = [value("x", (2, 3)), value("z", (2, 3)), value("limit", ()), *([value("M", (), INT)] * (trips == "M"))]
    proto = model([loop], inputs, ["p", "q", "rows"], {"huge": np.asarray(2**63 - 1)})
    feeds = {"x": abs(X), "z": abs(X) * 2, **({"M": np.asarray(4)} if trips == "M" else {})}
    _same(proto, *({**feeds, "limit": np.asarray(n, np.float32)} for n in (0, 9, 99, 999)), schemas=["loop", "loop"])


def test_rows_of_a_loop_that_may_not_begin() -> None:
    loop = node("Loop", ["M", "go", "x", "z"], ["p", "q", "rows"], body=_loop_body(*_swap(ALWAYS)))
    inputs = [value("x", (2, 3)), value("z", (2, 3)), value("M", (), INT), value("go", (), np.bool_)]
    proto = model([loop], inputs, ["p", "q", "rows"])
    many = [{"M": np.asarray(n), "go": np.asarray(go)} for n in (0, 3) for go in (True, False)]
    _same(proto, *({"x": X, "z": -X, **one} for one in many), schemas=["loop", "loop"])


def test_bodies_may_have_open_dimensions() -> None:
    """A loop with rows, a choice and a scan, for as many rows as are fed; the body reads its own shape."""
    shaped = [node("Shape", ["a2"], ["s"]), node("ConstantOfShape", ["s"], ["zero_like"]), ALWAYS]
    nodes, _, outputs = _swap(*shaped, node("Add", ["a2", "zero_like"], ["a3"]))
    carried = [value("a", (None, 3)), value("b", (None, 3))]
    loop = node(
        "Loop", ["M", "", "x", "z"], ["p", "q", "rows"], body=_loop_body(nodes, carried, [_out("a3"), *outputs[1:]])
    )
    then, other = (
        _graph([node("Add", ["p", "x"], ["o"])], [_out("o")]),
        _graph([node("Neg", ["q"], ["o"])], [_out("o")]),
    )
    turn = _graph([node("Add", ["acc", "row"], ["acc2"]), node("Relu", ["acc2"], ["r"])], [_out("acc2"), _out("r")],
                  [value("acc", (3,)), value("row", (3,))])  # fmt: skip
    scan = node("Scan", ["start", "h"], ["end", "y"], body=turn, num_scan_inputs=1)
    inputs = [value("x", ("n", 3)), value("z", ("n", 3)), value("M", (), INT), value("c", (), np.bool_)]
    nodes = [loop, _choice(then, other, ["h"]), scan]
    proto = model(nodes, inputs, ["rows", "end", "y"], {"start": np.zeros(3, np.float32)})
    rng = np.random.default_rng(0)
    feeds = [
        {
            "x": rng.random((n, 3), np.float32),
            "z": rng.random((n, 3), np.float32),
            "M": np.asarray(m),
            "c": np.asarray(c),
        }
        for n, m, c in ((1, 1, True), (4, 3, False), (2, 0, True), (4, 3, True))
    ]
    _same(proto, *feeds, schemas=["loop", "if", "scan"])


def test_data_decide_sizes_inside_bodies() -> None:
    """Elements that are not zero are picked in a branch, and in each turn of a loop."""
    picked = [node("NonZero", ["v"], ["i"]), node("Gather", ["v", "i"], ["g"]), node("Squeeze", ["g", "first"], ["o"])]
    then, other = _graph(picked, [_out("o")]), _graph([node("Neg", ["v"], ["o"])], [_out("o")])
    proto = model([_choice(then, other)], [value("c", (), np.bool_), value("v", ("n",))], initializers={"first": [0]})
    vectors = [np.asarray(v, np.float32) for v in ([1, 0, 2], [0, 3, 0, 4, 5], [0], [1, 2])]
    _same(proto, *({"c": np.asarray(i % 3 != 1), "v": v} for i, v in enumerate(vectors)), schemas=["if_late"])
    nodes = [node("Sub", ["v", "one"], ["w"]), node("Relu", ["w"], ["p"]), node("NonZero", ["p"], ["j"]),
             node("Gather", ["p", "j"], ["k"]), node("Squeeze", ["k", "first"], ["v2"]), ALWAYS]  # fmt: skip
    loop = node("Loop", ["M", "", "x"], ["y"], body=_loop_body(nodes, [value("v", (None,))], [_out("v2")]))
    initializers = {"first": [0], "one": np.float32(1)}
    proto = model([loop], [value("x", ("n",)), value("M", (), INT)], initializers=initializers)
    many = [{"x": v, "M": np.asarray(m)} for v in vectors for m in (0, 1, 3)]
    _same(proto, *many, schemas=["loop_late"])


GROWING = [node("Concat", ["h", "x"], ["h2"], axis=0), ALWAYS, node("Unsqueeze", ["i", "zero"], ["at"])]
WINDOW = [node("Add", ["at", "one"], ["to"]), node("Slice", ["x", "at", "to"], ["r"])]
SMALL = {"zero": np.asarray([0]), "one": np.asarray([1])}


def test_a_short_loop_whose_turns_are_not_alike_is_read_turn_by_turn() -> None:
    body = _loop_body([*GROWING, *WINDOW], [value("h", (None, 3))], [_out("h2"), _out("r")])
    loop = node("Loop", ["M", "", "x"], ["y", "rows"], body=body)
    proto = model([loop], [value("x", (2, 3))], ["y", "rows"], {**SMALL, "M": np.asarray(2)})
    schemas = ["concat", "slice", "concat", "slice", "reshape", "reshape", "concat"]
    _same(proto, {"x": X}, schemas=schemas)


def test_a_loop_whose_turns_are_not_alike_runs_in_stages_where_the_run_says_how_long() -> None:
    loop = node("Loop", ["M", "", "x"], ["y"], body=_loop_body(GROWING, [value("h", (None, 3))], [_out("h2")]))
    proto = model([loop], [value("x", (2, 3)), value("M", (), INT)], initializers=SMALL)
    _same(proto, *({"x": X, "M": np.asarray(n)} for n in (0, 1, 3)), schemas=["loop_late"])
    assert engine.load_onnx(proto, constants={"M": 3}).outputs["y"].shape == (8, 3)


def test_a_number_from_outside_cuts_in_a_branch() -> None:
    nodes = [
        node("Greater", ["x", "one"], ["m"]),
        node("Cast", ["m"], ["mi"], to=7),
        node("ReduceSum", ["mi", "zero"], ["k"], keepdims=1),
        node("ReduceSum", ["x", "zero"], ["s"], keepdims=0),
        node("Greater", ["s", "one"], ["c"]),
        _choice(
            _graph([node("Slice", ["x", "zero", "k"], ["t"])], [_out("t")]),
            _graph([node("Identity", ["x"], ["e"])], [_out("e")]),
        ),
    ]
    proto = model(nodes, [value("x", (3,))], initializers={"one": np.float32(1), "zero": np.asarray([0])})
    exe = engine.compile(engine.load_onnx(proto))
    for fed in ([1, 2, 3], [-9, 2, 1], [2, 0, 0]):
        feeds = {"x": np.asarray(fed, np.float32)}
        assert exe.run(feeds)["y"].tolist() == run_onnxruntime(proto, feeds)[0].tolist()


def test_values_that_grow_together_are_multiplied() -> None:
    body = [
        node("Concat", ["k", "h"], ["k2"], axis=0),
        node("Concat", ["v", "h"], ["v2"], axis=0),
        node("Transpose", ["k2"], ["kt"], perm=[1, 0]),
        node("MatMul", ["h", "kt"], ["s"]),
        node("MatMul", ["s", "v2"], ["a"]),
        node("Tanh", ["a"], ["h2"]),
        ALWAYS,
    ]
    carried = [value("h", (1, 3)), value("k", (None, 3)), value("v", (None, 3))]
    outputs = [_out(name) for name in ("h2", "k2", "v2")]
    loop = node("Loop", ["M", "", "x", "x", "x"], ["y", "ks", "vs"], body=_loop_body(body, carried, outputs))
    proto = model([loop], [value("x", (1, 3)), value("M", (), INT)], ["y", "ks"])
    fed = np.linspace(-1, 1, 3, dtype=np.float32).reshape(1, 3)
    _same(proto, *({"x": fed, "M": np.asarray(n)} for n in (0, 1, 4)), schemas=["loop_late"])


def test_a_shape_in_a_body_that_an_input_outside_decides() -> None:
    body = _loop_body([node("Reshape", ["h", "s"], ["h2"]), ALWAYS], [value("h", (6,))], [_out("h2")])
    loop = node("Loop", ["M", "", "x"], ["y"], body=body)
    proto = model([loop], [value("x", (6,)), value("s", (1,), INT)], initializers={"M": np.asarray(3)})
    _same(proto, {"x": X.reshape(-1), "s": np.asarray([-1])}, schemas=["reshape"] * 3)


def test_a_loop_of_constants_is_a_constant() -> None:
    nodes = [node("Add", ["h", "one"], ["h2"]), ALWAYS, node("Identity", ["h2"], ["r"])]
    body = _loop_body(nodes, [value("h", (1,), INT)], [_out("h2", INT), _out("r", INT)])
    loop = node("Loop", ["M", "", "zero"], ["last", "rows"], body=body)
    proto = model(
        [loop, node("Reshape", ["x", "rows_flat"]), node("Reshape", ["last", "one"], ["rows_flat"])],
        [value("x", (2, 3))],
        initializers={**SMALL, "M": np.asarray(6)},
    )
    _same(proto, {"x": X}, schemas=["reshape"])


def test_onnx_bodies_that_make_no_sense_are_refused() -> None:
    inputs, initializers = [value("x", (2, 3))], {"M": np.asarray(3), "go": TRUE}
    wrong = [
        (
            node("Loop", ["M", "go"], ["y"], body=_loop_body([ALWAYS], [value("h", (2, 3))], [])),
            "takes 3 inputs, and 2",
        ),
        (
            node("Loop", ["M", "go", "x"], ["y"], body=_loop_body([ALWAYS], [value("h", (2, 3))], [])),
            "has 0 outputs for 1 carried",
        ),
        (
            node("Loop", ["", "go", "x"], ["y"], body=_loop_body([ALWAYS], [value("h", (2, 3))], [_out("h")])),
            "never end",
        ),
        (node("Scan", ["x"], ["y"], num_scan_inputs=2, body=_graph([], [])), "num_scan_inputs is 2, of 1"),
        (node("Scan", ["x"], ["y"], num_scan_inputs=1, body=_graph([], [])), "takes 0 inputs, and 1"),
    ]
    for bad, message in wrong:
        with pytest.raises(ModelError, match=message):
            engine.load_onnx(model([bad], inputs, initializers=initializers))
    other = _loop_body([ALWAYS, node("Cast", ["h"], ["h2"], to=7)], [value("h", (2, 3))], [_out("h2", INT)])
    with pytest.raises(ModelError, match=r"float32\[2,3\] before a turn and int64\[2,3\] after it"):
        engine.load_onnx(model([node("Loop", ["M", "go", "x"], ["y"], body=other)], inputs, initializers=initializers))


@pytest.mark.parametrize("ways", [([0, 0], [0, 0]), ([1, 0], [0, 1]), ([1, 1], [1, 1])])
@pytest.mark.parametrize("axes", [([0, 0], [0, 0]), ([1, -1], [0, 1]), ([0, 1], [-1, 1])])
def test_a_scan_reads_and_writes_along_any_axis_either_way(ways: Any, axes: Any) -> None:
    nodes = [
        node("MatMul", ["h", "w"], ["g"]),
        node("Add", ["g", "a"], ["sum"]),
        node("Tanh", ["sum"], ["h2"]),
        node("Mul", ["b", "k"], ["r"]),
        node("Identity", ["h2"], ["s"]),
    ]
    row = value("a", (3,)), value("b", (3,))
    body = _graph(nodes, [_out("h2"), _out("r"), _out("s")], [value("h", (3,)), *row])
    rng = np.random.default_rng(0)
    x, z = (np.moveaxis(rng.normal(size=(4, 3)).astype(np.float32), 0, axis).copy() for axis in axes[0])
    attrs = dict(zip(("scan_input_directions", "scan_output_directions"), ways, strict=True))
    attrs |= dict(zip(("scan_input_axes", "scan_output_axes"), axes, strict=True))
    scan = node("Scan", ["first", "x", "z"], ["last", "r", "s"], num_scan_inputs=2, body=body, **attrs)
    inputs = [value("first", (3,)), value("x", x.shape), value("z", z.shape), value("k", (3,))]
    w = rng.normal(size=(3, 3)).astype(np.float32)
    feeds = {"first": np.zeros(3, np.float32), "x": x, "z": z, "k": np.arange(3, dtype=np.float32)}
    _same(model([scan], inputs, ["last", "r", "s"], {"w": w}), feeds, schemas=["scan"])


@pytest.mark.parametrize(
    ("step", "rows", "reason"),
    [
        (node("Concat", ["h", "row"], ["h2"], axis=0), node("Identity", ["row"], ["r"]), "changes its shape"),
        (node("Identity", ["h"], ["h2"]), node("NonZero", ["row"], ["r"]), "decides a shape"),
    ],
)
@pytest.mark.parametrize("rows_in", [4, "n"])
def test_onnx_scan_points_to_loop_for_what_it_cannot(step: Any, rows: Any, reason: str, rows_in: Any) -> None:
    body = _graph([step, rows], [_out("h2"), _out("r")], [value("h", (3,)), value("row", (3,))])
    scan = node("Scan", ["h0", "x"], ["y", "r"], num_scan_inputs=1, body=body)
    with pytest.raises(UnsupportedError, match=f"{reason}.*; a Scan is planned beforehand, and cannot do that; a Loop"):
        engine.load_onnx(model([scan], [value("x", (rows_in, 3))], ["y", "r"], {"h0": np.zeros(3, np.float32)}))


@pytest.mark.parametrize("compare", ["Greater", "Less"])
def test_a_growing_loop_that_decides_by_several_elements_is_refused_when_it_is_read(compare: str) -> None:
    nodes = [node("Concat", ["s", "s"], ["out"], axis=0), node(compare, ["s", "s"], ["go"])]
    inputs = [value("i", (), INT), value("c", (), np.bool_), value("s", None)]
    body = _graph(nodes, [_out("go", np.bool_), _out("out")], inputs)
    with pytest.raises(ModelError, match=r"node 'Loop_0' \(Loop\): the condition has"):
        engine.load_onnx(model([node("Loop", ["", "", "x"], body=body)], [value("x", (2,))]))
