"""The judge of an arena that several networks share. It believes calls and addresses, and no division into parts.

- No byte of a parameter, or of the value that replaces it, is a byte of another network. Networks that have the same
  parameters have each at the same bytes.
- Networks that may run at the same time have no byte in common.
- All bytes lie in the arena.
- An output that is the input of another network in place lies where that input lies.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

import numpy as np
from attrs import frozen

from engine.check.pieces import NO_RUNS, Runs, meet, merged, runs_of
from engine.check.plans import PlanLike
from engine.lower.calls import Storage
from engine.text.errors import SharingError


@frozen(eq=False)
class Member:
    """A network in a shared arena: its plan, whose addresses count from byte `first` of the arena."""

    name: str
    plan: PlanLike
    first: int


@frozen
class Link:
    """An output of network `giver` that is the input `input` of network `taker`, both by number."""

    giver: int
    output: str
    taker: int
    input: str


def check_shared(
    members: Sequence[Member],
    concurrent: Collection[tuple[int, int]],
    arena_bytes: int,
    links: Iterable[Link] = (),
    same_state: Iterable[Sequence[int]] = (),
) -> None:
    """Raises SharingError for the first two networks that share bytes which they may not share, or do not meet.

    `concurrent` has the networks that may run at the same time, as pairs of their numbers; `links` has outputs that are
    inputs of others, and `same_state` groups of networks that have the same parameters.
    """
    every = [_runs(member, range(len(member.plan.places))) for member in members]
    state = [_runs(member, _kept(member)) for member in members]
    for member, runs in zip(members, every, strict=True):
        if runs.size and (runs[0, 0] < 0 or runs[1, -1] > arena_bytes):
            raise SharingError(f"{member.name!r} has bytes outside of the arena of {arena_bytes} bytes")
    pairs = {frozenset(pair) for pair in concurrent}
    same = {frozenset(pair) for group in same_state for pair in combinations(group, 2)}
    for i, j in combinations(range(len(members)), 2):
        one, other = members[i].name, members[j].name
        if frozenset((i, j)) in same:
            if _parameter_bytes(members[i]) != _parameter_bytes(members[j]):
                raise SharingError(f"{one!r} and {other!r} do not have the same parameters at the same bytes")
            continue
        for owner, kept, writer, touched in ((one, state[i], other, every[j]), (other, state[j], one, every[i])):
            if meet(kept, touched):
                raise SharingError(f"{writer!r} has bytes of a parameter of {owner!r}, which must survive its runs")
        if frozenset((i, j)) in pairs and meet(every[i], every[j]):
            raise SharingError(f"{one!r} and {other!r} may run at the same time, and have bytes in common")
    for link in links:
        _check_link(members[link.giver], members[link.taker], link)


def _check_link(giver: Member, taker: Member, link: Link) -> None:
    """Raises SharingError where an output does not lie where the input lies."""
    ends = (giver, giver.plan.lowered.outputs[link.output]), (taker, taker.plan.lowered.inputs[link.input])
    layouts = [member.plan.places[value].layout for member, value in ends]
    first = [layout.extent[0] + member.first for (member, _), layout in zip(ends, layouts, strict=True)]
    if first[0] != first[1] or not all(layout.is_dense for layout in layouts):
        raise SharingError(
            f"output {link.output!r} of {giver.name!r} begins at byte {first[0]}, and input {link.input!r} of "
            f"{taker.name!r} at byte {first[1]}, or one of them has gaps"
        )


def _parameter_bytes(member: Member) -> dict[str, tuple[tuple[int, int], ...]]:
    """Returns the first and the last byte of each parameter, and of the value that replaces it, by name."""
    places, values = member.plan.places, member.plan.lowered.values
    extents = {v: places[v].layout.extent for pair in member.plan.lowered.parameters.items() for v in pair}
    return {
        values[parameter].name: tuple(
            (low + member.first, high + member.first) for low, high in (extents[parameter], extents[update])
        )
        for parameter, update in member.plan.lowered.parameters.items()
    }


def _kept(member: Member) -> Iterable[int]:
    parameters = member.plan.lowered.parameters
    return {*parameters, *parameters.values()}


def _runs(member: Member, values: Iterable[int]) -> Runs:
    """Returns the bytes of values in the arena."""
    places = (member.plan.places[value] for value in values)
    parts = [runs_of(place.layout) + member.first for place in places if place.storage is Storage.ARENA]
    low, high = np.concatenate([NO_RUNS, *parts], axis=1)
    return merged(low, high)
