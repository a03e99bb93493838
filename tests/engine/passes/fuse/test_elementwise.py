"""Elementwise chains as one operator: equal bits, in every mode, and no larger a peak."""

import numpy as np
from hypothesis import given, settings

import engine
import ops
from engine import Graph
from engine.passes import verify
from engine.passes.fuse.elementwise import FUSE_ELEMENTWISE
from engine.system.threads import limit_threads
from tests.helpers.graphs.layered_networks import layered_graphs
from tests.helpers.graphs.pass_checks import check_exact, schema_names
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.graphs.unplanned_run import EVERY_MODE, assert_same, check_modes, random_feeds


@settings(max_examples=40)
@given(graphs(20))
def test_fuse_elementwise_keeps_all_bits_and_is_idempotent(graph: Graph) -> None:
    check_exact(graph, [FUSE_ELEMENTWISE])
    fused = FUSE_ELEMENTWISE(graph)
    assert len(fused.operators) < len(graph.operators) or fused is graph


@settings(max_examples=30)
@given(graphs(20) | layered_graphs())
def test_fused_chains_run_in_all_modes(graph: Graph) -> None:
    fused = FUSE_ELEMENTWISE(graph)
    feeds = random_feeds(graph)
    with limit_threads(1):  # BLAS gives other bits on several threads
        wanted = engine.compile(graph, optimise=0).run(feeds)
        check_modes(fused, feeds, wanted, EVERY_MODE)


def test_fuse_elementwise_text_of_a_fork_that_joins() -> None:
    """A value with two users inside is computed once; a scalar and a row are broadcast."""
    graph = Graph("fork")
    x, row = graph.input("x", (3, 4)), graph.input("row", (4,))
    y = x * 2.0 + row
    graph.output(ops.relu(y) - ops.exp(y), "y")
    assert FUSE_ELEMENTWISE(graph).text().splitlines()[3:] == [
        "  constant %constant_0: float32[]",
        "  %sub_0: float32[3,4] = fused_elementwise(%x, %constant_0, %row)"
        " program=(mul($0,$1),add($3,$2),relu($4),exp($4),sub($5,$6)) apart=False",
        "  output   y = %sub_0",
    ]


def test_fetched_values_and_other_shapes_end_an_elementwise_chain() -> None:
    graph = Graph("ends")
    x, row = graph.input("x", (3, 4)), graph.input("row", (4,))
    y = ops.exp(x)
    graph.output(y, "y")
    graph.output(ops.relu(y) + ops.exp(row), "z")
    fused = FUSE_ELEMENTWISE(graph)
    assert schema_names(fused) == ["exp", "exp", "fused_elementwise"]
    assert [op.outputs[0].name for op in fused.operators] == ["exp_0", "exp_1", "add_0"]


def test_a_sum_that_would_keep_two_tensors_for_one_is_not_moved() -> None:
    """a + b is computed where both die; moved behind the product, it would be two tensors that wait instead of one."""
    graph = Graph("far")
    a, b = (graph.input(n, (64, 64)) for n in "ab")
    early, late = ops.tanh(a) @ np.eye(64, dtype=np.float32), ops.tanh(b) @ np.eye(64, dtype=np.float32)
    total = early + late
    other = ops.softmax(total @ np.ones((64, 64), np.float32))
    graph.output(ops.relu(early * late) + ops.softmax(other), "y")
    fused = FUSE_ELEMENTWISE(graph)
    before, after = (engine.make_plan(g, optimise=0).arena_bytes for g in (graph, fused))
    assert after <= before


def test_fuse_elementwise_reads_a_parameter_before_its_update() -> None:
    graph = Graph("step")
    p, q = (graph.parameter(np.ones(4, np.float32), n) for n in "pq")
    held = ops.neg(p)
    after = graph.assign(p, p + q)
    graph.output(ops.exp(held) + after, "y")
    fused = FUSE_ELEMENTWISE(graph)
    verify(graph, fused)
    assert all("neg" not in str(op.attrs.get("program", "")) for op in fused.operators)
    exe = engine.compile(fused, optimise=0)
    for _ in range(2):
        assert_same(exe.run({}), engine.compile(graph, optimise=0).run({})) if _ == 0 else exe.run({})


def test_an_update_is_one_loop_that_writes_over_its_parameter() -> None:
    graph = Graph("sgd")
    p, g = graph.parameter(np.ones(1000, np.float32), "p"), graph.input("g", (1000,))
    graph.output(graph.assign(p, p - (g * 0.5 + p * 0.1)), "after")
    fused = FUSE_ELEMENTWISE(graph)
    assert schema_names(fused) == ["fused_elementwise"]
    feeds = random_feeds(graph)
    one, other = engine.compile(graph, optimise=0), engine.compile(fused, optimise=0)
    for _ in range(3):
        assert_same(other.run(feeds), one.run(feeds))


def test_values_inside_an_elementwise_chain_need_a_block_and_no_chunk() -> None:
    graph = Graph("large")
    x = graph.input("x", (64, 128, 128))
    graph.output(ops.sigmoid(x) * ops.tanh(x) + x, "y")
    fused = FUSE_ELEMENTWISE(graph)
    assert len(fused.operators) == 1
    tensor = 64 * 128 * 128 * 4
    parts, plan = engine.make_plan(graph, optimise=0), engine.make_plan(fused, optimise=0)
    assert parts.report().arena_without_workspace == 3 * tensor
    assert plan.report().arena_without_workspace == tensor
    assert plan.arena_bytes < tensor + (2 << 20)
    feeds = random_feeds(graph)
    assert_same(engine.compile(fused, optimise=0).run(feeds), engine.compile(graph, optimise=0).run(feeds))
