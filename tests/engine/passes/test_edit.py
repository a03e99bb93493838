"""Edits, of which passes are written: a graph stays runnable, names and state are kept, unread operators go."""

import numpy as np
import pytest

import engine
import ops
from engine import Graph, Operator, Var
from engine.passes import Edit, RulePass, rewrite, verify
from engine.text.errors import GraphError, OptionError, PassError
from ops.elementwise.activation import RELU
from ops.elementwise.unary import NEG
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned


def _chain() -> Graph:
    graph = Graph("chain")
    x = graph.input("x", (2, 3))
    graph.output(ops.neg(ops.relu(ops.neg(ops.neg(x)))), "y")
    return graph


def _drop_double_negation(edit: Edit, operator: Operator) -> None:
    before = edit.writer(operator.inputs[0])
    if operator.schema is NEG and before is not None and before.schema is NEG:
        edit.replace(operator.outputs[0], before.inputs[0])


def test_an_edit_without_changes_is_the_graph() -> None:
    graph = _chain()
    edit = Edit(graph)
    ops.tanh(edit.operators[0].outputs[0])
    assert edit.graph() is graph


def test_a_rule_is_shown_every_operator_until_it_changes_nothing() -> None:
    graph = _chain()
    after = RulePass("double negation", _drop_double_negation)(graph)
    verify(graph, after)
    assert (
        after.text()
        == """\
graph chain
  input    %x: float32[2,3]
  %relu_0: float32[2,3] = relu(%x)
  %neg_2: float32[2,3] = neg(%relu_0)
  output   y = %neg_2
"""
    )
    feeds = random_feeds(graph)
    assert_same(run_unplanned(after, feeds), run_unplanned(graph, feeds))
    assert rewrite(after, _drop_double_negation) is after


def test_a_replacement_takes_the_name_and_new_operators_get_one() -> None:
    graph = Graph("names")
    x = graph.input("x", (2,))
    (y,) = graph.add(RELU, [x], name="first", output_names=["y"])
    (z,) = graph.add(NEG, [y], name="tanh_0", output_names=["z"])
    graph.output(z, "out")
    edit = Edit(graph)
    first = edit.operators[0]
    edit.replace(first.outputs[0], ops.abs(ops.tanh(first.inputs[0])))
    after = edit.graph()
    verify(graph, after)
    assert [(op.name, op.outputs[0].name) for op in after.operators] == [
        ("tanh_1", "tanh_1"),  # tanh_0 is taken
        ("first", "y"),
        ("tanh_0", "z"),
    ]


def test_a_name_that_is_still_needed_is_not_taken() -> None:
    graph = Graph()
    x = graph.input("x", (4,))
    a, b = ops.split(x, [2, 2])
    graph.output(ops.relu(a) + b, "y")
    edit = Edit(graph)
    split, relu, _ = edit.operators
    edit.replace(split.outputs[0], ops.slice(split.inputs[0], [0], [2], [0]))
    after = edit.graph()
    verify(graph, after)
    assert [op.name for op in after.operators] == ["split_0", "slice_0", "relu_0", "add_0"]
    assert after.operators[1].outputs[0].name == "split_0:0_0"
    assert relu.name == "relu_0"


def test_operators_stand_behind_what_they_read() -> None:
    graph = Graph()
    x, y = graph.input("x", (2,)), graph.input("y", (2,))
    early = ops.relu(x)
    late = ops.tanh(y)
    graph.output(early + late, "z")
    edit = Edit(graph)
    relu, tanh, _ = (edit.operator(n) for n in edit.operator_ids())
    edit.insert_behind(edit.operator_ids()[0])
    edit.replace(relu.outputs[0], ops.neg(tanh.outputs[0]))
    after = edit.graph()
    verify(graph, after)
    assert schema_names(after) == ["tanh", "neg", "add"]


def test_an_edit_removes_unread_operators_and_keeps_fetched_ones() -> None:
    graph = Graph()
    x = graph.input("x", (3,))
    kept, gone = ops.relu(x), ops.tanh(x + np.ones(3, np.float32))
    total = kept + gone
    graph.output(kept, "kept")
    graph.output(total, "total")
    edit = Edit(graph)
    add = edit.operators[-1]
    edit.replace(add.outputs[0], add.inputs[0])
    after = edit.graph()
    assert schema_names(after) == ["relu"]
    assert not after.constants
    assert after.outputs["kept"] is after.outputs["total"]


def test_an_edit_knows_readers() -> None:
    graph = Graph()
    x = graph.input("x", (3,))
    one, two = ops.relu(x), ops.neg(x)
    graph.output(one + one, "y")
    graph.output(two, "z")
    edit = Edit(graph)
    relu, neg, add = edit.operators
    assert edit.readers(relu.outputs[0]) == (add,)
    assert edit.sole_reader(relu.outputs[0]) is add
    assert edit.sole_reader(neg.outputs[0]) is None
    assert edit.readers(edit.inputs[0]) == (relu, neg)
    assert edit.is_self_contained((relu, add), add.outputs[0])
    assert not edit.is_self_contained((relu, neg, add), add.outputs[0])
    assert edit.writer(edit.inputs[0]) is None


