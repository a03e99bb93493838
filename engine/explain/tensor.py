"""One tensor of a plan: where it lies, how long, what keeps it alive that long, and what lies next to it."""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from attrs import asdict, evolve, frozen

from engine.explain.accesses import LATER_STAGES, Accesses, Use, accesses_of
from engine.explain.names import find_tensor
from engine.explain.overwrites import Forward, forwards_of
from engine.explain.sentences import operator, outcome, readers, shape, shown, ticks
from engine.lower.calls import Instruction, Storage, Value
from engine.lower.roles import is_kept
from engine.planning.placed import PlacedPlan
from engine.report.memories import TensorAgain, TensorMove, moves_of, recomputed_of
from engine.report.memory_choices import MemoryChoice, choice_lines, choices_of
from engine.report.peak import peak_chunks
from engine.text.tables import joined
from engine.text.units import format_bytes

NOWHERE = -1
"""Chunk, offset and ticks of a tensor that is not in the arena."""


@frozen(eq=False)
class Neighbour:
    """A tensor that lies `gap` bytes above or below another one and is alive with it in some tick."""

    tensor: str
    offset: int
    bytes: int
    gap: int
    begin: int
    end: int

    def text(self) -> str:
        """Returns its name, its size and its place."""
        apart = f", {self.gap} bytes apart" if self.gap else ""
        return f"{shown(self.tensor)} ({format_bytes(self.bytes)} from byte {self.offset}{apart})"


