"""Passes that leave every bit as it is: what each takes away, and that nothing else changes."""

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import ops
from engine import Graph, Var, optimise
from engine.graph.deferred import Deferred, behind
from engine.passes import verify
from engine.passes.cleanup.common import COMMON
from engine.passes.cleanup.constants import CONSTANTS
from engine.passes.cleanup.redundant import DEAD_CODE, MOVEMENT, NEUTRAL, NO_OPS
from engine.passes.pipeline import CLEANUP
from ops.tensor.spec import Array
from tests.helpers.graphs.control_graphs import control_graphs
from tests.helpers.graphs.pass_checks import check_exact, schema_names
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned


@settings(max_examples=30)
@given(graphs(16))
def test_cleanup_keeps_all_bits_and_is_idempotent(graph: Graph) -> None:
    check_exact(graph, CLEANUP)


@settings(max_examples=15)
@given(control_graphs())
def test_cleanup_keeps_the_bits_of_control_flow(graph: Graph) -> None:
    check_exact(graph, CLEANUP)


@settings(max_examples=30)
@given(graphs(16))
def test_level_1_keeps_all_bits_of_planned_runs_too_and_adds_no_operator(graph: Graph) -> None:
    after, feeds = optimise(graph, 1), random_feeds(graph)
    assert len(after.operators) <= len(graph.operators)
    assert_same(engine.compile(after, optimise=0).run(feeds), engine.compile(graph, optimise=0).run(feeds))
    assert optimise(after, 1) is after


@pytest.mark.slow
def test_cleanup_keeps_the_bits_of_many_graphs() -> None:
    for seed in range(500):
        graph = build(seeded(seed), 24)
        check_exact(graph, CLEANUP)


def test_no_ops_before_and_after() -> None:
    graph = Graph("no_ops")
    x = graph.input("x", (2, 3))
    same = ops.reshape(ops.cast(ops.dropout(ops.identity(x)), "float32"), (2, 3))
    same = ops.slice(ops.expand(ops.transpose(same, (0, 1)), (2, 3)), [0], [2], [0])
    graph.output(ops.relu(ops.concat([same], 0)), "y")
    graph.output(ops.identity(x), "z")
    assert (
        graph.text()
        == """\
graph no_ops
  input    %x: float32[2,3]
  %identity_0: float32[2,3] = identity(%x)
  %identity_1: float32[2,3] = identity(%identity_0)
  %cast_0: float32[2,3] = cast(%identity_1) to=float32 saturate=True round_mode=up
  %reshape_0: float32[2,3] = reshape(%cast_0) shape=(2,3) zero_copies=False
  %transpose_0: float32[2,3] = transpose(%reshape_0) perm=(0,1)
  %expand_0: float32[2,3] = expand(%transpose_0) shape=(2,3)
  %slice_0: float32[2,3] = slice(%expand_0) starts=(0,) ends=(2,) axes=(0,) steps=None
  %concat_0: float32[2,3] = concat(%slice_0) axis=0
  %relu_0: float32[2,3] = relu(%concat_0)
  %identity_2: float32[2,3] = identity(%x)
  output   y = %relu_0
  output   z = %identity_2
"""
    )
    assert (
        NO_OPS(graph).text()
        == """\
graph no_ops
  input    %x: float32[2,3]
  %relu_0: float32[2,3] = relu(%x)
  output   y = %relu_0
  output   z = %x
"""
    )


def test_cleanup_keeps_operators_that_move_elements() -> None:
    graph = Graph()
    x = graph.input("x", (2, 2))
    for i, var in enumerate((ops.transpose(x), x[::-1], ops.reshape(x, (4,)), ops.split(x, [1, 1])[0])):
        graph.output(var, f"y{i}")
    assert NO_OPS(graph) is graph


def test_an_axis_of_length_1_may_be_transposed_for_nothing() -> None:
    graph = Graph()
    graph.output(ops.transpose(graph.input("x", (3, 1, 1)), (0, 2, 1)), "y")
    assert not NO_OPS(graph).operators


