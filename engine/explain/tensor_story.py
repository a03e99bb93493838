"""What there is to say of one tensor of a plan: where it lies, how long, and what holds it that long."""

from collections.abc import Iterator
from typing import Any

from attrs import asdict, frozen

from engine.explain.accesses import LATER_STAGES, Use
from engine.explain.names import shown
from engine.explain.neighbours import Neighbour
from engine.explain.refusals import Forward
from engine.explain.sentences import operator, readers, shape, ticks, why_not
from engine.lower.calls import Role, Storage
from engine.text.units import format_bytes

NOWHERE = -1
"""Chunk, offset and ticks of what is not in the arena."""


@frozen(eq=False)
class TensorStory:
    """Sizes in bytes; `offset` counts from the start of the arena, `inside` from the first byte of its chunk.

    It spans `span` bytes, more than it has where it lies in parts. `storage` says whose bytes it has: the arena's, a
    constant's or the caller's. The chunk was made for the tensor `chunk_of`, and lives in the ticks [begin, end);
    `readers` are those of this tensor, `holders` those of any view of its bytes. `heir` is alive at the peak in the
    same bytes, as one of those that are written over each other. `views` and `parts` look at or lie in the bytes that
    it owns. `last_tick` is the one of the fetch.
    """

    model: str
    tensor: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    role: str
    storage: str
    chunk: int
    chunk_of: str
    offset: int
    span: int
    inside: int
    padding: int
    begin: int
    end: int
    last_tick: int
    written: int
    operator: str
    kind: str
    readers: tuple[Use, ...]
    holders: tuple[Use, ...]
    overwrites: str
    overwritten_by: str
    views: tuple[str, ...]
    parts: tuple[str, ...]
    peak_tick: int
    is_at_peak: bool
    heir: str
    below: tuple[Neighbour, ...]
    above: tuple[Neighbour, ...]
    forwards: tuple[Forward, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return asdict(self)

    def text(self, most: int = 10) -> str:
        """A page for people, with at most so many readers and views."""
        return "\n".join(_lines(self, most)) + "\n"

    def __str__(self) -> str:
        return self.text()


def _lines(told: TensorStory, most: int) -> Iterator[str]:
    size = f"{format_bytes(told.bytes)} ({told.bytes} bytes)"
    yield f"{shown(told.tensor)}: {shape(told.shape, told.dtype)}, {size}, {told.role} of {shown(told.model)}"
    if told.storage != Storage.ARENA.value:
        whose = "a constant" if told.storage == Storage.CONSTANT.value else "an array of the caller's"
        yield f"  It is {whose}, outside of the arena."
    else:
        yield from _place(told)
    yield from _life(told, most)
    if told.storage == Storage.ARENA.value:
        yield from _peak_lines(told)
    yield from (f"  May be written over {shown(f.input)}: {_came_of(f)}." for f in told.forwards)


def _place(told: TensorStory) -> Iterator[str]:
    padding = f", and {told.padding} bytes of padding behind" if told.padding else ""
    parts = ", in parts" if told.span > told.bytes else ""
    yield f"  Lies in bytes [{told.offset}, {told.offset + told.span}) of the arena{parts}{padding}."
    if told.chunk_of != told.tensor:
        yield f"  Has no bytes of its own: it lies in those of {shown(told.chunk_of)}, from byte {told.inside} on."
    if told.overwrites:
        yield f"  Is written over {shown(told.overwrites)}."
    if told.overwritten_by:
        yield f"  Then {shown(told.overwritten_by)} is written over it."
    for what, names in (("Looked at as", told.views), ("Tensors written inside it:", told.parts)):
        if names and told.chunk_of == told.tensor:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            yield f"  {what} {', '.join(map(shown, names[:5]))}{more}."
    yield f"  Below it: {told.below[0].text() if told.below else 'nobody'}."
    yield f"  Above it: {told.above[0].text() if told.above else 'nobody'}."


def _life(told: TensorStory, most: int) -> Iterator[str]:
    writer = "fed" if not told.written else f"written in tick {told.written} by {operator(told.operator, told.kind)}"
    if told.storage == Storage.CONSTANT.value:
        writer = "there from the start"
    elif told.role == Role.PARAMETER.value:
        writer = "there from run to run"
    yield f"  It is {writer}."
    for use in told.readers[:most]:
        yield f"    read in tick {use.tick} by {operator(use.operator, use.kind)}"
    if len(told.readers) > most:
        yield f"    ... and {len(told.readers) - most} more readers"
    if told.storage == Storage.ARENA.value:
        yield from _held(told)


def _held(told: TensorStory) -> Iterator[str]:
    length = ticks(told.end - told.begin)
    if not told.holders:
        yield f"  Nobody reads it. Its bytes are taken for {length}, [{told.begin}, {told.end})."
        return
    last = told.holders[-1]
    who = "the fetch of outputs" if last.is_fetched else LATER_STAGES if last.is_handed else readers((last,))
    as_what = "" if last.tensor == told.tensor else f", which reads {shown(last.tensor)} in the same bytes"
    yield f"  Its bytes are taken for {length}, [{told.begin}, {told.end}): what holds them is {who}{as_what}."


def _peak_lines(told: TensorStory) -> Iterator[str]:
    if told.is_at_peak:
        yield f"  It is alive at the peak, tick {told.peak_tick}."
    elif told.heir:
        yield f"  It is not alive at the peak, tick {told.peak_tick}; {shown(told.heir)}, in its bytes, is."
    else:
        yield f"  It is not alive at the peak, tick {told.peak_tick}."


def _came_of(forward: Forward) -> str:
    return "it is" if forward.is_taken else f"it is not, as {why_not(forward)}"
