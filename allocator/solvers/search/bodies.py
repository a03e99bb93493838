"""Chains of overwrites as rigid bodies, their conflicts, and the independent parts of a problem."""

from collections.abc import Iterator
from math import gcd

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.problem import FREE, Column, Problem, column, distinct
from allocator.ragged import RaggedArray
from allocator.solvers.placing.conflicts import conflict_pairs
from allocator.solvers.placing.units import units_of

Mask = npt.NDArray[np.bool_]


@frozen(eq=False)
class Bodies:
    """Body i is the chain of chunk root[i]: size[i] bytes, in which all its chunks lie. Chains of no bytes have none.

    `begin` and `end` are the life of the whole chain. `is_solid`: all its chunks that have bytes have all of them, so
    that the body is a rectangle in bytes and time. `near` lists those that a body may not overlap, or may in part only.
    `cliques` lists bodies of which each two may not overlap; each pair of neighbours stands in one of them.
    """

    root: Column = field(converter=column)
    begin: Column = field(converter=column)
    end: Column = field(converter=column)
    size: Column = field(converter=column)
    alignment: Column = field(converter=column)
    pinned: Column = field(converter=column)
    is_solid: Mask
    near: RaggedArray
    cliques: RaggedArray

    def __len__(self) -> int:
        return len(self.root)


def bodies(problem: Problem) -> Bodies:
    """Returns the bodies of a problem. Needs memory for all pairs that meet: see `count_conflicts`."""
    units = units_of(problem)
    ids, root, used = units.ids, problem.chains.root, problem.size > 0
    is_solid = np.ones(len(problem), bool)
    np.logical_and.at(is_solid, root[used], problem.size[used] == problem.size[root[used]])
    body = np.full(len(problem), -1)
    body[ids] = np.arange(len(ids))
    met = conflict_pairs(problem)
    one, other = body[root[met.one]], body[root[met.other]]
    near = _near_by_pairs(one[one != other], other[one != other], len(ids))
    cliques = _cliques_in_time(units.begin, units.end) if problem.conflicts is None else cover(near)
    columns = (units.begin, units.end, units.size, units.alignment)
    return Bodies(ids, *columns, problem.pinned[ids], is_solid[ids], near, cliques)


def parts(whole: Bodies, wanted: Column) -> Iterator[Bodies]:
    """Yields sets of bodies without conflicts between them, each with its pinned neighbours, that have a `wanted` body.

    Pinned bodies hold nothing together and are no part of their own.
    """
    label, rows = _labels(whole), whole.near.row_of_each()
    for first in distinct(label[wanted[whole.pinned[wanted] == FREE]]).tolist():
        inside = (label == first) & (whole.pinned == FREE)
        inside[whole.near.item[inside[rows]]] = True
        yield select(whole, np.flatnonzero(inside))


def grain(unit: int, alignment: Column) -> int:
    """Returns a divisor of all arenas in which no body can move down; sizes and pins are multiples of `unit`.

    Offsets are sums of those, aligned upwards now and then.
    """
    while True:
        finer = [gcd(unit, a) for a in distinct(alignment).tolist() if unit % a and a % unit]
        if not finer:
            return unit
        unit = min(finer)


def select(whole: Bodies, ids: Column) -> Bodies:
    """Returns some of the bodies, in the order of `ids`, with what is between them."""
    place = np.full(len(whole), -1)
    place[ids] = np.arange(len(ids))
    clique = whole.cliques.row_of_each()
    is_used = np.bincount(clique[place[whole.cliques.item] >= 0], minlength=len(whole.cliques)) > 0
    return Bodies(
        whole.root[ids],
        whole.begin[ids],
        whole.end[ids],
        whole.size[ids],
        whole.alignment[ids],
        whole.pinned[ids],
        whole.is_solid[ids],
        _kept(whole.near, place, place, len(ids)),
        _kept(whole.cliques, np.where(is_used, np.cumsum(is_used) - 1, -1), place, int(is_used.sum())),
    )


def _kept(lists: RaggedArray, row_place: Column, place: Column, count: int) -> RaggedArray:
    """Returns the rows and items that have a place (not -1), there."""
    rows, items = row_place[lists.row_of_each()], place[lists.item]
    both = (rows >= 0) & (items >= 0)
    return RaggedArray.grouped(rows[both], items[both], count)


def _labels(whole: Bodies) -> Column:
    """Returns one number for each set of bodies that hang together; pinned bodies hold nothing together."""
    rows, items = whole.near.row_of_each(), whole.near.item
    is_free = (whole.pinned[rows] == FREE) & (whole.pinned[items] == FREE)
    rows, items = rows[is_free], items[is_free]
    label = np.arange(len(whole))
    while True:
        lower = label.copy()
        np.minimum.at(lower, rows, label[items])
        lower = lower[lower]
        if (lower == label).all():
            return label
        label = lower


def _cliques_in_time(begin: Column, end: Column) -> RaggedArray:
    """Returns the cliques that are alive in each tick in which something begins, before something ends."""
    ticks = distinct(begin)
    ends = np.sort(end)
    behind = np.append(ticks[1:], np.iinfo(np.int64).max)
    is_last = np.searchsorted(ends, behind, "right") > np.searchsorted(ends, ticks, "right")
    alive_sets = [np.flatnonzero((begin <= t) & (t < end)) for t in ticks[is_last].tolist()]
    rows = np.repeat(np.arange(len(alive_sets)), [len(f) for f in alive_sets])
    items = np.concatenate([*alive_sets, np.zeros(0, np.int64)])
    return RaggedArray.grouped(rows, items, len(alive_sets))


def _near_by_pairs(one: Column, other: Column, count: int) -> RaggedArray:
    pairs = distinct(np.concatenate((one * count + other, other * count + one)))
    return RaggedArray.grouped(pairs // max(count, 1), pairs % max(count, 1), count)


def cover(near: RaggedArray) -> RaggedArray:
    """Returns cliques, found greedily, such that each body stands in one and each pair of neighbours too.

    A set of bodies is a whole number here: bit k says that the body with the k-th most neighbours is in it.
    """
    by_degree = np.argsort(-np.diff(near.start), kind="stable")
    sets, cliques = _masks(near, by_degree), list[int]()
    for one, own in enumerate(sets):
        uncovered = own >> one << one
        if not own:
            cliques.append(1 << one)
        while uncovered:
            cliques.append(_clique_of(one, uncovered, sets))
            uncovered &= ~cliques[-1]
    members = [_members(clique) for clique in cliques]
    rows = np.repeat(np.arange(len(cliques)), [len(m) for m in members])
    return RaggedArray.grouped(rows, by_degree[np.concatenate([*members, np.zeros(0, np.int64)])], len(cliques))


def _masks(near: RaggedArray, order: Column) -> list[int]:
    """Returns the neighbours of each body, in an order, as bits that stand for places in the same order."""
    place, masks = np.argsort(order), []
    for body in order.tolist():
        bits = np.zeros(len(near), bool)
        bits[place[near.row(body)]] = True
        masks.append(int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little"))
    return masks


def _members(clique: int) -> Column:
    """Returns the places of the bits."""
    whole = np.frombuffer(clique.to_bytes(clique.bit_length() // 8 + 1, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(whole, bitorder="little"))


def _clique_of(one: int, first: int, sets: list[int]) -> int:
    """Returns a maximal clique with `one` in it, grown first from `first`, then from bodies with most neighbours."""
    clique, common = 1 << one, sets[one]
    while common:
        wanted = first & common or common
        other = wanted & -wanted
        clique |= other
        common &= sets[other.bit_length() - 1]
    return clique
