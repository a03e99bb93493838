"""Arenas: the bytes of a plan in one row or in several memories, those that a caller gives, and who has bytes there."""

import gc
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
from attrs import define, frozen

from allocator.errors import shown
from allocator.machine_code.mutex import Mutex
from allocator.memories.memory import Memory
from allocator.problem import Column
from engine.check.pieces import Runs, meet, merged
from engine.planning.placed import PlacedPlan
from engine.system.arrays import aligned_empty
from engine.system.file_bytes import bytes_in_file
from engine.text.errors import ArenaInUseError, OptionError
from engine.text.options import close_to
from ops.tensor.layout import CACHE_LINE, address_of
from ops.tensor.spec import Array, is_masked


class _OwnArena:
    """What says that an executor gets an arena of its own."""

    def __repr__(self) -> str:
        return "OWN_ARENA"


OWN_ARENA = _OwnArena()
"""The argument `arena` where nobody gives a buffer."""


@frozen(eq=False)
class Arena:
    """The bytes of a plan: one row of them, or a row for each of its memories, anywhere.

    Row i has the bytes of the plan from starts[i] on.
    """

    rows: tuple[Array, ...]
    starts: tuple[int, ...] = (0,)

    def row_with(self, byte: int) -> tuple[Array, int]:
        """Returns the row that has a byte of the plan, and the byte of the plan that the row begins with."""
        number = bisect_right(self.starts, byte) - 1
        return self.rows[number], self.starts[number]

    def cut(self, low: int, high: int) -> Array:
        """Returns the bytes [low, high) of the plan, which lie in one row."""
        row, start = self.row_with(low)
        return row[low - start : high - start]

    def fill(self, byte: int) -> None:
        """Sets each byte."""
        for row in self.rows:
            row[:] = byte

    def has(self, array: Array) -> bool:
        """Returns whether an array may have bytes of it."""
        return any(np.may_share_memory(array, row) for row in self.rows)

    def addresses(self, offset: Column) -> Column:
        """Returns the addresses of bytes of the plan."""
        number = np.searchsorted(self.starts, offset, side="right") - 1
        first = [address_of(row) - start for row, start in zip(self.rows, self.starts, strict=True)]
        addresses: Column = offset + np.array(first, np.int64)[number]
        return addresses


@frozen(eq=False)
class GivenArena:
    """The bytes of a plan in an arena that others may have bytes of, too.

    Executors whose `state` is one and the same object, and not None, have the same parameters at the same addresses.
    """

    content: Arena
    state: object = None


def alignment_of(plan: PlacedPlan) -> int:
    """Returns the number of bytes of which the address of an arena must be a multiple."""
    return max(plan.alignment, CACHE_LINE) if plan.lowered.target.is_host else plan.alignment


def new_arena(plan: PlacedPlan) -> Arena:
    """Allocates the bytes for a plan, aligned as it asks.

    Those of a memory with a folder lie in a file there. Raises OptionError, NoMemoryError, MemoryError.
    """
    if has_files(plan):
        return _arena_of(plan, {})
    return Arena((aligned_empty(plan.arena_bytes, alignment_of(plan)),))


def has_files(plan: PlacedPlan) -> bool:
    """Returns whether bytes of the plan lie in files when it runs here."""
    return any(memory.folder for memory, _, _ in _parts(plan))


def file_bytes(plan: PlacedPlan) -> int:
    """Returns how many bytes of the arena lie in files when the plan runs here."""
    return sum(high - low for memory, low, high in _parts(plan) if memory.folder)


def arena_in(plan: PlacedPlan, buffers: Any) -> GivenArena:
    """Returns the bytes of a plan's arena in a caller's buffer, or in one for each of its memories, by name.

    A memory without a buffer gets bytes of its own. See `arena_at`. Raises OptionError.
    """
    if isinstance(buffers, GivenArena):
        return buffers
    owner = f"the plan of {plan.lowered.graph.name!r}"
    if not isinstance(buffers, Mapping):
        return GivenArena(Arena((arena_at(buffers, plan.arena_bytes, alignment_of(plan), owner),)))
    names = [memory.name for memory, _, _ in _parts(plan)]
    if not names:
        raise OptionError(f"arena has a buffer for each memory, and {owner} has one arena: give one buffer")
    for name in buffers:
        if name not in names:
            raise OptionError(f"arena: memory {shown(name)} is unknown; {close_to(str(name), names)}")
    arena = _arena_of(plan, buffers)
    for (one, row), (other, second) in combinations(zip(names, arena.rows, strict=True), 2):
        if np.may_share_memory(row, second):
            raise OptionError(f"arena: the buffers of memories {one!r} and {other!r} have bytes in common")
    return GivenArena(arena)


def _arena_of(plan: PlacedPlan, buffers: Mapping[str, Any]) -> Arena:
    """Returns an arena with a row for each memory: in the buffer that is given by name, in a file, or a new one."""
    rows, alignment = list[Array](), alignment_of(plan)
    for memory, low, high in _parts(plan):
        if memory.name in buffers:
            owner = f"memory {memory.name!r} of the plan of {plan.lowered.graph.name!r}"
            rows.append(arena_at(buffers[memory.name], high - low, alignment, owner, f"arena[{memory.name!r}]"))
        elif memory.folder:
            rows.append(bytes_in_file(Path(memory.folder), high - low, alignment))
        else:
            rows.append(aligned_empty(high - low, alignment))
    return Arena(tuple(rows), tuple(low for _, low, _ in _parts(plan)))


