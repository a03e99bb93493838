"""What a heap is asked for: allocations and frees, as columns in the order in which they come."""

from array import array

import numpy as np
from attrs import define, field, frozen

from allocator.derive.chunks import Chunks
from allocator.errors import ProblemError
from allocator.problem import Column, column, follow_overwrites

ALLOC, FREE = 1, -1
"""Signs of an event."""
NO_CHUNK = -1
"""The overwritten chunk of one that overwrites none."""
_MOST_BYTES = 2**62


@frozen(eq=False)
class Events:
    """Event k asks in tick[k] for size[id[k]] bytes where sign[k] is ALLOC, and gives them back where it is FREE.

    Each id is allocated once, and freed at most once after that; ids that no event names are not there. Ticks never
    run backwards. What is of no bytes takes no place in any heap. Raises ProblemError.
    """

    tick: Column = field(converter=column)
    id: Column = field(converter=column)
    sign: Column = field(converter=column)
    size: Column = field(converter=column)

    def __attrs_post_init__(self) -> None:
        if not len(self.tick) == len(self.id) == len(self.sign):
            raise ProblemError("the columns of the events differ in length")
        if len(self.size) and (self.size.min() < 0 or self.size.sum(dtype=float) >= _MOST_BYTES):
            raise ProblemError("an event has fewer bytes than none, or all have more than 64-bit numbers can count")
        if len(self.id):
            _check(self)

    def __len__(self) -> int:
        return len(self.id)

    @property
    def delta(self) -> Column:
        """Returns the change of the live bytes by each event."""
        return self.sign * self.size[self.id]


def of_lifetimes(begin: Column, end: Column, size: Column) -> Events:
    """Returns the events of ids that live in the ticks [begin, end).

    In one tick frees come before allocations, of each the lower id first: the order of a trace of a dynamic run.
    """
    count = np.arange(len(size), dtype=np.int64)
    tick = np.concatenate((end, begin)).astype(np.int64)
    sign = np.repeat((FREE, ALLOC), len(size))
    order = np.lexsort((sign, tick))  # stable, so ids ascend; FREE is less than ALLOC
    return Events(tick[order], np.concatenate((count, count))[order], sign[order], size)


def of_chunks(chunks: Chunks) -> Events:
    """Returns the events of reference counting, chunk by chunk; a chain of overwrites is one block, that of its root.

    Derive the chunks with `overwrite=False`, as a dynamic run does: only updates of parameters are overwrites then.
    """
    root, end = follow_overwrites(len(chunks), chunks.src, chunks.dest, chunks.overwrite_offset).root, chunks.end.copy()
    np.maximum.at(end, root, chunks.end)
    events = of_lifetimes(chunks.begin, end, chunks.size)
    own = root[events.id] == events.id
    return Events(events.tick[own], events.id[own], events.sign[own], chunks.size)


@define(eq=False)
class EventLog:
    """Collects the events of a run one by one; a chain of overwrites is one block, as in `of_chunks`.

    A chunk that takes the bytes of another one asks for nothing: the block is its own from then on, and is given back
    when it is freed. Chunks of no bytes are blocks of no bytes. A number of a chunk may be used again once it is freed.
    Keeps four numbers an event.
    """

    _tick: "array[int]" = field(factory=lambda: array("q"), init=False)
    _id: "array[int]" = field(factory=lambda: array("q"), init=False)
    _sign: "array[int]" = field(factory=lambda: array("q"), init=False)
    _size: "array[int]" = field(factory=lambda: array("q"), init=False)
    _block: dict[int, int] = field(factory=dict, init=False)

    def begin(self, tick: int, chunk: int, nbytes: int, overwrites: int = NO_CHUNK) -> int:
        """Returns the block of a chunk that begins: a new one, or that of the chunk that it overwrites."""
        block = self._block.pop(overwrites, len(self._size))
        if block == len(self._size):
            self._size.append(nbytes)
            self._ask(tick, block, ALLOC)
        self._block[chunk] = block
        return block

    def end(self, tick: int, chunk: int) -> None:
        """Frees the block of a chunk; does nothing for a chunk that is not there."""
        block = self._block.pop(chunk, None)
        if block is not None:
            self._ask(tick, block, FREE)

    def _ask(self, tick: int, block: int, sign: int) -> None:
        self._tick.append(tick)
        self._id.append(block)
        self._sign.append(sign)

    def events(self) -> Events:
        """Returns the events. One whose tick is below that of an earlier one, as in parallel runs, counts in that."""
        tick = np.maximum.accumulate(np.array(self._tick, np.int64))
        return Events(tick, self._id, self._sign, self._size)


def _check(events: Events) -> None:
    if not np.isin(events.sign, (ALLOC, FREE)).all():
        raise ProblemError("the sign of an event is neither an allocation's nor a free's")
    if (np.diff(events.tick) < 0).any():
        raise ProblemError("the ticks of the events run backwards")
    if events.id.min() < 0 or events.id.max() >= len(events.size):
        raise ProblemError("an event names an id that has no size")
    allocated, freed = (_first(events, sign) for sign in (ALLOC, FREE))
    wrong = (freed < len(events)) & (freed < allocated)
    if wrong.any():
        raise ProblemError(f"id {int(np.argmax(wrong))} is freed, but was not allocated before")


def _first(events: Events, sign: int) -> Column:
    """Returns the event in which each id is allocated or freed; len(events) if it is not."""
    rows = np.flatnonzero(events.sign == sign)
    ids, times = np.unique(events.id[rows], return_counts=True)
    if (times > 1).any():
        verb = "allocated" if sign == ALLOC else "freed"
        raise ProblemError(f"id {int(ids[np.argmax(times > 1)])} is {verb} twice")
    first = np.full(len(events.size), len(events), np.int64)
    first[events.id[rows]] = rows
    return first