def test_an_edit_reads_numbers_of_constants() -> None:
    graph = Graph()
    arrays: dict[str, Array] = {
        "same": np.full((2, 2), 3.0, np.float32),
        "mixed": np.arange(4.0),
        "whole": np.asarray(7),
        "truth": np.ones(1, bool),
    }
    for name, array in arrays.items():
        graph.output(ops.identity(graph.constant(array, name)), name)
    edit = Edit(graph)
    assert [edit.uniform_value(v) for v in edit.constants] == [3.0, None, 7.0, None]


def test_a_replacement_must_be_alike() -> None:
    edit = Edit(_chain())
    (first, *_) = edit.operators
    with pytest.raises(PassError, match="cannot be replaced by"):
        edit.replace(first.outputs[0], ops.reshape(first.inputs[0], (3, 2)))


def test_an_edit_carries_parameters_over() -> None:
    graph = Graph()
    x = graph.input("x", (3,))
    p = graph.parameter(np.ones(3, np.float32), "p")
    q = graph.parameter(np.ones(3, np.float32), "q", trainable=False)
    graph.output(ops.neg(ops.neg(x)) * p + q, "y")
    graph.assign(p, p + ops.neg(ops.neg(x)))
    graph.assign(q, ops.relu(x))
    edited = rewrite(graph, _drop_double_negation)
    verify(graph, edited)
    assert [(v.name, p.trainable) for v, p in edited.parameters.items()] == [("p", True), ("q", False)]
    assert {p.name: v.name for p, v in edited.updates.items()} == {p.name: v.name for p, v in graph.updates.items()}
    feeds = random_feeds(graph)
    before, after = engine.compile(graph, optimise=0), engine.compile(edited, optimise=0)
    for _ in range(3):
        assert_same(after.run(feeds), before.run(feeds))


def test_an_edit_keeps_readers_of_a_parameter_before_its_update() -> None:
    graph = Graph()
    x = graph.input("x", (3,))
    p = graph.parameter(np.ones(3, np.float32), "p")
    read = p * x
    graph.assign(p, p + x)
    graph.output(ops.relu(ops.tanh(read)), "y")

    def merge(edit: Edit, operator: Operator) -> None:
        """Reads the parameter where it was read no more."""
        inner = edit.writer(operator.inputs[0])
        if operator.schema is RELU and inner is not None:
            (product,) = (edit.writer(v) for v in inner.inputs)
            assert product is not None
            edit.replace(operator.outputs[0], ops.abs(ops.mul(*product.inputs)))

    after = rewrite(graph, merge)
    verify(graph, after)
    assert schema_names(after) == ["mul", "add", "abs"]


def test_a_graph_whose_lengths_or_data_decide_sizes_is_edited() -> None:
    graph = Graph("open")
    x = graph.input("x", ("n", 3))
    rows = ops.nonzero(ops.identity(ops.neg(ops.neg(x))))
    graph.output(ops.transpose(ops.transpose(rows)), "y")
    after = rewrite(engine.optimise(graph), _drop_double_negation)
    verify(graph, after)
    assert "identity" not in schema_names(after) and "neg" not in schema_names(after)
    assert not graph.guards and not after.guards
    for n in (1, 4):
        feeds = {"x": np.eye(n, 3, dtype=np.float32)}
        assert_same(engine.compile(after, optimise=0).run(feeds), engine.compile(graph, optimise=0).run(feeds))


def test_constants_are_shared_and_new_ones_take_a_name_that_is_free() -> None:
    graph = Graph()
    x = graph.input("x", (3,))
    weights = graph.constant(np.ones(3, np.float32), "w")
    graph.output(ops.neg(ops.neg(x)) * weights, "y")
    after = rewrite(graph, _drop_double_negation)
    assert after.constants[after.vars["w"]] is graph.constants[weights]
    edit = Edit(graph)
    *_, product = edit.operators
    edit.replace(product.outputs[0], ops.add(product.inputs[0], edit.constant(np.zeros(3, np.float32), "w")))
    assert [v.name for v in edit.graph().constants] == ["w"]
    edit = Edit(graph)
    *_, product = edit.operators
    more = edit.constant(np.zeros(3, np.float32), "w")
    edit.replace(product.outputs[0], product.inputs[0] * product.inputs[1] + more)
    assert [v.name for v in edit.graph().constants] == ["w", "w_0"]


def test_optimise_refuses_what_is_no_graph() -> None:
    for level in (0, 2):
        with pytest.raises(GraphError, match="3 is no graph"):
            engine.optimise(3, level)  # type: ignore[arg-type] # what a user may do


def test_optimise_knows_every_level() -> None:
    with pytest.raises(OptionError, match="4 is no level"):
        engine.optimise(_chain(), 4)
    for level in (True, 1.0, "2"):
        with pytest.raises(OptionError, match="is no level"):
            engine.optimise(_chain(), level)  # type: ignore[arg-type]
    assert isinstance(_chain().inputs["x"], Var)