def _parts(plan: PlacedPlan) -> Sequence[tuple[Memory, int, int]]:
    """Returns each memory of a plan with the bytes [low, high) of the arena that lie in it."""
    return [(memory, *part) for each in plan.memories for memory, part in zip(each.memories, each.ranges, strict=True)]


def arena_at(buffer: Any, size: int, alignment: int, owner: str, what: str = "arena") -> Array:
    """Returns `size` bytes of a caller's buffer: the first ones whose address is a multiple of `alignment`.

    The buffer is a numpy array, a tensor with DLPack, or anything with the buffer protocol, such as a bytearray, an
    mmap or a memoryview: one row of unsigned bytes that can be written. `owner` is what needs them, and `what` how the
    caller gave them, for the message. Raises OptionError.
    """
    array = _bytes_of(buffer, what)
    skipped = -address_of(array) % alignment if size else 0
    if array.nbytes < size + skipped:
        left = max(array.nbytes - skipped, 0)
        behind = f", {left} of them from the first multiple of {alignment} on" if skipped else ""
        raise OptionError(
            f"{owner} needs an arena of {size} bytes whose address is a multiple of {alignment}; the buffer has "
            f"{array.nbytes} bytes{behind}"
        )
    return array[skipped : skipped + size]


def _bytes_of(buffer: Any, what: str) -> Array:
    """Returns the bytes of a buffer as a row. Raises OptionError for a buffer that cannot be an arena."""
    kind = type(buffer).__name__
    if is_masked(buffer):
        raise OptionError(f"{what} is a masked array, whose mask would stay as it is: give its `data`")
    try:
        if isinstance(buffer, np.ndarray):
            array = np.asarray(buffer)
        elif hasattr(buffer, "__dlpack__"):
            array = np.from_dlpack(buffer)
        else:
            array = np.asarray(memoryview(buffer))
    except Exception as error:  # these methods are the caller's, and may raise anything
        reason = str(error) or type(error).__name__
        raise OptionError(
            f"{what} is a {kind}, which gives no bytes in the memory of this process: {reason}"
        ) from error
    if array.dtype != np.uint8 or array.ndim != 1:
        shape = "x".join(map(str, array.shape)) or "one"
        raise OptionError(f"{what} has {shape} elements of {array.dtype}; give one row of unsigned bytes (uint8)")
    if not array.flags.writeable:
        raise OptionError(f"{what} is a {kind} that is read-only; give a buffer that can be written")
    if not array.flags.c_contiguous:
        raise OptionError(f"{what} has gaps between its bytes; give bytes that follow each other")
    return array


@define(eq=False)
class ArenaUse:
    """The bytes that one executor has in an arena of the caller, by address; `mutex` is held while it runs.

    What is in `state` must survive from run to run; `state_of` is that of its GivenArena.
    """

    name: str
    state_of: object
    state: Runs
    every: Runs
    mutex: Mutex

    @contextmanager
    def running(self) -> Iterator[None]:
        """Returns a context for a run, which holds the mutex. Raises ArenaInUseError.

        A run that was interrupted may leave its entry behind, as may a process that was forked; nobody holds its mutex.
        """
        with _DOOR.lock:
            for other in _RUNNING:
                if other is not self and other.mutex.lock.locked() and meet(self.every, other.every):
                    raise ArenaInUseError(
                        f"{self.name!r} cannot run while {other.name!r} runs: they have bytes of the arena in common"
                    )
            _RUNNING.add(self)
        try:
            yield
        finally:
            with _DOOR.lock:
                _RUNNING.discard(self)


_DOOR = Mutex()
_USES: "WeakSet[ArenaUse]" = WeakSet()
_RUNNING: "WeakSet[ArenaUse]" = WeakSet()


def arena_use(plan: PlacedPlan, lent: GivenArena, mutex: Mutex) -> ArenaUse:
    """Notes which bytes of the arena an executor of the plan has, as long as the result exists.

    Raises OptionError where bytes that must survive from run to run are those of two executors.
    """
    state, low = plan.state_chunks, lent.content.addresses(plan.plan.offset)
    high = low + plan.problem.size  # with padding, which debug="poison" writes
    name = plan.lowered.graph.name
    use = ArenaUse(name, lent.state, merged(low[state], high[state]), merged(low, high), mutex)
    with _DOOR.lock:
        is_taken = any(_clash(use, other) for other in _USES)
    if is_taken:  # an executor that nobody has any more may be in a cycle; finalizers may want the door
        gc.collect()
    with _DOOR.lock:
        for other in _USES:
            if _clash(use, other):
                whose = other.name if meet(use.every, other.state) else use.name
                raise OptionError(
                    f"arena has bytes of an executable of {other.name!r}, and parameters of {whose!r} must stay there "
                    "from run to run: give each a buffer of its own, or plan them together with arenaplan.share"
                )
        _USES.add(use)
    return use


def _clash(one: ArenaUse, other: ArenaUse) -> bool:
    if one.state_of is not None and one.state_of is other.state_of:
        return False
    return meet(one.state, other.every) or meet(one.every, other.state)
