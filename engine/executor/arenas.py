"""Arenas that a caller gives: the bytes of a plan in them, and who else has bytes there."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import numpy as np
from attrs import define, frozen

from allocator.machine_code.mutex import Mutex
from engine.check.pieces import Runs, meet, merged
from engine.planning.placed import PlacedPlan
from engine.text.errors import ArenaInUseError, OptionError
from ops.tensor.layout import CACHE_LINE, address_of
from ops.tensor.spec import Array, is_masked


class _OwnArena:
    """What says that an executor gets an arena of its own."""

    def __repr__(self) -> str:
        return "OWN_ARENA"


OWN_ARENA = _OwnArena()
"""The argument `arena` where nobody gives a buffer."""


@frozen(eq=False)
class GivenArena:
    """The bytes of a plan in an arena that others may have bytes of, too.

    Executors whose `state` is one and the same object, and not None, have the same parameters at the same addresses.
    """

    content: Array
    state: object = None


def alignment_of(plan: PlacedPlan) -> int:
    """Returns the number of bytes of which the address of an arena must be a multiple."""
    return max(plan.alignment, CACHE_LINE) if plan.lowered.target.is_host else plan.alignment


def arena_in(plan: PlacedPlan, buffer: Any) -> GivenArena:
    """Returns the bytes of a plan's arena in a caller's buffer; see `arena_at`. Raises OptionError."""
    if isinstance(buffer, GivenArena):
        return buffer
    owner = f"the plan of {plan.lowered.graph.name!r}"
    return GivenArena(arena_at(buffer, plan.arena_bytes, alignment_of(plan), owner))


def arena_at(buffer: Any, size: int, alignment: int, owner: str) -> Array:
    """Returns `size` bytes of a caller's buffer: the first ones whose address is a multiple of `alignment`.

    The buffer is a numpy array, a tensor with DLPack, or anything with the buffer protocol, such as a bytearray, an
    mmap or a memoryview: one row of unsigned bytes that can be written. `owner` is what needs them, for the message.
    Raises OptionError.
    """
    array = _bytes_of(buffer)
    skipped = -address_of(array) % alignment if size else 0
    if array.nbytes < size + skipped:
        left = max(array.nbytes - skipped, 0)
        behind = f", {left} of them from the first multiple of {alignment} on" if skipped else ""
        raise OptionError(
            f"{owner} needs an arena of {size} bytes whose address is a multiple of {alignment}; the buffer has "
            f"{array.nbytes} bytes{behind}"
        )
    return array[skipped : skipped + size]


def _bytes_of(buffer: Any) -> Array:
    """Returns the bytes of a buffer as a row. Raises OptionError for a buffer that cannot be an arena."""
    kind = type(buffer).__name__
    if is_masked(buffer):
        raise OptionError("arena is a masked array, whose mask would stay as it is: give its `data`")
    try:
        if isinstance(buffer, np.ndarray):
            array = np.asarray(buffer)
        elif hasattr(buffer, "__dlpack__"):
            array = np.from_dlpack(buffer)
        else:
            array = np.asarray(memoryview(buffer))
    except Exception as error:  # these methods are the caller's, and may raise anything
        reason = str(error) or type(error).__name__
        raise OptionError(f"arena is a {kind}, which gives no bytes in the memory of this process: {reason}") from error
    if array.dtype != np.uint8 or array.ndim != 1:
        shape = "x".join(map(str, array.shape)) or "one"
        raise OptionError(f"arena has {shape} elements of {array.dtype}; give one row of unsigned bytes (uint8)")
    if not array.flags.writeable:
        raise OptionError(f"arena is a {kind} that is read-only; give a buffer that can be written")
    if not array.flags.c_contiguous:
        raise OptionError("arena has gaps between its bytes; give bytes that follow each other")
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
    state, low = plan.state_chunks, address_of(lent.content) + plan.plan.offset
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
