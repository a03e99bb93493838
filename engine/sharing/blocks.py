"""The layout of whole networks in one arena: a small problem of its own, solved like any other.

State of all networks is one block, which may share no byte with any other. The scratch of each network is a block that
may share bytes with those of networks that never run at the same time.
"""

from collections.abc import Iterable, Sequence
from math import gcd, lcm

from attrs import frozen

from allocator import solvers
from allocator.bounds import proved_bound
from allocator.check.bound import check_bound
from allocator.errors import BoundError
from allocator.problem import FREE, Bound, Conflicts, Problem, align_up
from engine.sharing.parts import SplitPlan, cell_of, scratch_bound, state_cells, state_sizes

Groups = tuple[tuple[int, ...], ...]
"""Networks by number, in groups that have something in common; each network is in one."""
Pairs = frozenset[tuple[int, int]]
"""Networks that may run at the same time, by number, the smaller one first."""


def groups_of(count: int, pairs: Iterable[tuple[int, int]]) -> Groups:
    """Returns the groups of networks that pairs join, each with its numbers in order, and those that none joins."""
    group = list(range(count))
    for pair in pairs:
        one, other = sorted(group[number] for number in pair)
        group = [one if number == other else number for number in group]
    return tuple(tuple(i for i in range(count) if group[i] == number) for number in sorted(set(group)))


@frozen
class Layout:
    """The offsets of the parts of each network, the bytes of the arena, and what no arena goes below."""

    state: tuple[int, ...]
    scratch: tuple[int, ...]
    arena_bytes: int
    bound: Bound


def arrange(parts: Sequence[SplitPlan], concurrent: Pairs, groups: Groups, same_state: Groups) -> Layout:
    """Returns the layout with the smallest arena that is found, and its bound.

    The scratch of all networks of one of `groups` begins at the same byte; so does the state of all networks of one of
    `same_state`, which is one and the same. Every network is in one group of both.
    """
    offsets, top, alignment = [0] * len(parts), 0, 1
    for group in sorted(same_state, key=lambda group: parts[group[0]].tail):
        state = parts[group[0]].state_bytes
        if state:
            step = lcm(*(parts[number].alignment for number in group))
            first = align_up(top, step)
            for number in group:
                offsets[number] = first
            top, alignment = first + state, lcm(alignment, step)
    group_of = {number: i for i, group in enumerate(groups) for number in group}
    scratch = [max(parts[number].scratch_bytes for number in group) for group in groups]
    aligned = [lcm(*(parts[number].alignment for number in group)) for group in groups]
    pairs = frozenset((min(pair), max(pair)) for pair in (tuple(map(group_of.__getitem__, p)) for p in concurrent))
    plan = solvers.solve(_blocks(top, alignment, scratch, aligned, pairs))
    base, *rest = plan.offset.tolist()
    bound = _bound(parts, concurrent, [group[0] for group in same_state])
    if bound.nbytes > plan.arena_bytes:
        raise BoundError(f"the arena has {plan.arena_bytes} bytes, fewer than its lower bound of {bound.nbytes}")
    state_at = (base + offset if part.state_bytes else 0 for part, offset in zip(parts, offsets, strict=True))
    return Layout(
        tuple(state_at), tuple(rest[group_of[number]] for number in range(len(parts))), plan.arena_bytes, bound
    )


def _blocks(state: int, alignment: int, sizes: Sequence[int], alignments: Sequence[int], concurrent: Pairs) -> Problem:
    """Returns the problem: block 0 is all state; block i + 1 is the scratch of network i.

    Networks that never run at the same time have a tick each; where some do, pairs say which blocks may share no byte.
    """
    count = len(sizes)
    pairs = [(0, i + 1) for i in range(count)] + [(i + 1, j + 1) for i, j in sorted(concurrent)]
    return Problem(
        begin=[0, *range(count)],
        end=[count, *range(1, count + 1)],
        size=[state, *sizes],
        alignment=[alignment, *alignments],
        pinned=[FREE] * (count + 1),
        conflicts=Conflicts(*zip(*pairs, strict=True)) if concurrent else None,
    )


def _bound(parts: Sequence[SplitPlan], concurrent: Pairs, owners: Sequence[int]) -> Bound:
    """Proves a lower bound: the state, and the scratch of networks of which each may run with each other.

    `owners` are the networks whose states are different ones.

    Chunks of networks that run at the same time may lie between each other: so the bytes count in cells, to whose size
    all chunks are aligned.
    """
    cell = gcd(*map(cell_of, parts))
    owning = [parts[number] for number in owners]
    state = sum(state_cells(part, cell) for part in owning)
    if state:
        state -= max(-size % cell for part in owning for size in state_sizes(part))
    least = [scratch_bound(part, cell) for part in parts]
    problem = _blocks(state, cell, least, [cell] * len(parts), concurrent)
    bound = proved_bound(problem)
    fault = check_bound(problem, bound)
    if fault is not None:
        raise BoundError(f"the lower bound of {bound.nbytes} bytes is wrong ({fault.kind}): {fault.message}")
    return Bound(bound.nbytes, "state, and the scratch of networks that may run at the same time")