@pytest.mark.parametrize(
    ("function", "dtype", "kept"),
    [
        (lambda x: x * 1, "float32", 0),
        (lambda x: 1 * x, "float32", 0),
        (lambda x: x / 1, "float32", 0),
        (lambda x: x - 0.0, "float32", 0),
        (lambda x: x + -0.0, "float32", 0),
        (lambda x: -0.0 + x, "float32", 0),
        (lambda x: x + 0, "int32", 0),
        (lambda x: x - 0, "int32", 0),
        (lambda x: x + 0.0, "float32", 1),
        (lambda x: x - -0.0, "float32", 1),
        (lambda x: 1 / x, "float32", 1),
        (lambda x: 0 - x, "float32", 1),
        (lambda x: x * 2, "float32", 1),
        (lambda x: x * np.ones((2, 2, 3), np.float32), "float32", 1),
        (lambda x: x * np.ones((2, 3), np.float32), "float32", 0),
    ],
)
def test_operators_with_neutral_numbers_vanish(function: object, dtype: str, kept: int) -> None:
    graph = Graph()
    x = graph.input("x", (2, 3), dtype)
    y = function(x)  # type: ignore[operator] # mypy knows no lambdas of vars
    graph.output(y, "y")
    after = NEUTRAL(graph)
    verify(graph, after)
    assert len(after.operators) == kept
    feeds = {"x": np.asarray([[0, 1, 2], [3, 4, 5]]).astype(dtype)}
    if dtype == "float32":
        feeds["x"][0] = -0.0, np.nan, np.inf
    assert_same(run_unplanned(after, feeds), run_unplanned(graph, feeds))


def test_constants_before_and_after() -> None:
    graph = Graph("constants")
    x = graph.input("x", (2,))
    a = graph.constant(np.asarray([1, 2], np.float32), "a")
    graph.output(x * (a + 1.0) * ops.expand(a, (3, 2))[0], "y")
    assert (
        graph.text()
        == """\
graph constants
  input    %x: float32[2]
  constant %a: float32[2]
  constant %constant_0: float32[]
  %add_0: float32[2] = add(%a, %constant_0)
  %mul_0: float32[2] = mul(%x, %add_0)
  %expand_0: float32[3,2] = expand(%a) shape=(3,2)
  %slice_0: float32[1,2] = slice(%expand_0) starts=(0,) ends=(1,) axes=(0,) steps=(1,)
  %reshape_0: float32[2] = reshape(%slice_0) shape=(2,) zero_copies=False
  %mul_1: float32[2] = mul(%mul_0, %reshape_0)
  output   y = %mul_1
"""
    )
    after = CONSTANTS(graph)
    assert (
        after.text()
        == """\
graph constants
  input    %x: float32[2]
  constant %add_0: float32[2]
  constant %reshape_0: float32[2]
  %mul_0: float32[2] = mul(%x, %add_0)
  %mul_1: float32[2] = mul(%mul_0, %reshape_0)
  output   y = %mul_1
"""
    )
    assert [a.tolist() for a in after.constants.values()] == [[2, 3], [1, 2]]
    assert all(op.signature.constants for op in after.operators)


def test_constant_folding_does_not_grow_constants_much() -> None:
    graph = Graph()
    x = graph.input("x", (1000, 1000))
    row = graph.constant(np.ones((1, 1000), np.float32))
    graph.output(x + ops.expand(row, (1000, 1000)), "y")
    assert CONSTANTS(graph) is graph
    assert len(optimise(graph, 1).operators) == 2


def test_constants_that_grow_with_each_operator_are_not_folded_on_and_on() -> None:
    graph = Graph("doubled")
    y = graph.constant(np.arange(2**17, dtype=np.float32))
    for _ in range(20):
        y = ops.concat([y, y], 0)
    graph.output(y, "y")
    assert max(c.nbytes for c in optimise(graph, 1).constants.entries.values()) == 2**20


