"""A run of the steps within a budget, in which chunks are dropped and computed again when they are needed.

Dynamic tensor rematerialization (Kirisame et al. 2021, algorithm 1), but of a run that is known beforehand: where bytes
are missing, the chunk goes for which bytes x ticks until its next use are most beside the cost of computing it again,
with all that is gone of what it is computed from (their neighbourhood, section 4.1).
"""

import math

import numpy as np
from attrs import define, field, frozen

from allocator.recompute.sequence import overwritten_bytes
from allocator.recompute.state import State
from allocator.recompute.work import NEVER, RecomputeProblem

NO_END = 2**62
"""Bytes or costs that are never reached."""
_LONGEST = 300
"""Steps that are run again for one chunk, beyond which it stays."""
_LOOKS = 64
"""How many prices are found out for one choice, at most."""


@frozen
class Manner:
    """The way in which a walk chooses.

    `around` is the part of the cost of what is gone already that counts beside a chunk's own; `staying` is the power of
    the ticks for which its bytes would be free.
    """

    around: float = 1.0
    staying: float = 1.0


@frozen(eq=False)
class Drop:
    """Chunks that go when `step` is about to run, whatever the budget is."""

    step: int
    chunks: frozenset[int]


NO_DROP = Drop(NEVER, frozenset())


def walk(
    work: RecomputeProblem, budget: int, most: int = NO_END, manner: Manner | None = None, drop: Drop = NO_DROP
) -> list[int]:
    """Returns the steps as they run, some several times. The budget is exceeded only where it cannot be kept.

    Empty where recomputing would cost more than `most`.
    """
    return _Walk(State(work), budget, most, manner or Manner()).run(drop)


@define(eq=False)
class _Walk:
    """`guess` is what a chunk costs to be had again, as far as that was found out; `locks` count the steps that are
    about to read it.
    """

    state: State
    budget: int
    most: int
    manner: Manner
    spent: int = 0
    sequence: list[int] = field(factory=list)
    locks: "np.ndarray[tuple[int], np.dtype[np.int64]]" = field(init=False)
    is_open: "np.ndarray[tuple[int], np.dtype[np.bool_]]" = field(init=False)
    guess: "np.ndarray[tuple[int], np.dtype[np.float64]]" = field(init=False)
    size: "np.ndarray[tuple[int], np.dtype[np.float64]]" = field(init=False)

    def __attrs_post_init__(self) -> None:
        work = self.state.work
        self.locks = np.zeros(len(work.size), np.int64)
        self.size = np.array(work.size, np.float64)
        self.guess = np.array([max(work.cost[w], 1) for w in work.writer], np.float64)
        self.is_open = np.array([work.until[w] != NEVER for w in work.writer])

    def run(self, drop: Drop) -> list[int]:
        state = self.state
        for step in range(len(state.work)):
            state.here = step
            if step == drop.step:
                self._drop(drop)
            self._run_with_inputs(step)
            if self.spent > self.most:
                return []
        return self.sequence

    def _drop(self, drop: Drop) -> None:
        for chunk in sorted(drop.chunks):
            if self._price(chunk) < math.inf:
                self.state.evict(chunk)

    def _run_with_inputs(self, step: int) -> None:
        """Runs a step, and in front of it the writers of those of its inputs that are gone."""
        work, state = self.state.work, self.state
        waiting = [step]
        self._lock(step, 1)
        while waiting and self.spent <= self.most:
            gone = next((c for c in work.reads[waiting[-1]] if not state.is_here[c]), NEVER)
            if gone == NEVER:
                self._run(waiting.pop())
            else:
                waiting.append(work.writer[gone])
                self._lock(waiting[-1], 1)

    def _lock(self, step: int, by: int) -> None:
        self.locks[list(self.state.work.reads[step])] += by

    def _run(self, step: int) -> None:
        state, work = self.state, self.state.work
        missing = [c for c in work.writes[step] if not state.is_here[c]]
        dying = frozenset(c for c in work.reads[step] if state.dies(c, step))
        self._make_room(sum(work.size[c] for c in missing) - overwritten_bytes(work, step, dying))
        self._lock(step, -1)
        self.spent += work.cost[step] if state.ran[step] else 0
        self.sequence.append(step)
        state.run(step, missing)
        for chunk in missing:
            self._cheapen(chunk)

    def _cheapen(self, chunk: int) -> None:
        """Lowers the prices of what is computed from a chunk, which is in memory now."""
        work = self.state.work
        for step in work.users[chunk][: self.state.seen[chunk]]:
            for written in work.writes[step]:
                self.guess[written] = max(work.cost[step], 1)

    def _make_room(self, wanted: int) -> None:
        state = self.state
        while state.alive + wanted > self.budget:
            chunk = self._cheapest()
            if chunk == NEVER:
                return
            state.evict(chunk)

    def _cheapest(self) -> int:
        """Returns the chunk that goes next; NEVER where none can. A price that was too low is computed again."""
        state = self.state
        free_for = np.maximum(state.next - state.here, 0.0)
        gain = self.size * (free_for if self.manner.staying == 1 else free_for**self.manner.staying)
        gain[~(self.is_open & state.is_here) | (self.locks > 0)] = 0.0
        previous = NEVER
        for _ in range(_LOOKS):
            score = gain / self.guess
            best = int(score.argmax())
            if not score[best] > 0:
                return NEVER
            if best == previous:
                return best
            self.guess[best] = self._price(best)
            previous = best
        return previous

    def _price(self, chunk: int) -> float:
        """Returns the cost of computing a chunk again if it goes now; infinite where that is impossible."""
        work, state = self.state.work, self.state
        first = work.writer[chunk]
        visited, waiting, total = {first}, [first], 0
        while waiting:
            step = waiting.pop()
            if work.until[step] < state.next[chunk] or len(visited) > _LONGEST:
                return math.inf
            total += work.cost[step]
            for read in work.reads[step]:
                if not state.is_here[read] and work.writer[read] not in visited:
                    visited.add(work.writer[read])
                    waiting.append(work.writer[read])
        own = work.cost[first]
        return max(own + self.manner.around * (total - own), 1.0)
