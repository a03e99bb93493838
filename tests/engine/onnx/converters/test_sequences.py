"""ONNX sequences and optionals against lists of Python and onnxruntime; none of them reaches the graph."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import engine
from engine.api import MODES
from engine.onnx_backend import Backend
from engine.text.errors import ConstantNeededError, ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, value

INT = np.int64
X = np.arange(12, dtype=np.float32).reshape(4, 3)


def _same(proto: Any, *feeds: Mapping[str, Array], **options: Any) -> engine.Graph:
    """Checks that every mode gives what onnxruntime gives, and returns the graph."""
    graph = engine.load_onnx(proto, **options)
    ways: list[dict[str, Any]] = [*({"mode": mode} for mode in MODES), {"debug": "poison"}]
    for feed in feeds:
        wanted = [a for out in run_onnxruntime(proto, feed) for a in (out if isinstance(out, list) else [out])]
        fed = {name: array for name, array in feed.items() if name in graph.inputs}
        for way in ways:
            ours = list(engine.compile(graph, **way).run(fed).values())
            for output, want in zip(ours, wanted, strict=True):
                assert output.dtype == want.dtype
                np.testing.assert_array_equal(output, want)
    return graph


STEPS = st.lists(st.tuples(st.sampled_from(["Insert", "Erase", "At"]), st.integers(0, 9), st.booleans()), max_size=12)


@given(STEPS, st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_a_sequence_is_a_list(steps: list[tuple[str, int, bool]], first: int) -> None:
    """Insertions, deletions and reads at random positions do what those of a list of Python do."""
    nodes, name = [node("SequenceConstruct", ["x"] * first, ["s"])], "s"
    wanted, read = [X] * first, dict[str, Array]()
    constants: dict[str, Any] = {}
    for i, (kind, number, from_end) in enumerate(steps):
        size = len(wanted)
        place = number % (size + (kind == "Insert")) if size else 0
        if not size and kind != "Insert":
            continue
        constants[f"p{i}"] = np.asarray(place - size if from_end and place < size else place)
        new = [f"k{i}"] if kind == "Insert" else []
        nodes.append(node(f"Sequence{kind}", [name, *new, f"p{i}"], [f"s{i}"]))
        if kind == "At":
            read[f"s{i}"] = wanted[place]
            continue
        name = f"s{i}"
        if kind == "Insert":
            constants[f"k{i}"] = X + 10 * i
            wanted.insert(place, X + 10 * i)
        else:
            del wanted[place]
    nodes.append(node("SequenceLength", [name], ["length"]))
    graph = engine.load_onnx(model(nodes, [value("x", X.shape)], [name, *read, "length"], constants))
    results = list(engine.compile(graph, optimise=0).run({"x": X}).values())
    for result, want in zip(results, [*wanted, *read.values(), len(wanted)], strict=True):
        np.testing.assert_array_equal(result, want)


def test_without_a_position_the_end_is_meant() -> None:
    nodes = [
        node("SequenceConstruct", ["x", "h"], ["s"]),
        node("SequenceInsert", ["s", "k"], ["t"]),
        node("SequenceErase", ["t"], ["u"]),
        node("Neg", ["x"], ["h"]),
    ]
    proto = model(nodes, [value("x", X.shape)], ["t", "u"], {"k": X + 1})
    _same(proto, {"x": X})


@given(
    st.integers(-2, 1),
    st.one_of(st.none(), st.integers(1, 6), st.lists(st.integers(0, 4), min_size=1, max_size=4)),
    st.integers(0, 1),
)
@settings(max_examples=20, deadline=None)
def test_a_tensor_is_split_as_numpy_splits_it(axis: int, split: int | list[int] | None, keepdims: int) -> None:
    length = X.shape[axis]
    if isinstance(split, list):
        split = [min(n, length // len(split)) for n in split]
        split[-1] += length - sum(split)
    part = 1 if split is None else split
    ends = np.cumsum(part)[:-1] if isinstance(part, list) else np.arange(part, length, part)
    wanted = np.split(X, ends, axis)
    if split is None and not keepdims:
        wanted = [part.squeeze(axis) for part in wanted]
    splitting = node("SplitToSequence", ["x", *(["n"] if split is not None else [])], axis=axis, keepdims=keepdims)
    proto = model([splitting], [value("x", X.shape)], initializers={} if split is None else {"n": np.asarray(split)})
    results = engine.compile(engine.load_onnx(proto), optimise=0).run({"x": X})
    assert list(results) == [f"y[{i}]" for i in range(len(wanted))]
    for ours, want in zip(results.values(), wanted, strict=True):
        np.testing.assert_array_equal(ours, want)


def test_no_operator_is_left_of_a_sequence() -> None:
    nodes = [
        node("SequenceConstruct", ["x", "z"], ["s"]),
        node("SequenceInsert", ["s", "h", "front"], ["t"]),
        node("Neg", ["x"], ["h"]),
        node("SequenceErase", ["t"], ["u"]),
        node("ConcatFromSequence", ["u"], ["y"], axis=1),
    ]
    proto = model(nodes, [value("x", ("n", 3)), value("z", ("n", 3))], initializers={"front": np.asarray(0)})
    graph = _same(proto, {"x": X, "z": X + 1}, {"x": X[:1], "z": X[:1]})
    assert schema_names(graph) == ["neg", "concat"]


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (-1, 0), (0, 1), (2, 1), (-1, 1)])
def test_a_sequence_is_joined_along_an_old_or_a_new_axis(axis: int, new_axis: int) -> None:
    nodes = [
        node("SplitToSequence", ["x", "two"], ["s"]),
        node("ConcatFromSequence", ["s"], axis=axis, new_axis=new_axis),
    ]
    _same(model(nodes, [value("x", X.shape)], initializers={"two": np.asarray(2)}), {"x": X})


def test_the_sizes_of_parts_may_be_data() -> None:
    nodes = [node("SplitToSequence", ["x", "sizes"], ["s"]), node("SequenceAt", ["s", "one"])]
    proto = model(nodes, [value("x", X.shape), value("sizes", (2,), INT)], initializers={"one": np.asarray(1)})
    _same(proto, *({"x": X, "sizes": np.asarray(sizes)} for sizes in ([1, 3], [3, 1], [2, 2])))


def test_the_run_may_choose_among_tensors_of_one_shape() -> None:
    nodes = [node("SequenceConstruct", ["x", "z"], ["s"]), node("SequenceAt", ["s", "i"])]
    proto = model(nodes, [value("x", ("n", 3)), value("z", ("n", 3)), value("i", (), INT)])
    _same(proto, *({"x": X, "z": X + 1, "i": np.asarray(i)} for i in (0, 1, -1, -2)))


def test_a_position_among_tensors_of_other_shapes_must_be_constant() -> None:
    nodes = [node("SequenceConstruct", ["x", "z"], ["s"]), node("SequenceAt", ["s", "i"])]
    proto = model(nodes, [value("x", (2, 3)), value("z", (4,)), value("i", (), INT)])
    with pytest.raises(ConstantNeededError, match="input 'position' decides") as caught:
        engine.load_onnx(proto)
    assert caught.value.inputs == ("i",)
    assert engine.load_onnx(proto, constants={"i": 1}).outputs["y"].shape == (4,)


def _body(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs))


def test_a_loop_that_collects_tensors_is_read_turn_by_turn() -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    sequence = helper.make_sequence_type_proto(tensor)
    carried, after = (helper.make_value_info(name, sequence) for name in ("s", "t"))
    nodes = [
        node("Identity", ["c"], ["c2"]),
        node("Add", ["i", "one"], ["end"]),
        node("Unsqueeze", ["end", "zero"], ["ends"]),
        node("Slice", ["x", "zero", "ends"], ["part"]),
        node("SequenceInsert", ["s", "part"], ["t"]),
    ]
    inputs = [value("i", (), INT), value("c", (), np.bool_), carried]
    body = _body(nodes, inputs, [value("c2", (), np.bool_), after])
    loop = [node("SequenceEmpty", [], ["e"]), node("Loop", ["M", "", "e"], ["s9"], body=body)]
    constants = {"one": np.asarray(1), "zero": np.asarray([0]), "M": np.asarray(3)}
    _same(
        model([*loop, node("ConcatFromSequence", ["s9"], axis=0)], [value("x", X.shape)], initializers=constants),
        {"x": X},
    )
    del constants["M"]
    proto = model(loop, [value("x", X.shape), value("M", (), INT)], ["s9"], constants)
    with pytest.raises(ConstantNeededError) as caught:
        engine.load_onnx(proto)
    assert caught.value.inputs == ("M",)
    assert list(engine.load_onnx(proto, constants={"M": 2}).outputs) == ["s9[0]", "s9[1]"]
    with pytest.raises(UnsupportedError, match="turns are read one by one"):
        engine.load_onnx(proto, constants={"M": 10**12})


def _collecting(*nodes: Any, then: Sequence[Any], outputs: Sequence[str], ahead: Any = None) -> Any:
    """Returns a model with a loop over `M`, an input, whose turns insert `part` in the sequence s9 and carry h."""
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    carried, after = (helper.make_value_info(name, sequence) for name in ("s", "t"))
    inner = [
        node("Identity", ["c"], ["c2"]),
        node("Mul", ["h", "two"], ["h2"]),
        *nodes,
        node("SequenceInsert", ["s", "part"], ["t"]),
    ]
    inputs = [value("i", (), INT), value("c", (), np.bool_), carried, value("h", X.shape)]
    body = _body(inner, inputs, [value("c2", (), np.bool_), after, value("h2", X.shape), value("row", None)])
    begin = ahead or node("SequenceEmpty", [], ["e"])
    loop = node("Loop", ["M", "", "e", "x"], ["s9", "h9", "rows"], body=body)
    constants = {"two": np.asarray(2, np.float32), "one": np.asarray(1), "zero": np.asarray([0])}
    return model([begin, loop, *then], [value("x", X.shape), value("M", (), INT)], outputs, constants)


_ROW = node("ReduceSum", ["h", "zero"], ["row"], keepdims=0)


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1)])
def test_the_run_may_decide_how_many_tensors_a_loop_collects(axis: int, new_axis: int) -> None:
    part = node("Add", ["h", "h"], ["part"])
    then = [
        node("ConcatFromSequence", ["s9"], ["y"], axis=axis, new_axis=new_axis),
        node("SequenceLength", ["s9"], ["n"]),
        node("SequenceAt", ["s9", "one"], ["second"]),
    ]
    proto = _collecting(_ROW, part, then=then, outputs=["y", "n", "second", "h9", "rows"])
    _same(proto, *({"x": X, "M": np.asarray(n)} for n in (2, 5)))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_branch_may_join_the_tensors_that_its_loop_collects(axis: int) -> None:
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    carried, after = (helper.make_value_info(name, sequence) for name in ("s", "t"))
    turn = [node("Identity", ["c"], ["c2"]), node("Neg", ["x"], ["part"]), node("SequenceInsert", ["s", "part"], ["t"])]
    inputs = [value("i", (), INT), value("c", (), np.bool_), carried]
    loop = node("Loop", ["M", "", "e"], ["s9"], body=_body(turn, inputs, [value("c2", (), np.bool_), after]))
    joined = node("ConcatFromSequence", ["s9"], ["z"], axis=axis)
    branches = (
        _body([node("SequenceEmpty", [], ["e"]), loop, joined], [], [value("z", None)]),
        _body([node("Identity", ["x"], ["z"])], [], [value("z", None)]),
    )
    choice = node("If", ["b"], then_branch=branches[0], else_branch=branches[1])
    proto = model([choice], [value("x", X.shape), value("M", (), INT), value("b", (), np.bool_)])
    _same(proto, *({"x": X, "M": np.asarray(n), "b": np.asarray(n > 1)} for n in (1, 2, 3)))


@pytest.mark.parametrize(
    ("nodes", "then", "ahead", "message"),
    [
        ([], node("SequenceErase", ["s9"], ["y"]), None, "'M' decides a shape"),
        ([], node("Identity", ["s9"], ["y"]), None, "'M' decides a shape"),
        ([], node("Relu", ["s9"], ["y"]), None, "input 0 is a sequence, where one tensor is wanted"),
        ([], node("Relu", ["h9"], ["y"]), node("SequenceConstruct", ["x"], ["e"]), "'M' decides a shape"),
        ([node("SequenceLength", ["s"], ["k"])], node("Relu", ["h9"], ["y"]), None, "'M' decides a shape"),
        ([node("SequenceAt", ["t", "one"], ["k"])], node("Relu", ["h9"], ["y"]), None, "'M' decides a shape"),
    ],
)
def test_what_a_run_cannot_decide_of_a_sequence_is_refused(nodes: Any, then: Any, ahead: Any, message: str) -> None:
    part = node("Neg", ["h"], ["part"])
    with pytest.raises((ModelError, UnsupportedError), match=message):
        engine.load_onnx(_collecting(_ROW, part, *nodes, then=[then], outputs=["y"], ahead=ahead))


def test_a_loop_that_carries_what_is_no_list_of_tensors_needs_constants() -> None:
    """A sequence whose length the run decides, and an optional without an element."""
    second = _collecting(_ROW, node("Neg", ["h"], ["part"]), then=[], outputs=["y"]).graph.node[1]
    second.input[2], second.output[0] = "s9", "y"
    del second.output[1:]
    none = node("Optional", [], ["e"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    then: tuple[tuple[Any, Any], ...] = ((second, None), (node("Relu", ["h9"]), none))
    for last, ahead in then:
        proto = _collecting(_ROW, node("Neg", ["h"], ["part"]), then=[last], outputs=["y"], ahead=ahead)
        with pytest.raises(ConstantNeededError, match="'M' decides a shape"):
            engine.load_onnx(proto)


@pytest.mark.slow
@pytest.mark.parametrize("begins", [True, False])
def test_a_condition_that_constants_decide_ends_a_loop_that_collects_tensors(begins: bool) -> None:
    nodes = [
        node("Less", ["i", "most"], ["c2"]),
        node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        node("Add", ["x", "f"], ["sum"]),
        node("SequenceInsert", ["s", "sum"], ["t"]),
    ]
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    carried, after = (helper.make_value_info(name, sequence) for name in ("s", "t"))
    inputs = [value("i", (), INT), value("c", (), np.bool_), carried]
    body = _body(nodes, inputs, [value("c2", (), np.bool_), after])
    loop = [node("SequenceConstruct", ["x"], ["e"]), node("Loop", ["", "begins", "e"], ["s9"], body=body)]

    def proto(most: int) -> Any:
        return model(loop, [value("x", X.shape)], ["s9"], {"most": np.asarray(most), "begins": np.asarray(begins)})

    assert len(_same(proto(2), {"x": X}).outputs) == (4 if begins else 1)
    if begins:
        with pytest.raises(UnsupportedError, match="turns are read one by one"):
            engine.load_onnx(proto(10**12))


def _choice(*counts: int) -> Any:
    """Returns an If whose branches give sequences of so many tensors."""
    graphs: list[Any] = []
    for count in counts:
        sequence = node("SequenceConstruct", ["h"] * count, ["s"]) if count else node("SequenceEmpty", [], ["s"])
        graphs.append(
            _body(
                [node("Neg" if graphs else "Abs", ["x"], ["h"]), sequence],
                [],
                [helper.make_empty_tensor_value_info("s")],
            )
        )
    return node("If", ["c"], ["y"], then_branch=graphs[0], else_branch=graphs[1])


def test_branches_give_sequences_of_one_length() -> None:
    proto = model([_choice(2, 2)], [value("c", (), np.bool_), value("x", X.shape)])
    graph = engine.load_onnx(proto)
    assert schema_names(graph) == ["if"] and list(graph.outputs) == ["y[0]", "y[1]"]
    for c, wanted in ((True, np.abs(-X)), (False, X)):
        for array in engine.compile(graph)(c=np.asarray(c), x=-X).values():
            np.testing.assert_array_equal(array, wanted)


def test_branches_that_give_empty_sequences_need_no_operator() -> None:
    proto = model(
        [_choice(0, 0), node("SequenceInsert", ["y", "x"], ["z"])],
        [value("c", (), np.bool_), value("x", X.shape)],
        ["z"],
    )
    graph = engine.load_onnx(proto)
    assert not schema_names(graph) and list(graph.outputs) == ["z[0]"]


def test_branches_that_give_sequences_of_other_lengths_need_a_constant_condition() -> None:
    proto = model([_choice(1, 2)], [value("c", (), np.bool_), value("x", X.shape)])
    with pytest.raises(ConstantNeededError, match="input 'cond' decides") as caught:
        engine.load_onnx(proto)
    assert caught.value.inputs == ("c",)
    assert len(engine.load_onnx(proto, constants={"c": False}).outputs) == 2
    with pytest.raises(UnsupportedError, match="empty sequences and optionals alone"):
        engine.load_onnx(model([_choice(0, 2)], [value("x", X.shape)], initializers={"c": np.asarray(True)}))


def test_a_map_reads_its_body_for_each_place() -> None:
    body = _body(
        [node("Add", ["a", "b"], ["o"]), node("Shape", ["o"], ["n"])],
        [value("a", None), value("b", None)],
        [value("o", None), value("n", None, INT)],
    )
    nodes = [
        node("SplitToSequence", ["x", "sizes"], ["s"]),
        node("SequenceMap", ["s", "bias"], ["t", "shapes"], body=body),
        node("ConcatFromSequence", ["t"], ["y"], axis=0),
        node("ConcatFromSequence", ["shapes"], ["z"], axis=0, new_axis=1),
    ]
    constants = {"sizes": np.asarray([1, 3]), "bias": np.ones(3, np.float32)}
    graph = engine.load_onnx(model(nodes, [value("x", X.shape)], ["y", "z"], constants))
    y, z = engine.compile(graph)(x=X).values()
    np.testing.assert_array_equal(y, X + 1)
    assert z.tolist() == [[1, 3], [3, 3]]


def test_a_map_over_collected_tensors_needs_to_know_how_many_there_are() -> None:
    body = _body([node("Add", ["a", "b"], ["o"])], [value("a", None), value("b", None)], [value("o", None)])
    pair, sums = node("SequenceConstruct", ["x", "x"], ["p"]), node("SequenceMap", ["p", "s9"], ["y"], body=body)
    proto = _collecting(_ROW, node("Neg", ["h"], ["part"]), then=[pair, sums], outputs=["y"])
    with pytest.raises(ConstantNeededError, match="'M' decides a shape"):
        engine.load_onnx(proto)
    assert list(engine.load_onnx(proto, constants={"M": 2}).outputs) == ["y[0]", "y[1]"]


def test_an_optional_is_its_element() -> None:
    nodes = [
        node("Optional", ["x"], ["some"]),
        node("Optional", [], ["none"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [2])),
        node("OptionalHasElement", ["some"], ["a"]),
        node("OptionalHasElement", ["none"], ["b"]),
        node("OptionalGetElement", ["some"], ["y"]),
    ]
    results = engine.compile(engine.load_onnx(model(nodes, [value("x", X.shape)], ["a", "b", "y"], opset=18)))(x=X)
    assert results["a"] and not results["b"]
    np.testing.assert_array_equal(results["y"], X)
    with pytest.raises(ModelError, match="the optional has no element"):
        engine.load_onnx(
            model([*nodes, node("OptionalGetElement", ["none"], ["z"])], [value("x", X.shape)], ["z"], opset=18)
        )


BAD: list[tuple[list[Any], str]] = [
    ([node("SequenceAt", ["s", "five"])], "node 'SequenceAt_1' .* position 5 is not in a sequence of 2 tensors"),
    ([node("SequenceErase", ["s", "five"])], "position 5 is not in a sequence of 2 tensors"),
    ([node("SequenceInsert", ["s", "x", "five"])], "position 5 is not in a sequence of 2 tensors"),
    ([node("SequenceInsert", ["s", "five"])], "tensors of one element type, not of float32 and int64"),
    ([node("SequenceErase", ["x"])], "input 0 is no sequence"),
    ([node("Relu", ["s"])], "node 'Relu_1' .* input 0 is a sequence of 2 tensors, where one tensor is wanted"),
    ([node("Add", ["x", "s"])], "input 1 is a sequence of 2 tensors"),
    ([node("SequenceInsert", ["s", "s"])], "input 1 is a sequence"),
    ([node("SequenceEmpty", [], ["e"]), node("ConcatFromSequence", ["e"], axis=0)], "the sequence is empty"),
    ([node("SequenceEmpty", [], ["e"]), node("SequenceErase", ["e"])], "there is no tensor to erase"),
    ([node("ConcatFromSequence", ["s"], axis=5)], "axis"),
    ([node("SplitToSequence", ["x", "none"])], "split is empty, and 4 places are to be split"),
    ([node("SplitToSequence", ["x", "zero"])], "split is 0; at least 1 is wanted"),
    ([node("Shape", ["s"])], "input 0 is a sequence"),
    ([node("Custom", ["s"], domain="acme")], "acme.Custom"),
]


@pytest.mark.parametrize(("nodes", "message"), BAD, ids=lambda p: p if isinstance(p, str) else p[0].op_type)
def test_a_wrong_use_of_a_sequence_is_refused(nodes: list[Any], message: str) -> None:
    construct = node("SequenceConstruct", ["x", "x"], ["s"])
    constants = {"five": np.asarray(5), "zero": np.asarray(0), "none": np.zeros(0, np.int64)}
    proto = model([construct, *nodes], [value("x", X.shape)], initializers=constants)
    proto.opset_import.append(helper.make_opsetid("acme", 1))
    with pytest.raises((ModelError, UnsupportedError), match=message) as caught:
        engine.load_onnx(proto)
    assert "\n" not in str(caught.value)


def test_a_small_file_does_not_become_a_million_tensors() -> None:
    proto = model([node("SplitToSequence", ["x"])], [value("x", (10**12, 1))])
    with pytest.raises(UnsupportedError, match="too many operators"):
        engine.load_onnx(proto)
    open_length = model([node("SplitToSequence", ["x"])], [value("x", ("n", 1))])
    with pytest.raises(UnsupportedError, match="length n decides how many tensors there are"):
        engine.load_onnx(open_length)


def _sequence_input(name: str, dims: Any, *, optional: bool = False) -> Any:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, dims))
    return helper.make_value_info(name, helper.make_optional_type_proto(kind) if optional else kind)


def test_the_tensors_of_an_input_are_inputs() -> None:
    proto = model([node("ConcatFromSequence", ["s"], axis=0)], [_sequence_input("s", ["n", 3])])
    graph = engine.load_onnx(proto, shapes={"s[0]": (1, 3), "s[1]": ("m", 3)})
    assert list(graph.inputs) == ["s[0]", "s[1]"]
    y = engine.compile(graph).run({"s[0]": X[:1], "s[1]": X[1:]})["y"]
    np.testing.assert_array_equal(y, X)
    fixed = engine.load_onnx(proto, constants={"s": [X[:2], X[2:]]})
    np.testing.assert_array_equal(engine.compile(fixed).run({})["y"], X)
    np.testing.assert_array_equal(Backend.prepare(proto).run([[X[:1], X[1:]]])[0], X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"input 's' is a sequence; give each of its tensors a shape, such as shapes=.'s\[0\]'"),
        ({"shapes": {"s": (2, 3)}}, "input 's' is a sequence"),
        ({"shapes": {"s[0]": (2, 3), "s[2]": (2, 3)}}, r"names 's\[2\]', which is no input; the inputs are: s\[0\]"),
        ({"shapes": {"s[0]": (2, 4)}}, "axis 1 is 3, not 4"),
        ({"constants": {"s": X}}, "it is fixed to a list of arrays, not ndarray"),
        ({"constants": {"s": None}}, "it is fixed to a list of arrays, not NoneType"),
        ({"constants": {"s": []}}, "the sequence is empty"),
    ],
)
def test_a_sequence_that_is_given_wrongly_is_refused(options: Any, message: str) -> None:
    proto = model([node("ConcatFromSequence", ["s"], axis=0)], [_sequence_input("s", [None, 3])])
    with pytest.raises(ModelError, match=message):
        engine.load_onnx(proto, **options)


def test_an_optional_input_has_an_element_unless_the_caller_says_no() -> None:
    nodes = [node("OptionalHasElement", ["s"], ["has"])]
    proto = model(nodes, [_sequence_input("s", [None], optional=True)], ["has"], opset=18)
    assert not engine.compile(engine.load_onnx(proto, constants={"s": None})).run({})["has"]
    assert engine.compile(engine.load_onnx(proto, constants={"s": []})).run({})["has"]
    graph = engine.load_onnx(proto, shapes={"s[0]": (4,)})
    assert engine.compile(graph).run({"s[0]": np.zeros(4, np.float32)})["has"]
