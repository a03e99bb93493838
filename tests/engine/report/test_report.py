"""The report adds up, on random graphs and on one whose numbers are known by hand."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator.policies import POLICIES
from allocator.problem import Plan, Problem
from allocator.solvers import solve
from allocator.solvers.portfolio import PORTFOLIO
from engine import Graph
from engine.lower.calls import Role
from engine.report.savings import Saving
from engine.text.units import format_bytes, parse_bytes
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.graphs.training_graphs import chain


@settings(max_examples=40)
@given(graphs(), st.sampled_from([16, 64]))
def test_the_arena_is_what_lives_at_the_peak_and_what_is_idle_then(graph: Graph, alignment: int) -> None:
    report = engine.make_plan(graph, alignment=alignment, optimise=0).report()
    assert report.arena_bytes == report.peak_bytes + report.alignment_loss + report.fragmentation
    assert sum(t.bytes for t in report.peak_tensors) == report.peak_bytes
    assert report.peak_bytes <= report.lower_bound <= report.arena_bytes
    assert report.arena_without_workspace <= report.arena_bytes or report.status != "optimal"
    assert report.dynamic_peak_bytes <= report.naive_bytes
    assert report.gap == report.arena_bytes / max(report.lower_bound, 1) - (report.arena_bytes > 0)
    assert report.status == ("feasible" if report.gap else "optimal")
    json.dumps(report.to_json())


def test_numbers_of_a_small_network_by_hand() -> None:
    graph = Graph("hand")
    x = graph.input("x", (16, 16))
    y = ops.neg(x)
    graph.output(ops.concat([y, ops.abs(y)], axis=0), "y")
    report = engine.make_plan(graph, nest=False, optimise=0).report()
    assert (report.naive_bytes, report.operators) == (1024 * 3 + 2048, 3)
    assert report.dynamic_peak_bytes == 1024 * 2 + 2048
    assert report.arena_bytes == report.lower_bound == 4096
    assert [(t.name, t.bytes, t.share) for t in report.peak_tensors] == [
        ("concat_0", 2048, 0.5),
        ("neg_0", 1024, 0.25),
        ("abs_0", 1024, 0.25),
    ]
    joined = engine.make_plan(graph, optimise=0).report()
    assert (joined.naive_bytes, joined.arena_bytes, joined.dynamic_peak_bytes) == (1024 * 3 + 2048, 3072, 3072)
    assert (joined.savings.nested, report.savings.nested) == (Saving(2, 2048), Saving(0, 0))
    assert "2 inputs of concatenations are written directly into their outputs" in str(joined)


def test_the_text_is_readable_and_names_the_peak() -> None:
    graph = Graph("hand")
    graph.output(ops.neg(graph.input("x", (256,))), "y")
    report = engine.make_plan(graph, optimise=0).report()
    text = str(report)
    assert "  tensor " in text and "  tensor " not in report.text(0)
    assert (
        "hand: 1 operator, " in text
        and "met: these calls in this order fit in no smaller arena" in text
        and "1024 B" in text
    )


def test_the_report_tells_a_gap_as_what_it_is() -> None:
    graph, ones = Graph("gap"), np.ones((16, 16), np.float32)
    graph.output(graph.input("x", (16, 16)) @ ones @ ones, "y")
    report = engine.make_plan(graph, strategy="naive", optimise=0).report()
    assert (report.arena_bytes, report.lower_bound, report.gap) == (3072, 2048, 0.5)
    assert (report.strategy, report.status) == ("naive", "feasible")
    assert "arena is 50.00% above; the bound may be unattainable" in str(report)
    assert json.loads(json.dumps(report.to_json()))["gap"] == 0.5


def test_a_report_searches_less_than_a_plan_does(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def recorded(problem: Problem, **limits: int) -> Plan:
        asked.append(limits["nodes"])
        return solve(problem, nodes=limits["nodes"])

    graph = Graph("convolution")
    graph.output(ops.conv2d(graph.input("x", (1, 3, 12, 12)), np.ones((4, 3, 3, 3), np.float32)))
    plan = engine.make_plan(graph, optimise=0)
    document = plan.report().to_json()
    monkeypatch.setattr("engine.report.report.solvers.solve", recorded)
    assert plan.report().to_json() == document and not asked, "the plan itself meets the bound of the rest"
    monkeypatch.setattr("engine.report.report.bounds.lower_bound", lambda _: 0)
    assert plan.report().to_json() == document
    assert asked and max(asked) <= PORTFOLIO.nodes // 1_000


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8 MiB", 8 << 20),
        ("512kb", 512000),
        (7, 7),
        ("1.5 GiB", 3 << 29),
        ("64", 64),
        ("9007199254740993", 2**53 + 1),
        ("0.3 kB", 300),
    ],
)
def test_byte_sizes_are_parsed(text: int | str, size: int) -> None:
    assert parse_bytes(text) == size


def test_byte_sizes_are_written_with_a_unit() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1024, 3 << 19)] == ["0 B", "1023 B", "1.00 KiB", "1.50 MiB"]


@settings(max_examples=20, deadline=None)
@given(graphs(), st.sampled_from(POLICIES))
def test_the_report_of_concurrent_calls_explains_the_arena(graph: Graph, policy: str) -> None:
    plan = engine.make_plan(graph, parallel=policy, optimise=0)
    report = plan.report()
    spans = sorted((t.offset, t.offset + t.bytes) for t in report.peak_tensors)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert report.peak_bytes + report.alignment_loss + report.fragmentation == report.arena_bytes
    in_sequence = engine.make_plan(graph, optimise=0).report()
    assert report.peak_bytes >= in_sequence.peak_bytes or policy == "levels"


def test_the_peak_of_branches_at_once_has_the_bytes_of_each() -> None:
    graph = Graph("branches")
    x = graph.input("x", (64,))
    for i in range(3):
        graph.output(ops.reduce_sum(ops.tanh(ops.concat([x, x], axis=0)), axes=(0,)), f"y{i}")
    report = engine.make_plan(graph, parallel="exact", optimise=0).report()
    assert report.peak_bytes + report.alignment_loss == report.lower_bound == report.arena_bytes
    assert sum(t.bytes for t in report.peak_tensors if t.bytes == 512) == 3 * 512
    assert "may be alive at once" in str(report)


def test_a_workspace_inside_a_tensor_takes_no_tensor_with_it() -> None:
    """Where kernels need none, what the workspace lies in is there all the same."""
    graph = Graph("parts")
    x = graph.input("x", (1, 16, 32, 32))
    first = ops.relu(x)
    h = ops.reduce_mean(first, axes=(1,), keepdims=True)
    second = ops.conv2d(h, np.ones((2, 1, 3, 3), np.float32), pads=1)  # its workspace fits where the third will be
    graph.output(ops.concat([first, second, ops.tanh(x)], axis=1), "y")
    plan = engine.make_plan(graph, optimise=0)
    lodged = [v for v in plan.lowered.values if v.role is Role.WORKSPACE and v.is_view]
    report = plan.report()
    assert lodged
    assert report.arena_bytes - report.arena_without_workspace <= report.workspace_bytes


def test_the_data_of_a_report_has_the_condition_of_its_proof_and_no_graphs() -> None:
    graph = Graph("joined")
    a, b = (ops.tanh(graph.input(name, (8, 4))) for name in ("p", "q"))
    graph.output(ops.concat((a, b), axis=1), "y")
    (ordering,) = engine.make_plan(graph, order="memory", optimise=0).report().to_json()["orderings"]
    assert ordering["before"] == "anything is nested"
    step = engine.make_plan(chain(12, 8, 32), optimise=0)
    again = (
        engine.make_plan(chain(12, 8, 32), budget=step.arena_bytes * 3 // 4, optimise=0)
        .report()
        .to_json()["recomputed"]
    )
    assert again and all(set(row) == {"operators", "flops", "share", "plain_bytes"} for row in again)
