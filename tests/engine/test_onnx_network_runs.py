"""Runs of whole networks on every back-end: no array is allocated, and no page is touched for the first time."""

import gc
from collections.abc import Callable
from functools import cache

import pytest

import engine
from engine.api import Executable
from engine.graph.graph import Graph
from engine.lower.backends import backends_of
from engine.system.process_memory import page_faults
from ops.schema.backends import BACKENDS
from ops.tensor.spec import Array
from tests.helpers.allocations import check_allocates_nothing
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx.light_models import light_graph

RUNS = 10
MOST_FAULTS = 16
"""Of all runs together, for the interpreter's own small objects; an array of a network is some hundred pages."""


@cache
def network() -> tuple[Graph, dict[str, Array]]:
    graph = light_graph("shufflenet")
    return engine.optimise(graph, 3), random_feeds(graph)


def ready(backend: str) -> tuple[Executable, Callable[[], object]]:
    """Returns a network that has run, and its next run."""
    if backend not in backends_of("auto"):
        pytest.skip(f"{backend} is not installed")
    graph, feeds = network()
    executable = engine.compile(graph, backend=backend, threads=1)
    out = executable.run(feeds)

    def run() -> object:
        return executable.run(feeds, out=out)

    for _ in range(3):
        run()
    return executable, run


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_array_is_allocated_while_a_network_runs(backend: str) -> None:
    _, run = ready(backend)
    check_allocates_nothing(run)


@pytest.mark.parametrize("backend", BACKENDS)
def test_later_runs_touch_no_new_page(backend: str) -> None:
    _, run = ready(backend)
    gc.collect()
    gc.disable()
    before = page_faults()
    for _ in range(RUNS):
        run()
    after = page_faults()
    gc.enable()
    if before is None or after is None:
        pytest.skip("the system counts no page faults")
    assert after.minor - before.minor <= MOST_FAULTS and after.major == before.major