@frozen(eq=False)
class TensorExplanation:
    """The explanation of one tensor. Sizes in bytes; `offset` counts from the start of the arena.

    `inside` counts from the first byte of its chunk. `span` is more than `bytes` where the tensor lies in parts.
    `storage` says where its bytes are: in the arena, in a constant or in an array of the caller. The chunk was made for
    the tensor `chunk_of`, and is alive in the ticks [begin, end). `readers` read this tensor, `holders` read any view
    of its bytes. `peak_overwriter` is the tensor of the same chain of overwrites that is alive at the peak. `views` and
    `parts` are tensors in the bytes that it owns. `last_tick` is the tick of the fetch. `memories` says why it lies in
    its memory; empty for one arena. `moves` are the copies of it from one memory to another; the one of tick `written`
    made it. `recomputed` says when it is computed again between memories. `fate` says what became of the tensor that
    was asked for, where the graph lacks it and this one is in its place.
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
    peak_overwriter: str
    below: tuple[Neighbour, ...]
    above: tuple[Neighbour, ...]
    forwards: tuple[Forward, ...]
    memories: tuple[MemoryChoice, ...] = ()
    moves: tuple[TensorMove, ...] = ()
    recomputed: tuple[TensorAgain, ...] = ()
    fate: str = ""

    def __repr__(self) -> str:
        """Returns one line; `print` shows the explanation."""
        return f"<explanation of tensor {self.tensor!r}>"

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self)

    def text(self, most: int = 10) -> str:
        """Returns the explanation as lines of text, with at most `most` readers."""
        return joined(_lines(self, most))

    def __str__(self) -> str:
        return self.text()


def _lines(facts: TensorExplanation, most: int) -> Iterator[str]:
    if facts.fate:
        yield facts.fate
    size = f"{format_bytes(facts.bytes)} ({facts.bytes} bytes)"
    yield f"{shown(facts.tensor)}: {shape(facts.shape, facts.dtype)}, {size}, {facts.role} of {shown(facts.model)}"
    if facts.storage != Storage.ARENA.value:
        whose = "a constant" if facts.storage == Storage.CONSTANT.value else "an array of the caller"
        yield f"  It is {whose}, outside of the arena."
    else:
        yield from _place(facts)
    for choice in facts.memories:
        yield from (f"  {line}" for line in choice_lines(choice))
    yield from _life(facts, most)
    if facts.storage == Storage.ARENA.value:
        yield from _peak_lines(facts)
    yield from (f"  May be written over {shown(f.input)}: {outcome(f, 'is')}." for f in facts.forwards)


def _place(facts: TensorExplanation) -> Iterator[str]:
    padding = f", and {facts.padding} bytes of padding behind" if facts.padding else ""
    parts = ", in parts" if facts.span > facts.bytes else ""
    yield f"  Lies in bytes [{facts.offset}, {facts.offset + facts.span}) of the arena{parts}{padding}."
    if facts.chunk_of != facts.tensor:
        yield f"  Has no bytes of its own: it lies in those of {shown(facts.chunk_of)}, from byte {facts.inside} on."
    if facts.overwrites:
        yield f"  Is written over {shown(facts.overwrites)}."
    if facts.overwritten_by:
        yield f"  Then {shown(facts.overwritten_by)} is written over it."
    for what, names in (("Views of it:", facts.views), ("Tensors written inside it:", facts.parts)):
        if names and facts.chunk_of == facts.tensor:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            yield f"  {what} {', '.join(map(shown, names[:5]))}{more}."
    yield f"  Below it: {facts.below[0].text() if facts.below else 'nothing'}."
    yield f"  Above it: {facts.above[0].text() if facts.above else 'nothing'}."


def _life(facts: TensorExplanation, most: int) -> Iterator[str]:
    writer = (
        "fed" if not facts.written else f"written in tick {facts.written} by {operator(facts.operator, facts.kind)}"
    )
    if facts.storage == Storage.CONSTANT.value:
        writer = "there from the start"
    elif is_kept(facts.role) and not facts.written:
        writer = "kept from run to run"
    yield f"  It is {writer}."
    for use in facts.readers[:most]:
        yield f"    read in tick {use.tick} by {operator(use.operator, use.kind)}"
    if len(facts.readers) > most:
        yield f"    ... and {len(facts.readers) - most} more readers"
    yield from map(_copied, facts.moves)
    for again in facts.recomputed:
        yield f"  In tick {again.tick} {shown(again.tensor)} is computed again, in {again.memory}."
    if facts.storage == Storage.ARENA.value:
        yield from _held(facts)


def _copied(move: TensorMove) -> str:
    by = ", by the copy engine beside other calls" if move.is_beside else ""
    return f"  In tick {move.tick} {shown(move.tensor)} is copied from {move.leaves} to {move.enters}{by}."


def _held(facts: TensorExplanation) -> Iterator[str]:
    length = ticks(facts.end - facts.begin)
    if not facts.holders:
        yield f"  Nothing reads it. Its bytes are taken for {length}, [{facts.begin}, {facts.end})."
        return
    last = facts.holders[-1]
    who = "the fetch of outputs" if last.is_fetched else LATER_STAGES if last.is_handed_over else readers((last,))
    as_what = "" if last.tensor == facts.tensor else f", which reads {shown(last.tensor)} in the same bytes"
    yield f"  Its bytes are taken for {length}, [{facts.begin}, {facts.end}): they are held for {who}{as_what}."


def _peak_lines(facts: TensorExplanation) -> Iterator[str]:
    if facts.is_at_peak:
        yield f"  It is alive at the peak, tick {facts.peak_tick}."
    elif facts.peak_overwriter:
        overwriter = shown(facts.peak_overwriter)
        yield f"  It is not alive at the peak, tick {facts.peak_tick}; {overwriter}, in its bytes, is."
    else:
        yield f"  It is not alive at the peak, tick {facts.peak_tick}."


def explain_tensor(plan: PlacedPlan, name: str) -> TensorExplanation:
    """Explains one tensor by its name in a trace or in the model. Raises UnknownNameError.

    Of a tensor that the graph lacks, the one in its place is explained, or the one that its operator writes.
    """
    match = find_tensor(plan.lowered, name)
    values = {v.name: v for v in reversed(plan.lowered.values)}
    value, accesses = values[match.name], accesses_of(plan)
    explanation = (_inside if value.storage is Storage.ARENA else _outside)(accesses, value)
    name = value.source or value.name
    moves = tuple(m for m in moves_of(plan) if m.tensor == name or 0 < m.tick == explanation.written)
    recomputed = tuple(again for again in recomputed_of(plan) if again.tensor == name)
    memories = choices_of(plan, value.id)
    return evolve(explanation, memories=memories, moves=moves, recomputed=recomputed, fate=match.fate)


def _inside(accesses: Accesses, value: Value) -> TensorExplanation:
    plan, chunk = accesses.plan, accesses.plan.chunk_of(value.id)
    number, owner = plan.ids[value.id], accesses.owner(chunk)
    low, high = plan.places[value.id].layout.extent
    tick, at_peak = peak_chunks(plan)
    below, above = neighbours(accesses, chunk) if plan.problem.size[chunk] else ((), ())
    written = accesses.writers.get(value.id, accesses.written(chunk))
    others = [accesses.values[v] for v in accesses.members[chunk] if v != number and accesses.values[v].is_view]
    inner = tuple(v.name for v in others if v.id in accesses.writers)
    return TensorExplanation(
        **_plain(accesses, value),
        chunk=chunk,
        chunk_of=owner.name,
        offset=low,
        span=high - low,
        inside=int(plan.chunks.offset_in_chunk[number]),
        padding=int(plan.problem.size[chunk] - plan.chunks.size[chunk]),
        begin=int(plan.problem.begin[chunk]),
        end=int(plan.problem.end[chunk]),
        written=written,
        operator=plan.lowered.tick_name(written),
        kind=plan.lowered.tick_kind(written),
        readers=accesses.uses_of(number),
        holders=accesses.uses(chunk),
        overwrites="".join(accesses.name(c) for c in accesses.overwritten(chunk)),
        overwritten_by="".join(accesses.name(c) for c in accesses.overwriter(chunk)),
        views=tuple(v.name for v in others if v.id not in accesses.writers),
        parts=inner,
        peak_tick=tick,
        is_at_peak=chunk in at_peak,
        peak_overwriter=_alive_at_peak(accesses, chunk, set(at_peak.tolist())),
        below=below,
        above=above,
        forwards=tuple(f for s in accesses.instruction(written) for f in _forwards(accesses, s, value.name)),
    )


def _alive_at_peak(accesses: Accesses, chunk: int, at_peak: Collection[int]) -> str:
    """Returns the tensor of its chain of overwrites that is alive at the peak; empty where the chunk itself is."""
    if chunk in at_peak:
        return ""
    chain = [chunk]
    for follow in (accesses.overwriter, accesses.overwritten):
        at = follow(chunk)
        while at:
            chain += at
            at = follow(at[0])
    return "".join(accesses.name(c) for c in chain if c in at_peak)


def _forwards(accesses: Accesses, instruction: Instruction, output: str) -> Iterator[Forward]:
    """Yields the overwrites that the operator which writes a tensor declares for it."""
    calls = (call for call in accesses.plan.lowered.calls if call.tick == instruction.tick)
    yield from (f for call in calls for f in forwards_of(accesses, call) if f.output == output)


def _plain(accesses: Accesses, value: Value) -> dict[str, Any]:
    """Returns the fields that tensors inside and outside of the arena have."""
    return {
        "model": accesses.plan.lowered.graph.name,
        "tensor": value.name,
        "shape": value.spec.shape,
        "dtype": value.spec.dtype.name,
        "bytes": value.spec.nbytes,
        "role": accesses.roles[value.id],
        "storage": value.storage.value,
        "last_tick": accesses.last_tick,
    }


def _outside(accesses: Accesses, value: Value) -> TensorExplanation:
    """Explains a constant or a tensor in an array of the caller."""
    plan = accesses.plan
    written = accesses.writers.get(value.id, 0)
    instructions = ((s.tick, s) for s in plan.lowered.instructions if value.id in s.inputs)
    uses = tuple(Use(tick, s.name, plan.lowered.tick_kind(tick), value.name) for tick, s in instructions)
    return TensorExplanation(
        **_plain(accesses, value),
        chunk=NOWHERE,
        chunk_of="",
        offset=NOWHERE,
        span=value.spec.nbytes,
        inside=NOWHERE,
        padding=0,
        begin=NOWHERE,
        end=NOWHERE,
        written=written,
        operator=plan.lowered.tick_name(written),
        kind=plan.lowered.tick_kind(written),
        readers=uses,
        holders=uses,
        overwrites="",
        overwritten_by="",
        views=(),
        parts=(),
        peak_tick=peak_chunks(plan)[0],
        is_at_peak=False,
        peak_overwriter="",
        below=(),
        above=(),
        forwards=(),
    )


def neighbours(accesses: Accesses, chunk: int) -> tuple[tuple[Neighbour, ...], tuple[Neighbour, ...]]:
    """Returns (below, above): the nearest chunks that are alive with a chunk; empty where there is none.

    A chunk of the same chain of overwrites lies in its bytes and is no neighbour.
    """
    problem, offset = accesses.plan.problem, accesses.plan.plan.offset
    low, high = int(offset[chunk]), int(offset[chunk] + problem.size[chunk])
    together = (problem.begin < problem.end[chunk]) & (problem.begin[chunk] < problem.end) & (problem.size > 0)
    below = np.flatnonzero(together & (offset + problem.size <= low))
    above = np.flatnonzero(together & (offset >= high))
    nearest_below = below[np.argsort(-(offset + problem.size)[below], kind="stable")][:1]
    nearest_above = above[np.argsort(offset[above], kind="stable")][:1]
    return (
        tuple(_neighbour(accesses, int(c), low - int(offset[c] + problem.size[c])) for c in nearest_below),
        tuple(_neighbour(accesses, int(c), int(offset[c]) - high) for c in nearest_above),
    )


def _neighbour(accesses: Accesses, chunk: int, gap: int) -> Neighbour:
    problem = accesses.plan.problem
    return Neighbour(
        accesses.name(chunk),
        int(accesses.plan.plan.offset[chunk]),
        int(problem.size[chunk]),
        gap,
        int(problem.begin[chunk]),
        int(problem.end[chunk]),
    )