def test_large_constants_are_not_computed_by_operators_without_end() -> None:
    graph = Graph("products")
    y = graph.constant(np.eye(200, dtype=np.float32))
    for _ in range(40):
        y = ops.matmul(y, y)
    graph.output(y, "y")
    (entry,) = optimise(graph, 1).constants.entries.values()
    assert sum(1 for e in behind(entry) if isinstance(e, Deferred)) == 16


def test_constant_folding_leaves_operators_that_fail_to_the_run() -> None:
    graph = Graph()
    table, beyond = graph.constant(np.ones(3, np.float32)), graph.constant(np.asarray([7]))
    graph.output(ops.gather(table, beyond), "y")
    assert CONSTANTS(graph) is graph


def test_common_subexpressions_before_and_after() -> None:
    graph = Graph("common")
    x = graph.input("x", (2, 2))
    one, other = (graph.constant(np.asarray([1, 2], np.float32), name) for name in ("one", "other"))
    graph.output(ops.relu(x + one) * ops.relu(x + other), "y")
    graph.output(ops.transpose(x, (1, 0)) + ops.transpose(x, (1, 0)) + ops.transpose(x, (0, 1)), "z")
    assert (
        graph.text()
        == """\
graph common
  input    %x: float32[2,2]
  constant %one: float32[2]
  constant %other: float32[2]
  %add_0: float32[2,2] = add(%x, %one)
  %relu_0: float32[2,2] = relu(%add_0)
  %add_1: float32[2,2] = add(%x, %other)
  %relu_1: float32[2,2] = relu(%add_1)
  %mul_0: float32[2,2] = mul(%relu_0, %relu_1)
  %transpose_0: float32[2,2] = transpose(%x) perm=(1,0)
  %transpose_1: float32[2,2] = transpose(%x) perm=(1,0)
  %add_2: float32[2,2] = add(%transpose_0, %transpose_1)
  %transpose_2: float32[2,2] = transpose(%x) perm=(0,1)
  %add_3: float32[2,2] = add(%add_2, %transpose_2)
  output   y = %mul_0
  output   z = %add_3
"""
    )
    assert (
        COMMON(graph).text()
        == """\
graph common
  input    %x: float32[2,2]
  constant %one: float32[2]
  %add_0: float32[2,2] = add(%x, %one)
  %relu_0: float32[2,2] = relu(%add_0)
  %mul_0: float32[2,2] = mul(%relu_0, %relu_0)
  %transpose_0: float32[2,2] = transpose(%x) perm=(1,0)
  %add_2: float32[2,2] = add(%transpose_0, %transpose_0)
  %transpose_2: float32[2,2] = transpose(%x) perm=(0,1)
  %add_3: float32[2,2] = add(%add_2, %transpose_2)
  output   y = %mul_0
  output   z = %add_3
"""
    )


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        (np.zeros(3, np.float32), np.zeros(3, np.float32), True),
        (np.zeros(3, np.float32), -np.zeros(3, np.float32), False),
        (np.full(3, np.nan, np.float32), np.full(3, np.nan, np.float32), True),
        (np.zeros(3, np.float32), np.zeros(3, np.int32), False),
        (np.zeros((1, 3), np.float32), np.zeros(3, np.float32), False),
        (np.arange(99, dtype=np.float32), np.r_[np.arange(98), 0].astype(np.float32), False),
    ],
)
def test_constants_are_merged_where_every_bit_is_equal(one: Array, other: Array, merged: bool) -> None:
    graph = Graph()
    for name, array in (("y", one), ("z", other)):
        graph.output(graph.constant(array), name)
    assert len(COMMON(graph).constants) == 2 - merged


def test_operators_with_bodies_are_not_merged() -> None:
    graph = Graph()
    x = graph.input("x", (2,))
    for name in ("y", "z"):
        graph.output(engine.fori_loop(3, lambda _, c: c + 1.0, x), name)
    assert len(COMMON(graph).operators) == 2


