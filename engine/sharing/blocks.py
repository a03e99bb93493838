"""The layout of whole networks in one arena: a small problem of its own, solved like any other.

State of all networks is one block, which may share no byte with any other. The scratch of each network is a block that
may share bytes with those of networks that never run at the same time.
"""

from collections.abc import Sequence
from math import gcd, lcm

from attrs import frozen

from allocator import solvers
from allocator.bounds import proved_bound
from allocator.check.bound import check_bound
from allocator.errors import BoundError
from allocator.problem import FREE, Bound, Conflicts, Problem, align_up
from engine.sharing.parts import SplitPlan, cell_of, scratch_bound, state_cells, state_sizes

Groups = tuple[tuple[int, ...], ...]
"""Networks by number, in groups whose scratch begins at the same byte."""
Pairs = frozenset[tuple[int, int]]
"""Networks that may run at the same time, by number, the smaller one first."""


@frozen
class Layout:
    """The offsets of the parts of each network, the bytes of the arena, and what no arena goes below."""

    state: tuple[int, ...]
    scratch: tuple[int, ...]
    arena_bytes: int
    bound: Bound


def arrange(parts: Sequence[SplitPlan], concurrent: Pairs, groups: Groups) -> Layout:
    """Returns the layout with the smallest arena that is found, and its bound.

    The scratch of all networks of a group begins at the same byte; every network is in one group.
    """
    offsets, top, alignment = [0] * len(parts), 0, 1
    for number in sorted(range(len(parts)), key=lambda i: parts[i].tail):
        part = parts[number]
        if part.state_bytes:
            offsets[number] = align_up(top, part.alignment)
            top, alignment = offsets[number] + part.state_bytes, lcm(alignment, part.alignment)
    group_of = {number: i for i, group in enumerate(groups) for number in group}
    scratch = [max(parts[number].scratch_bytes for number in group) for group in groups]
    aligned = [lcm(*(parts[number].alignment for number in group)) for group in groups]
    pairs = frozenset((min(pair), max(pair)) for pair in (tuple(map(group_of.__getitem__, p)) for p in concurrent))
    plan = solvers.solve(_blocks(top, alignment, scratch, aligned, pairs))
    first, *rest = plan.offset.tolist()
    bound = _bound(parts, concurrent)
    if bound.nbytes > plan.arena_bytes:
        raise BoundError(f"the arena has {plan.arena_bytes} bytes, fewer than its lower bound of {bound.nbytes}")
    state = (first + offset if part.state_bytes else 0 for part, offset in zip(parts, offsets, strict=True))
    return Layout(tuple(state), tuple(rest[group_of[number]] for number in range(len(parts))), plan.arena_bytes, bound)


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


def _bound(parts: Sequence[SplitPlan], concurrent: Pairs) -> Bound:
    """Proves a lower bound: the state, and the scratch of networks of which each may run with each other.

    Chunks of networks that run at the same time may lie between each other: so the bytes count in cells, to whose size
    all chunks are aligned.
    """
    cell = gcd(*map(cell_of, parts))
    state = sum(state_cells(part, cell) for part in parts)
    if state:
        state -= max(-size % cell for part in parts for size in state_sizes(part))
    least = [scratch_bound(part, cell) for part in parts]
    problem = _blocks(state, cell, least, [cell] * len(parts), concurrent)
    bound = proved_bound(problem)
    fault = check_bound(problem, bound)
    if fault is not None:
        raise BoundError(f"the lower bound of {bound.nbytes} bytes is wrong ({fault.kind}): {fault.message}")
    return Bound(bound.nbytes, "state, and the scratch of networks that may run at the same time")
