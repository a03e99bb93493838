"""Runs that evict and compute again: the bits of a run that does not, within the bytes that they may use."""

from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.executor.evicting import EvictingExecutor
from engine.planning.options import EVICTIONS
from engine.text.errors import BudgetError, OptionError
from tests.helpers.graphs.random_graphs import graphs, seeded
from tests.helpers.graphs.training_graphs import chain, random_training
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds


def evicting(graph: Graph, budget: int, name: str) -> tuple[engine.Executable, EvictingExecutor]:
    exe = engine.compile(graph, mode="dynamic", budget=budget, evict=name, threads=1, optimise=0)
    assert isinstance(exe.executor, EvictingExecutor)
    assert exe.executor.eviction.peak_reserved <= budget
    return exe, exe.executor


def tight(graph: Graph, name: str, share: float) -> tuple[engine.Executable, EvictingExecutor]:
    """Returns the run within the smallest of some budgets, from a share of what it needs otherwise, that suffices."""
    most = evicting(graph, 10**9, name)[1].eviction.peak_reserved
    for part in np.linspace(share, 1.0, 4):
        try:
            return evicting(graph, int(most * part), name)
        except BudgetError:
            event("budget too small")
    return evicting(graph, most, name)


@settings(max_examples=20)
@given(graphs(), st.sampled_from(EVICTIONS), st.floats(0.5, 0.9))
def test_a_run_that_evicts_has_the_bits_of_one_that_does_not(graph: Graph, name: str, share: float) -> None:
    exe, executor = tight(graph, name, share)
    event(f"evictions {min(executor.eviction.evictions, 3)}")
    feeds = random_feeds(graph)
    assert_same(exe.run(feeds), engine.compile(graph, optimise=0).run(feeds))


@pytest.mark.slow
@settings(max_examples=4)
@given(st.integers(0, 10**6), st.sampled_from(EVICTIONS), st.floats(0.5, 0.9))
def test_training_that_evicts_has_the_bits_of_training_that_does_not(seed: int, name: str, share: float) -> None:
    graph = random_training(seeded(seed))
    exe, executor = tight(graph, name, share)
    event(f"evictions {min(executor.eviction.evictions, 3)}")
    plain = engine.compile(graph, optimise=0)
    for step in range(3):  # each reads the parameters that the one before wrote
        feeds = random_feeds(graph, step)
        assert_same(exe.run(feeds), plain.run(feeds))
        assert_same(exe.parameters, plain.parameters)


def test_a_chain_is_trained_within_half_of_its_bytes() -> None:
    graph = chain(16)
    plain = engine.compile(graph, mode="dynamic", optimise=0)
    feeds = random_feeds(graph)
    wanted = plain.run(feeds)
    exe, executor = evicting(graph, plain.report().dynamic_peak_bytes // 2, "coop")
    (evicted,) = exe.report().evicted
    assert evicted.runs_again == executor.eviction.reruns > 5 and evicted.slowdown == executor.eviction.slowdown
    assert evicted.smallest_budget <= evicted.budget_bytes and evicted.smallest_slowdown >= evicted.slowdown
    within = evicting(graph, evicted.smallest_budget, "coop")[1]
    assert within.eviction.slowdown == evicted.smallest_slowdown
    assert plain.report().evicted == ()
    assert_same(exe.run(feeds), wanted)
    out = {name: np.empty_like(array) for name, array in wanted.items()}
    exe.load({name: array for name, array in plain.parameters.items()})
    assert exe.run(feeds, out=out).keys() == out.keys()
    assert_same(out, plain.run(feeds))


def test_views_constants_and_arrays_of_the_caller_are_no_part_of_the_block() -> None:
    graph = Graph()
    x = graph.input("x", (32, 32))
    kept = [ops.transpose(ops.tanh(x * float(i)), (1, 0)) for i in range(1, 7)]
    total = kept[0]
    for one in kept[1:]:
        total = ops.sigmoid(total @ one)
    graph.output(total, "y")
    graph.output(ops.reduce_sum(kept[0], axes=None, keepdims=False), "s")
    feeds = random_feeds(graph)
    options: dict[str, Any] = {"mode": "dynamic", "optimise": 0, "caller_buffers": ("x", "y"), "order": "given"}
    exe = engine.compile(graph, budget=6 * 4096 - 1, evict="dtr", **options)
    assert isinstance(exe.executor, EvictingExecutor)
    assert exe.executor.eviction.evictions > 0
    assert_same(exe.run(feeds), engine.compile(graph, **options).run(feeds))


def test_what_cannot_be_is_told_in_one_line() -> None:
    graph = chain(4)
    with pytest.raises(
        BudgetError, match=r"eviction by dtr does not keep within 100 bytes: 'feed' needs .* cannot go, and the largest"
    ) as refusal:
        engine.compile(graph, mode="dynamic", budget=100, evict="dtr")
    parameters = sum(parameter.initial.nbytes for parameter in graph.parameters.values())
    assert f"{parameters} of them for parameters, which are never evicted" in str(refusal.value)
    assert refusal.value.required >= refusal.value.lower_bound
    assert parameters < refusal.value.lower_bound and "\n" not in str(refusal.value)
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"evict": "best"}, "evict 'best' is unknown; one of: dtr, "),
        ({"evict": "dtr", "budget": 10**6, "mode": "static"}, "is for mode='dynamic'"),
        ({"evict": "dtr"}, "keeps within a budget; give one"),
    )
    for options, message in refused:
        with pytest.raises(OptionError, match=message):
            engine.compile(graph, **({"mode": "dynamic"} | options))