def test_dead_code_before_and_after() -> None:
    graph = Graph("dead")
    x = graph.input("x", (2,))
    graph.input("unread", (3,))
    graph.constant(np.ones(2), "nobody")
    parts = ops.split(x, [1, 1])
    ops.relu(ops.neg(x))
    graph.output(parts[0], "y")
    after = DEAD_CODE(graph)
    assert (
        after.text()
        == """\
graph dead
  input    %x: float32[2]
  input    %unread: float32[3]
  %split_0:0: float32[1], %split_0:1: float32[1] = split(%x) sizes=(1,1) axis=0
  output   y = %split_0:0
"""
    )
    assert DEAD_CODE(after) is after


def test_movement_before_and_after() -> None:
    graph = Graph("movement")
    x = graph.input("x", (2, 3, 4))
    turned = ops.transpose(ops.transpose(x, (1, 2, 0)), (1, 0, 2))
    graph.output(turned, "turned")
    graph.output(ops.reshape(ops.reshape(turned, (12, 2)), (2, 12)), "flat")
    assert (
        graph.text()
        == """\
graph movement
  input    %x: float32[2,3,4]
  %transpose_0: float32[3,4,2] = transpose(%x) perm=(1,2,0)
  %transpose_1: float32[4,3,2] = transpose(%transpose_0) perm=(1,0,2)
  %reshape_0: float32[12,2] = reshape(%transpose_1) shape=(12,2) zero_copies=False
  %reshape_1: float32[2,12] = reshape(%reshape_0) shape=(2,12) zero_copies=False
  output   turned = %transpose_1
  output   flat = %reshape_1
"""
    )
    assert (
        MOVEMENT(graph).text()
        == """\
graph movement
  input    %x: float32[2,3,4]
  %transpose_1: float32[4,3,2] = transpose(%x) perm=(2,1,0)
  %reshape_1: float32[2,12] = reshape(%transpose_1) shape=(2,12) zero_copies=False
  output   turned = %transpose_1
  output   flat = %reshape_1
"""
    )


def test_inverse_transposes_vanish_together() -> None:
    graph = Graph()
    x = graph.input("x", (2, 3, 4))
    graph.output(ops.relu(ops.transpose(ops.transpose(x, (1, 2, 0)), (2, 0, 1))), "y")
    assert schema_names(optimise(graph, 1)) == ["relu"]


def test_sparse_constants_are_one_where_all_their_bytes_are_equal() -> None:
    graph = Graph()
    total = graph.input("x", (64,))
    for number in (1, 2, 1, 0, -0.0, 2, np.nan, np.nan):
        array = np.zeros(64, np.float32)
        array[1] = number
        total = total + array
    graph.output(total, "y")
    assert [a[1] for a in COMMON(graph).constants.values()] == pytest.approx([1, 2, 0, -0.0, np.nan], nan_ok=True)


def test_level_0_and_a_graph_with_nothing_to_do_stay_the_same_object() -> None:
    graph = Graph()
    graph.output(ops.relu(graph.input("x", (2,))), "y")
    assert optimise(graph, 0) is optimise(graph, 1) is optimise(graph, 2) is graph
    wasteful = Graph()
    wasteful.output(ops.identity(wasteful.input("x", (2,))), "y")
    assert optimise(wasteful, 0) is wasteful


def _doubled(x: Var) -> Var:
    return x + x


def test_cleanup_reaches_bodies() -> None:
    graph = Graph()
    x = graph.input("x", (2,))
    graph.output(engine.fori_loop(3, lambda _, c: ops.identity(_doubled(c)), ops.identity(x)), "y")
    after = optimise(graph, 1)
    (loop,) = after.operators
    assert schema_names(graph.operators[-1].attrs["body"].graph) == ["add", "identity"]
    assert schema_names(loop.attrs["body"].graph) == ["add"]
    feeds = random_feeds(graph)
    assert_same(run_unplanned(after, feeds), run_unplanned(graph, feeds))
