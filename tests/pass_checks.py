"""What every pass must keep."""

from collections.abc import Sequence

from engine import Graph
from engine.passes import verify
from engine.passes.base import Pass
from ops.spec import Array
from tests.unplanned import assert_same, random_feeds, run_unplanned


def check_exact(graph: Graph, passes: Sequence[Pass]) -> None:
    """Each pass leaves every bit of the outputs, and has nothing to do a second time."""
    feeds = random_feeds(graph)
    wanted: dict[str, Array] = run_unplanned(graph, feeds)
    for each in passes:
        once = each(graph)
        verify(graph, once)
        assert_same(run_unplanned(once, feeds), wanted)
        assert each(once) is once, each.name
