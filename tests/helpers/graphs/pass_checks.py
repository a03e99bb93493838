"""Checks what every pass must keep."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from engine import Graph
from engine.passes import verify
from engine.passes.base import Pass
from ops.tensor.spec import Array
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned


def check_exact(graph: Graph, passes: Sequence[Pass]) -> None:
    """Checks that each pass leaves every bit of the outputs, and has nothing to do a second time."""
    feeds = random_feeds(graph)
    wanted: dict[str, Array] = run_unplanned(graph, feeds)
    for each in passes:
        once = each(graph)
        verify(graph, once)
        assert_same(run_unplanned(once, feeds), wanted)
        assert each(once) is once, each.name


def check_near(actual: Mapping[str, Array], wanted: Mapping[str, Array], tolerance: float = 1e-3) -> None:
    """Checks that all are finite and near, relative to each number or to the largest of an output."""
    assert list(actual) == list(wanted)
    for name, array in wanted.items():
        assert np.isfinite(array).all(), name
        largest = float(np.abs(array).max(initial=1e-9))
        np.testing.assert_allclose(actual[name], array, rtol=tolerance, atol=tolerance * largest, err_msg=name)


def check_pass(graph: Graph, each: Pass) -> Graph:
    """Returns the graph behind a pass; checks that outputs stay near, and that there is nothing to do a second time."""
    after, feeds = each(graph), random_feeds(graph)
    verify(graph, after)
    check_near(run_unplanned(after, feeds), run_unplanned(graph, feeds))
    assert each(after) is after
    return after


def difference(actual: Array, wanted: Array) -> float:
    """Returns the largest difference, relative to the largest element."""
    assert actual.shape == wanted.shape and actual.dtype == wanted.dtype
    return float(np.abs(actual - wanted).max() / np.abs(wanted).max())


def schema_names(graph: Graph) -> list[str]:
    """Returns the names of all operators' schemas, in order."""
    return [op.schema.name for op in graph.operators]


def count(graph: Graph) -> Counter[str]:
    """Returns how many operators each schema has."""
    return Counter(schema_names(graph))
