"""A planning problem and its answer, as columns of numpy int64. Row i of each column speaks of chunk i.

Lifetimes are half-open ranges of ticks, sizes and offsets are bytes.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from attrs import Factory, field, frozen

from allocator.errors import ProblemError

Column = npt.NDArray[np.int64]
DEFAULT_ALIGNMENT = 64
"""Bytes: a cache line of most processors, so that no two chunks share one."""
FREE = -1
"""Pinned offset of a chunk that may lie anywhere."""
NO_CAPACITY = 2**63 - 1
"""A capacity that every plan keeps."""
NO_TICK = -1
"""The tick of a witness that names chunks, or nothing."""
TOO_MANY_BYTES = 2.0**62
"""Sizes, alignments and the highest pinned offset of a problem have fewer bytes together."""
_BITS = 63
"""Bits of a number that is not negative."""


def align_up(offset: int, alignment: int) -> int:
    """Returns the smallest multiple of `alignment` that is not below `offset`."""
    return -(-offset // alignment) * alignment


def column(values: Any) -> Column:
    """Returns a read-only int64 column with its own memory; one that is that already is returned as it is."""
    if _is_column(values):
        return values
    array = np.array(values, dtype=np.int64)
    array = array if array.ndim == 1 else array.reshape(-1)
    array.flags.writeable = False
    return array


def _is_column(values: Any) -> TypeGuard[Column]:
    is_array = isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1
    return is_array and values.base is None and not values.flags.writeable


def distinct(keys: Column) -> Column:
    """Returns the numbers in order, each once. `np.unique` may build a hash table, and loads `numpy.ma`."""
    ordered = np.sort(keys)
    return np.concatenate((ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]))


def stable_order(*keys: Column) -> Column:
    """Returns what `np.lexsort` does: the order by some keys, none of them negative, of which the last one decides.

    Where the last key is in order and decides alone, nothing is sorted. Where keys and places fit into one number,
    these are sorted, in a fifth of the time.
    """
    count = len(keys[0])
    if (keys[-1][1:] > keys[-1][:-1]).all():
        return np.arange(count)
    place, widths = count.bit_length(), [int(key.max(initial=0)).bit_length() for key in keys]
    if place + sum(widths) > _BITS:
        return _order_by_each(*keys)
    packed = keys[-1]
    for key, width in zip(keys[-2::-1], widths[-2::-1], strict=True):
        packed = (packed << width) | key
    packed = (packed << place) | np.arange(count)
    packed.sort()
    return packed & ((1 << place) - 1)


def _order_by_each(*keys: Column) -> Column:
    """Returns the order of `stable_order`, by one key after the other."""
    if len(keys) == 1:
        return np.argsort(keys[0], kind="stable")
    order = stable_order(keys[0])
    for key in keys[1:]:
        order = order[stable_order(key[order])]
    return order


@frozen
class Lifetime:
    """One row of a problem, for people."""

    id: int
    begin: int
    end: int
    size: int
    alignment: int
    pinned: int


@frozen(eq=False)
class Conflicts:
    """Pairs of chunks that may share no byte: chunk one[k] and chunk other[k], one of them given first, once."""

    one: Column = field(converter=column, factory=tuple)
    other: Column = field(converter=column, factory=tuple)

    def __len__(self) -> int:
        return len(self.one)


@frozen(eq=False)
class Chains:
    """Chains of overwrites: chunk i lies offset[i] bytes behind the first byte of chunk root[i].

    A chunk that overwrites nothing is its own root.
    """

    root: Column = field(converter=column)
    offset: Column = field(converter=column)

    def offsets(self, root_offset: Column) -> Column:
        """Returns the offsets of all chunks, from a column that is right for the roots."""
        return column(root_offset[self.root] + self.offset)


def follow_overwrites(count: int, src: Column, dest: Column, overwrite_offset: Column) -> Chains:
    """Derives the chains of `count` chunks, of which src[k] overwrites dest[k] from byte overwrite_offset[k] on.

    All chunks are followed at once, each time twice as far: O(n log n) for long chains, and no recursion.
    """
    root, offset = np.arange(count), np.zeros(count, np.int64)
    root[src], offset[src] = dest, overwrite_offset
    while (root[root] != root).any():
        offset += offset[root]
        root = root[root]
    root.flags.writeable = offset.flags.writeable = False
    return Chains(root, offset)


def _checked_chains(problem: "Problem") -> Chains:
    """Derives the chains of a problem whose columns it checks first: overwrites in a circle have no root."""
    _check_columns(problem)
    _check_overwrites(problem)
    return follow_overwrites(len(problem), problem.src, problem.dest, problem.overwrite_offset)


@frozen(eq=False)
class Problem:
    """Chunks to place in one arena.

    `pinned[i]` is a fixed offset or FREE. Chunk `src[k]` overwrites chunk `dest[k]`: it begins in the last tick of dest
    (`begin[src] == end[dest] - 1`), which is not dest's first, and must lie at `offset[dest] + overwrite_offset[k]`,
    wholly inside it; each chunk overwrites at most one and is overwritten by at most one. So an overwriter lies where
    the root of its chain makes it lie: its alignment is 1 and it is not pinned. A chunk of no bytes lies nowhere.

    Chunks that are alive in one tick may share no byte. Where `conflicts` are given, they decide in place of lifetimes
    (operators that run at once have no common clock): just the pairs that stand there may share no byte, and lifetimes
    only tell what is older. Chunks of one chain stand in no pair. `chains` follows from the overwrites. Raises
    ProblemError.
    """

    begin: Column = field(converter=column)
    end: Column = field(converter=column)
    size: Column = field(converter=column)
    alignment: Column = field(converter=column)
    pinned: Column = field(converter=column)
    src: Column = field(converter=column, factory=tuple)
    dest: Column = field(converter=column, factory=tuple)
    overwrite_offset: Column = field(converter=column, factory=tuple)
    conflicts: Conflicts | None = None
    chains: Chains = field(init=False, repr=False, default=Factory(_checked_chains, takes_self=True))

    def __attrs_post_init__(self) -> None:
        if self.conflicts is not None:
            _check_conflicts(self.conflicts, len(self))

    def __len__(self) -> int:
        return len(self.size)

    def rows(self) -> Iterator[Lifetime]:
        """Yields the chunks, one by one."""
        columns = (self.begin, self.end, self.size, self.alignment, self.pinned)
        for i, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            yield Lifetime(i, *values)


class Status(StrEnum):
    """The state of a plan. UNKNOWN and FEASIBLE leave open whether a smaller arena is possible."""

    OPTIMAL = "optimal"
    """No arena is smaller: it meets the lower bound."""
    FEASIBLE = "feasible"
    """It fits; whether a smaller arena would do is not known."""
    INFEASIBLE = "infeasible"
    """It does not fit, and no plan does: the lower bound is above the capacity."""
    UNKNOWN = "unknown"
    """It does not fit; whether another plan would is not known."""


@frozen
class Witness:
    """What adds up to a lower bound: the chunks alive in `tick`, or `chunks`, of which no two may share a byte.

    Bytes count in cells of `cell` bytes: a chunk that begins at the edge of a cell has all cells that it touches, but
    for the unused bytes of the topmost; any other has as many as its bytes fill. A pinned chunk proves its own end. A
    witness that names nothing is false.
    """

    tick: int = NO_TICK
    chunks: tuple[int, ...] = ()
    cell: int = 1

    def __bool__(self) -> bool:
        return self.tick != NO_TICK or bool(self.chunks)


NO_WITNESS = Witness()
"""The witness of a bound that was not found by adding up."""


@frozen
class Bound:
    """A proved lower bound: no arena has fewer bytes than `nbytes`.

    `reason` says what proves it, such as "bytes alive in tick 12"; it is empty for a bound that was read from a file
    without one. `witness` is what `allocator.check.bound` adds up; where it names nothing, a search proved the bound,
    and the reason says which.
    """

    nbytes: int
    reason: str = ""
    witness: Witness = NO_WITNESS

    def raised(self, other: "Bound") -> "Bound":
        """Returns the larger of both bounds; this one where they are equal."""
        return other if other.nbytes > self.nbytes else self


@frozen(eq=False)
class Plan:
    """The offset of each chunk. No plan of this problem has an arena below the `bound`."""

    offset: Column = field(converter=column)
    arena_bytes: int
    bound: Bound
    strategy: str
    capacity: int = NO_CAPACITY

    @property
    def lower_bound(self) -> int:
        """The bytes of the bound."""
        return self.bound.nbytes

    @property
    def status(self) -> Status:
        """The status that the arena, the capacity and the lower bound prove."""
        if self.arena_bytes > self.capacity:
            return Status.INFEASIBLE if self.lower_bound > self.capacity else Status.UNKNOWN
        return Status.OPTIMAL if self.arena_bytes == self.lower_bound else Status.FEASIBLE


def _require(good: npt.NDArray[np.bool_], message: str) -> None:
    if not good.all():
        raise ProblemError(f"chunk {int(np.argmin(good))}: {message}")


def _check_columns(problem: Problem) -> None:
    columns = (problem.begin, problem.end, problem.size, problem.alignment, problem.pinned)
    if len({len(c) for c in columns}) != 1:
        raise ProblemError("the columns of a problem differ in length")
    _require(problem.begin >= 0, "its lifetime begins before tick 0")
    _require(problem.begin < problem.end, "its lifetime is empty")
    _require(problem.size >= 0, "its size is negative")
    _require(problem.alignment >= 1, "its alignment is below 1")
    _require(problem.pinned >= FREE, "its pinned offset is negative")
    _require((problem.pinned == FREE) | (problem.pinned % problem.alignment == 0), "its pinned offset is not aligned")
    bytes_at_most = float(problem.size.sum(dtype=float) + problem.alignment.sum(dtype=float))
    if bytes_at_most + float(problem.pinned.max(initial=0)) >= TOO_MANY_BYTES:
        raise ProblemError("the chunks have more bytes than 64-bit offsets can address")


def _check_overwrites(problem: Problem) -> None:
    src, dest, at = problem.src, problem.dest, problem.overwrite_offset
    if not len(src) == len(dest) == len(at):
        raise ProblemError("the columns of the overwrites differ in length")
    if not len(src):
        return
    for ids in (src, dest):
        if ids.min() < 0 or ids.max() >= len(problem) or len(distinct(ids)) != len(ids):
            raise ProblemError("an overwrite names a chunk that does not exist, or names one twice")
    inside = (at >= 0) & (at + problem.size[src] <= problem.size[dest])
    in_time = (problem.begin[src] == problem.end[dest] - 1) | (problem.conflicts is not None)
    if not (inside & in_time).all():
        k = int(np.argmin(inside & in_time))
        raise ProblemError(f"chunk {src[k]} cannot overwrite chunk {dest[k]}: not in its bytes and last tick")
    older = problem.begin[dest] < problem.begin[src]
    free = (problem.alignment[src] == 1) & (problem.pinned[src] == FREE)
    if not older.all():
        k = int(np.argmin(older))
        raise ProblemError(
            f"chunk {src[k]} cannot overwrite chunk {dest[k]}: both begin in tick {problem.begin[src[k]]}"
        )
    if not free.all():
        raise ProblemError(f"chunk {src[int(np.argmin(free))]} overwrites another: align and pin the root of its chain")


def _check_conflicts(conflicts: Conflicts, count: int) -> None:
    one, other = conflicts.one, conflicts.other
    if len(one) != len(other):
        raise ProblemError("the columns of the conflicts differ in length")
    if not len(one):
        return
    low, high = np.minimum(one, other), np.maximum(one, other)
    if low.min() < 0 or high.max() >= count or (low == high).any():
        raise ProblemError("a conflict names a chunk that does not exist, or one chunk twice")
    if len(distinct(low * count + high)) != len(low):
        raise ProblemError("a pair of chunks stands twice among the conflicts")
