"""Three ways to run, one answer: to the bit, on random graphs, with the judges on."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Graph
from engine.executor.dynamic import DynamicExecutor
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.graphs.unplanned_run import SERIAL, assert_same, check_modes, random_feeds, run_unplanned

SWITCHES = st.fixed_dictionaries(
    {}, optional={name: st.booleans() for name in ("views", "overwrite", "reuse", "prepack")}
) | st.fixed_dictionaries({"alignment": st.sampled_from([1, 16, 256]), "padding": st.sampled_from([0, 8])})


@settings(max_examples=60)
@given(graphs(), SWITCHES)
def test_a_planned_run_equals_an_unplanned_one(graph: Graph, options: dict[str, Any]) -> None:
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    assert_same(engine.compile(graph, optimise=0, **options).run(feeds), wanted)


@settings(max_examples=40)
@given(graphs())
def test_dynamic_and_poison_mode_equal_an_unplanned_run(graph: Graph) -> None:
    feeds = random_feeds(graph)
    check_modes(graph, feeds, run_unplanned(graph, feeds), SERIAL[1:])


@settings(max_examples=30)
@given(graphs(), st.integers(0, 7))
def test_executors_read_and_write_bound_arrays_in_place(graph: Graph, which: int) -> None:
    bound = tuple(n for i, n in enumerate([*graph.inputs, *graph.outputs]) if which >> i & 1)
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    exe = engine.compile(graph, caller_buffers=bound, optimise=0)
    out = {n: np.full(v.shape, 7, v.dtype) for n, v in graph.outputs.items()}
    outputs = exe.run(feeds, out=out)
    assert all(outputs[n] is out[n] for n in out)
    assert_same(outputs, wanted)
    assert_same(exe.run(feeds), wanted)


@settings(max_examples=30)
@given(graphs())
def test_a_second_static_run_does_not_depend_on_the_first(graph: Graph) -> None:
    exe = engine.compile(graph, optimise=0)
    exe.run(random_feeds(graph, seed=1))
    feeds = random_feeds(graph, seed=2)
    assert_same(exe.run(feeds), run_unplanned(graph, feeds))


@settings(max_examples=40)
@given(graphs())
def test_the_dynamic_run_peaks_where_the_report_says(graph: Graph) -> None:
    exe = engine.compile(graph, mode="dynamic", optimise=0)
    exe.run(random_feeds(graph))
    assert isinstance(exe.executor, DynamicExecutor)
    assert exe.executor.peak_bytes == exe.report().dynamic_peak_bytes


@pytest.mark.slow
def test_many_graphs_agree_in_all_modes() -> None:
    for seed in range(1500):
        graph = build(seeded(seed), 30)
        feeds = random_feeds(graph)
        assert_same(engine.compile(graph, optimise=0).run(feeds), run_unplanned(graph, feeds))
