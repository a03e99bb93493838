"""Networks in a row: the output of one lies where the input of the next one is, so that nothing is copied.

The fourth case of the unified static memory planner of TVM (apache/tvm-rfcs, RFC 0009: "pipelined" models).
"""

from collections.abc import Iterator, Sequence
from itertools import permutations

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
    """One end of a link: in a network, the value that lies `behind` bytes into chunk `root`."""

    network: int
    root: int
    behind: int


Joint = tuple[_End, _End]
"""Two ends that must have the same address."""


def joined_parts(parts: Sequence[SplitPlan], links: Sequence[Link], groups: Groups) -> list[SplitPlan]:
    """Returns the parts with scratch in which both ends of every link have the same address.

    `groups` are those of the links. In each, one network keeps its addresses; the others are placed again, one after
    the other, with what is linked pinned. Each network is tried as the one that keeps them, and the smallest scratch of
    a group is taken. Raises OptionError where an end of a link is no tensor in scratch, or no addresses are found.
    """
    for link in links:
        _check_link(parts, link)
    joints = [joint for link in links for joint in permutations(_ends(parts, link), 2)]
    result = list(parts)
    for group in groups:
        if len(group) > 1:
            candidates = [placed for first in group if (placed := _from(first, group, parts, joints))]
            if not candidates:
                names = ", ".join(repr(parts[i].plan.lowered.graph.name) for i in group)
                raise OptionError(f"pipeline: {names} have no addresses at which all linked tensors meet")
            best = min(candidates, key=lambda placed: max(part.scratch_bytes for part in placed.values()))
            for number, part in best.items():
                result[number] = part
    return result


def _from(
    first: int, group: Sequence[int], parts: Sequence[SplitPlan], joints: Sequence[Joint]
) -> dict[int, SplitPlan] | None:
    """Returns the parts of a group whose network `first` keeps its addresses; None where one cannot be placed."""
    placed = {first: parts[first]}
    while len(placed) < len(group):
        ready = [(end, other) for end, other in joints if end.network not in placed and other.network in placed]
        number = ready[0][0].network
        pins = dict[int, int]()
        for end, other in ready:
            at = int(placed[other.network].offset[other.root]) + other.behind - end.behind
            if end.network == number and pins.setdefault(end.root, at) != at:
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
    return evolve(part, offset=offset, scratch_bytes=plan.arena_bytes)


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


def _ends(parts: Sequence[SplitPlan], link: Link) -> Iterator[_End]:
    """Yields the end at the output and that at the input."""
    for number, value in zip(_pair(link), _values(parts, link), strict=True):
        plan = parts[number].plan
        chunk, chains = plan.chunk_of(value), plan.problem.chains
        inside = plan.places[value].layout.extent[0] - int(plan.plan.offset[chunk])
        yield _End(number, int(chains.root[chunk]), int(chains.offset[chunk]) + inside)
