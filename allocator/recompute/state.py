"""The state of memory while steps run: what is there, who still needs it, and when."""

import numpy as np
from attrs import define, field

from allocator.recompute.work import RecomputeProblem

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
Times = np.ndarray[tuple[int], np.dtype[np.float64]]


@define(eq=False)
class State:
    """State of a run that has come to step `here`; `alive` are bytes.

    `seen` counts the users of a chunk that have run. A step is `owed` when something that it wrote is gone and needed;
    `owing` counts the owed steps that read a chunk. What no user is to come for and no owed step reads is not needed,
    and freed. `next` is the step that needs a chunk first, itself or by way of owed ones: n where none does.
    """

    work: RecomputeProblem
    here: int = 0
    alive: int = 0
    is_here: Mask = field(init=False)
    ran: list[bool] = field(init=False)
    owed: list[bool] = field(init=False)
    seen: list[int] = field(init=False)
    owing: list[int] = field(init=False)
    next: Times = field(init=False)

    def __attrs_post_init__(self) -> None:
        chunks, steps = len(self.work.size), len(self.work)
        self.is_here, self.ran, self.owed = np.zeros(chunks, bool), [False] * steps, [False] * steps
        self.seen, self.owing = [0] * chunks, [0] * chunks
        self.next = np.array([min(u, default=steps) for u in self.work.users], np.float64)

    def is_needed(self, chunk: int) -> bool:
        """Returns whether anything is still to read a chunk."""
        return self.owing[chunk] > 0 or self.seen[chunk] < len(self.work.users[chunk])

    def dies(self, chunk: int, step: int) -> bool:
        """Returns whether nothing needs a chunk any more after the step, which reads it, has run."""
        if self.ran[step]:
            return self.owing[chunk] == int(self.owed[step]) and self.seen[chunk] == len(self.work.users[chunk])
        return not self.owing[chunk] and self.seen[chunk] + 1 == len(self.work.users[chunk])

    def run(self, step: int, written: list[int]) -> None:
        """Records that a step has run and has written the chunks `written`, which were not there."""
        again, self.ran[step] = self.ran[step], True
        for chunk in written:
            self._put(chunk, True)
        if again:
            self._review(step)
        else:
            for chunk in self.work.reads[step]:
                self.seen[chunk] += 1
                self._renew(chunk)
                self._free(chunk)
        for chunk in written:
            self._free(chunk)

    def evict(self, chunk: int) -> None:
        """Drops a chunk; nothing happens where it is not there, or nothing needs it."""
        if self.is_here[chunk] and self.is_needed(chunk):
            self._put(chunk, False)
            self._review(self.work.writer[chunk])

    def _put(self, chunk: int, here: bool) -> None:
        self.is_here[chunk] = here
        self.alive += self.work.size[chunk] if here else -self.work.size[chunk]

    def _free(self, chunk: int) -> None:
        if self.is_here[chunk] and not self.is_needed(chunk):
            self._put(chunk, False)

    def _review(self, step: int) -> None:
        """Finds out whether a step is owed, and so on up to what is there."""
        work, waiting = self.work, [step]
        while waiting:
            step = waiting.pop()
            owed = any(not self.is_here[c] and self.is_needed(c) for c in work.writes[step])
            change, self.owed[step] = int(owed) - int(self.owed[step]), owed
            for chunk in work.reads[step]:
                self.owing[chunk] += change
                self._renew(chunk)
                if change and not self.is_here[chunk]:
                    waiting.append(work.writer[chunk])
                self._free(chunk)

    def _renew(self, chunk: int) -> None:
        """Finds out when a chunk is needed next, and so on up to what is there."""
        work, waiting = self.work, [chunk]
        while waiting:
            chunk = waiting.pop()
            soonest = self._next(chunk)
            if soonest != self.next[chunk]:
                self.next[chunk] = soonest
                if not self.is_here[chunk]:
                    waiting.extend(work.reads[work.writer[chunk]])

    def _next(self, chunk: int) -> float:
        users, seen = self.work.users[chunk], self.seen[chunk]
        soonest: float = users[seen] if seen < len(users) else len(self.work)
        if self.owing[chunk]:
            for step in users[:seen]:
                if self.owed[step]:
                    gone = (self.next[c] for c in self.work.writes[step] if not self.is_here[c])
                    soonest = min(soonest, *gone, len(self.work))
        return soonest
