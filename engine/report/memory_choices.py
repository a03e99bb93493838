"""Why a tensor or a weight lies in its memory: its cost there, what it would save elsewhere, and what is in its way."""

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import field, frozen

from allocator.breadths import Breadths, breadths
from allocator.memories.problem import possible
from allocator.parts import part_of
from allocator.problem import Column, distinct
from engine.planning.memories import InMemories
from engine.planning.placed import PlacedPlan
from engine.text.names import printable
from engine.text.units import counted, format_bytes, format_small_seconds

MOST = 5
"""Tensors in a faster memory that an explanation has."""
LONGEST = 80
"""Characters of a name in a sentence."""


@frozen
class Holder:
    """A tensor that lies in a faster memory while another one is alive.

    `saves` is the time that each of its bytes saves there, against the memory of the other one, in seconds.
    """

    tensor: str
    bytes: int
    begin: int
    end: int
    saves: float


@frozen
class FasterMemory:
    """A memory in which the transfers of a tensor would take less: `seconds`, and `saves` for each of its bytes.

    `obstacle` says why it cannot lie there, even alone; "" where it could. While the tensor is alive, `free_bytes` are
    free in it at the least, and `holders` are the largest tensors there; sizes in bytes.
    """

    memory: str
    seconds: float
    saves: float
    obstacle: str
    free_bytes: int
    holders: tuple[Holder, ...]


@frozen
class MemoryChoice:
    """The memory of a tensor, with all that is written over it: its first byte there, and what its transfers are.

    `bytes` are those of all of it, which is alive in the ticks [begin, end). `faster` has the memories in which the
    transfers would take less, the fastest first.
    """

    memory: str
    offset: int
    bytes: int
    begin: int
    end: int
    read_bytes: int
    written_bytes: int
    calls: int
    seconds: float
    faster: tuple[FasterMemory, ...]


def choices_of(plan: PlacedPlan, value: int) -> tuple[MemoryChoice, ...]:
    """Returns why a value lies in its memory; nothing where there is one arena, or the caller has it."""
    return tuple(
        Explaining(placed, placed.contents.names(plan.lowered)).choice(placed.contents.row_of[value])
        for placed in plan.memories
        if value in placed.contents.row_of
    )


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names)


@frozen(eq=False)
class Explaining:
    """A plan in memories, with the name of each row of its contents."""

    placed: InMemories
    names: tuple[str, ...] = field(converter=_names)
    _alive_in: dict[int, Breadths] = field(init=False, factory=dict)

    def reason(self, row: int) -> str:
        """Returns why a row lies in its memory, a sentence a line."""
        return "\n".join(choice_lines(self.choice(row)))

    def choice(self, row: int) -> MemoryChoice:
        """Returns why a row lies in its memory."""
        problem, assigned = self.placed.problem, self.placed.assigned
        chunks, here = problem.chunks, int(assigned.memory[row])
        chain = np.flatnonzero(chunks.chains.root == chunks.chains.root[row])
        read, written, calls = (int(c[chain].sum()) for c in (problem.read_bytes, problem.written_bytes, problem.calls))
        seconds = problem.seconds[chain].sum(axis=0)
        begin, end = int(chunks.begin[chain].min()), int(chunks.end[chain].max())
        faster = [m for m in np.argsort(seconds, kind="stable").tolist() if seconds[m] < seconds[here]]
        nbytes = int(chunks.size[chain].max())
        return MemoryChoice(
            problem.memories[here].name,
            int(assigned.offset[row]),
            nbytes,
            begin,
            end,
            read,
            written,
            calls,
            float(seconds[here]),
            tuple(
                FasterMemory(
                    problem.memories[m].name,
                    float(seconds[m]),
                    float(seconds[here] - seconds[m]) / max(nbytes, 1),
                    self._obstacle(m, chain),
                    problem.memories[m].capacity - self._most_alive(m, begin, end),
                    self._holders(m, here, begin, end),
                )
                for m in faster
            ),
        )

    def _obstacle(self, m: int, chain: Column) -> str:
        problem, memory = self.placed.problem, self.placed.problem.memories[m]
        if not memory.writable and chain[0] < self.placed.contents.chunks:
            return "it is read-only"
        if not problem.allowed[chain, m].all():
            return "rules keep it out"
        return "" if possible(problem)[chain[0], m] else f"it has {format_bytes(memory.capacity)} in all"

    def _alive(self, m: int, begin: int, end: int) -> Column:
        """Returns the roots in a memory that are alive, with their chains, in some tick of a range."""
        chunks = self.placed.problem.chunks
        is_met = (self.placed.assigned.memory == m) & (chunks.begin < end) & (begin < chunks.end) & (chunks.size > 0)
        return distinct(chunks.chains.root[is_met])

    def _most_alive(self, m: int, begin: int, end: int) -> int:
        """Returns the most bytes that are alive in a memory in a tick of a range."""
        if m not in self._alive_in:
            self._alive_in[m] = breadths(part_of(self.placed.problem.chunks, self.placed.assigned.memory == m))
        live = self._alive_in[m]
        before = live.value[live.tick <= begin][-1:]
        return int(np.concatenate((before, live.value[(live.tick > begin) & (live.tick < end)])).max(initial=0))

    def _holders(self, m: int, here: int, begin: int, end: int) -> tuple[Holder, ...]:
        problem, roots = self.placed.problem, self._alive(m, begin, end)
        chunks = problem.chunks
        largest = roots[np.argsort(-chunks.size[roots], kind="stable")][:MOST]
        holders = []
        for root in largest.tolist():
            chain = chunks.chains.root == root
            seconds = problem.seconds[chain].sum(axis=0)
            first, last = int(chunks.begin[chain].min()), int(chunks.end[chain].max())
            saves = float(seconds[here] - seconds[m]) / int(chunks.size[root])
            holders.append(Holder(self.names[root], int(chunks.size[root]), first, last, saves))
        return tuple(holders)


def choice_lines(choice: MemoryChoice) -> Iterator[str]:
    """Yields the choice in sentences, without indent."""
    moved = f"{format_bytes(choice.read_bytes)} read, {format_bytes(choice.written_bytes)} written"
    yield (
        f"Lies in memory {choice.memory}, from byte {choice.offset} of it on: its transfers take "
        f"{format_small_seconds(choice.seconds)} there ({moved}, {counted(choice.calls, 'call')})."
    )
    for faster in choice.faster:
        saved = f"{format_small_seconds(choice.seconds - faster.seconds)} less, {_per_byte(faster.saves)}"
        if faster.obstacle:
            yield f"In {faster.memory} they would take {saved}, but {faster.obstacle}."
            continue
        yield (
            f"In {faster.memory} they would take {saved}. Where {format_bytes(choice.bytes)} are needed, "
            f"{format_bytes(faster.free_bytes)} are free there in ticks [{choice.begin}, {choice.end}), beside:"
        )
        for holder in faster.holders:
            life = f"[{holder.begin}, {holder.end})"
            saves = _per_byte(holder.saves)
            yield f"  {printable(holder.tensor, LONGEST)} ({format_bytes(holder.bytes)}, {life}), which saves {saves}"


def _per_byte(seconds: float) -> str:
    return f"{seconds * 1e9:.3f} ns a byte"
