"""The agenda of a parallel run: nodes by urgency, and what each of them waits for."""

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from allocator.problem import Column
from engine.text.errors import JudgeError


@frozen(eq=False)
class Agenda:
    """The order of a parallel run.

    Rank 0 is the most urgent node; `nodes` has the nodes by rank, all else counts in ranks.

    `followers` has the ranks that wait for each rank, `waits` the number of ranks that each waits for, and `first`
    those that wait for none, the most urgent first.
    """

    nodes: tuple[int, ...]
    followers: tuple[tuple[int, ...], ...]
    waits: tuple[int, ...]
    first: tuple[int, ...]


def make_agenda(costs: Sequence[int], before: Column, after: Column) -> Agenda:
    """Makes an agenda by critical paths:

    the node with the costliest path to the end is most urgent, then the first one.

    Node after[k] waits for node before[k]. Raises JudgeError for an edge that does not go forward: without one, there
    is no cycle. List scheduling by longest path: Graham, "Bounds on Multiprocessing Timing Anomalies" (1969); Kohler,
    "A Preliminary Evaluation of the Critical Path Method for Scheduling Tasks on Multiprocessor Systems" (1975).
    """
    wrong = np.flatnonzero((before < 0) | (before >= after) | (after >= len(costs)))
    if len(wrong):
        k = wrong[0]
        raise JudgeError(f"schedule of {len(costs)} nodes: the edge from {before[k]} to {after[k]} does not go forward")
    followers: list[list[int]] = [[] for _ in costs]
    for b, a in zip(before.tolist(), after.tolist(), strict=True):
        followers[b].append(a)
    nodes = sorted(range(len(costs)), key=_path_costs(costs, followers).__getitem__, reverse=True)
    rank = np.empty(len(costs), np.int64)
    rank[nodes] = np.arange(len(costs))
    waits = np.bincount(rank[after], minlength=len(costs))
    ranked = tuple(tuple(sorted(int(rank[a]) for a in followers[node])) for node in nodes)
    return Agenda(tuple(nodes), ranked, tuple(waits.tolist()), tuple(np.flatnonzero(waits == 0).tolist()))


def _path_costs(costs: Sequence[int], followers: Sequence[Sequence[int]]) -> list[int]:
    """Returns the cost of the costliest path from each node to the end, with the node."""
    costs_to_end = list(costs)
    for node in reversed(range(len(costs))):
        costs_to_end[node] += max((costs_to_end[a] for a in followers[node]), default=0)
    return costs_to_end
