"""Progress of long work: its numbers are true, and plans are equal with a watcher and without."""

from contextlib import AbstractContextManager, nullcontext

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from allocator.problem import Problem
from allocator.progress import NOT_KNOWN, Activity, aside, current, each, watched_by
from allocator.solvers import BEST, solve
from engine import Graph
from tests.helpers.allocator.strategies import problems
from tests.helpers.graphs.random_graphs import graphs


@define(eq=False)
class Notes:
    """A watcher that lists all work in the order in which it ended."""

    open: list[Activity] = field(factory=list)
    ended: list[Activity] = field(factory=list)
    asides: int = 0

    def begin(self, activity: Activity, /) -> None:
        self.open.append(activity)

    def end(self, activity: Activity, /) -> None:
        assert self.open.pop() is activity
        self.ended.append(activity)

    def current(self) -> Activity:
        return self.open[-1] if self.open else Activity("")

    def aside(self) -> AbstractContextManager[None]:
        self.asides += 1
        return nullcontext()


@settings(max_examples=30)
@given(problems(), st.sampled_from((BEST, "exact", "hill_climb", "ejection", "pushdown")))
def test_progress_shows_the_arena_and_changes_no_plan(problem: Problem, strategy: str) -> None:
    notes, alone = Notes(), solve(problem, strategy, nodes=300)
    with watched_by(notes):
        watched = solve(problem, strategy, nodes=300)
    assert watched.offset.tolist() == alone.offset.tolist()
    (reported,) = notes.ended
    assert not notes.open
    assert reported.what == "placing"
    assert reported.bound <= watched.lower_bound
    assert reported.best == NOT_KNOWN or reported.best >= watched.arena_bytes
    assert reported.item.startswith("by ")
    if strategy == BEST and len(problem):
        assert reported.best >= watched.arena_bytes > 0 or not problem.size.any()


@settings(max_examples=15)
@given(graphs())
def test_planning_progress_names_its_phase(graph: Graph) -> None:
    notes = Notes()
    with watched_by(notes):
        plan = engine.make_plan(graph, order="memory", optimise=0)
    assert notes.ended[-1].what == "planning"
    assert notes.ended[-1].item == graph.name
    assert {"placing", "judging"} <= {activity.what for activity in notes.ended}
    for reported in (a for a in notes.ended if a.what == "ordering" and a.best != NOT_KNOWN):
        assert reported.bound <= plan.orderings[0].bound <= reported.best <= plan.orderings[0].given_bytes


def test_a_sweep_reports_number_and_name_of_each_item() -> None:
    notes, seen = Notes(), []
    with watched_by(notes):
        for item in each("network", [3, 1, 2], lambda item: f"net{item}"):
            seen.append((item, current().done, current().total, current().item))
    assert seen == [(3, 1, 3, "net3"), (1, 2, 3, "net1"), (2, 3, 3, "net2")]
    assert len(notes.ended) == 1


def test_a_sweep_that_is_left_ends() -> None:
    notes = Notes()
    with watched_by(notes):
        for _ in each("network", range(9)):
            break
        with pytest.raises(ValueError, match="stop"):
            for _ in each("network", range(9)):
                raise ValueError("stop")
    assert len(notes.ended) == 2 and not notes.open


def test_progress_of_other_threads_is_not_reported() -> None:
    notes = Notes()
    with watched_by(notes), aside():
        pass
    with Activity("later"), aside():
        current().done = 7
        assert current().done == 0
    assert (notes.ended, notes.asides) == ([], 1)
