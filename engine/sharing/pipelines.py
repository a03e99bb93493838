"""Networks in a row: the output of one lies where the input of the next one is, so that nothing is copied.

The fourth case of the unified static memory planner of TVM (apache/tvm-rfcs, RFC 0009: "pipelined" models).
"""

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from allocator import solvers
from allocator.errors import ProblemError
from engine.check.shared import Link
from engine.lower.calls import Storage
from engine.sharing.blocks import Groups
from engine.sharing.parts import SplitPlan, scratch_problem
from engine.text.errors import OptionError


@frozen
class _End:
    """One end of a link: chunk `root` of a network, which fixes the address of the value `behind` bytes into it."""

    root: int
    behind: int


def joined_parts(parts: Sequence[SplitPlan], links: Sequence[Link], groups: Groups) -> list[SplitPlan]:
    """Returns the parts with scratch in which both ends of every link have the same address.

    `groups` are those of the links. In each, one network keeps its addresses; the others are placed again, one after
    the other, with what is linked pinned. Each network is tried as the one that keeps them, and the smallest scratch of
    a group is taken. Raises OptionError where an end of a link is no tensor in scratch, or no addresses are found.
    """
    for link in links:
        _check_link(parts, link)
    ends = {(link, i): _end(parts[n], _values(parts, link)[i]) for link in links for i, n in enumerate(_pair(link))}
    result = list(parts)
    for group in groups:
        if len(group) > 1:
            candidates = [placed for first in group if (placed := _from(first, group, parts, links, ends))]
            if not candidates:
                names = ", ".join(repr(parts[i].plan.lowered.graph.name) for i in group)
                raise OptionError(f"pipeline: {names} have no addresses at which all linked tensors meet")
            best = min(candidates, key=lambda placed: max(part.scratch_bytes for part in placed.values()))
            for number, part in best.items():
                result[number] = part
    return result


def _from(
    first: int,
    group: Sequence[int],
    parts: Sequence[SplitPlan],
    links: Sequence[Link],
    ends: dict[tuple[Link, int], _End],
) -> dict[int, SplitPlan] | None:
    """Returns the parts of a group whose network `first` keeps its addresses; None where one cannot be placed."""
    placed = {first: parts[first]}
    while len(placed) < len(group):
        number = next(i for link in links for i in _pair(link) if i not in placed and placed.keys() & {*_pair(link)})
        pins = dict[int, int]()
        for link in links:
            for near, far in ((0, 1), (1, 0)):
                other = _pair(link)[far]
                if _pair(link)[near] == number and other in placed:
                    mine, theirs = ends[link, near], ends[link, far]
                    at = int(placed[other].offset[theirs.root]) + theirs.behind - mine.behind
                    if pins.setdefault(mine.root, at) != at:
                        return None
        part = _pinned(parts[number], pins)
        if part is None:
            return None
        placed[number] = part
    return placed


def _pinned(part: SplitPlan, pins: dict[int, int]) -> SplitPlan | None:
    """Returns a part with chunks of its scratch at these offsets; None where they cannot lie there."""
    rows = np.flatnonzero(~part.plan.state_chunks)
    problem = scratch_problem(part)
    pinned = problem.pinned.copy()
    for chunk, at in pins.items():
        row = int(np.searchsorted(rows, chunk))
        if at < 0 or at % int(problem.alignment[row]):
            return None
        pinned[row] = at
    try:
        plan = solvers.solve(evolve(problem, pinned=pinned))
    except ProblemError:  # two pins meet
        return None
    offset = part.offset.copy()
    offset[rows] = plan.offset
    return evolve(part, offset=offset, scratch_bytes=plan.arena_bytes, is_moved=True)


def _pair(link: Link) -> tuple[int, int]:
    return link.giver, link.taker


def _values(parts: Sequence[SplitPlan], link: Link) -> tuple[int, int]:
    """Returns the value of the output and that of the input."""
    giver, taker = (parts[number].plan.lowered for number in _pair(link))
    return giver.outputs[link.output], taker.inputs[link.input]


def _check_link(parts: Sequence[SplitPlan], link: Link) -> None:
    """Raises OptionError where the ends of a link are not two equal tensors in scratch."""
    specs = []
    kinds = (("output", link.output), ("input", link.input))
    for number, value, (kind, name) in zip(_pair(link), _values(parts, link), kinds, strict=True):
        plan = parts[number].plan
        of, place = f"{kind} {name!r} of {plan.lowered.graph.name!r}", plan.places[value]
        if plan.schedule.policy:
            raise OptionError(f"pipeline: {of} is of a network whose operators run at once; leave out parallel")
        if place.storage is not Storage.ARENA or plan.state_chunks[plan.chunk_of(value)]:
            raise OptionError(f"pipeline: {of} is no scratch, but a constant, a parameter or an array of yours")
        if not plan.lowered.values[value].spec.nbytes:
            raise OptionError(f"pipeline: {of} has no bytes")
        if not place.layout.is_dense:
            raise OptionError(f"pipeline: {of} has gaps between its elements, or another order of them")
        specs.append((of, plan.lowered.values[value].spec))
    (one, written), (other, read) = specs
    if written != read:
        raise OptionError(f"pipeline: {one} is {written}, and {other} is {read}")


def _end(part: SplitPlan, value: int) -> _End:
    problem, chunk = part.plan.problem, part.plan.chunk_of(value)
    inside = part.plan.places[value].layout.extent[0] - int(part.plan.plan.offset[chunk])
    return _End(int(problem.chains.root[chunk]), int(problem.chains.offset[chunk]) + inside)
