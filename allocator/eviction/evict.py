"""A run by reference counting on a heap with a budget, in which chunks are evicted and computed again.

What is decided depends on the program, its costs and sizes alone. So the run is simulated once, and gives a schedule
that an executor follows as often as it likes.
"""

from array import array
from collections.abc import Iterator
from enum import IntEnum

import numpy as np
from attrs import define, field, frozen

from allocator.errors import OutOfMemoryError, PlanError, TooMuchWorkError, UnsupportedProblemError
from allocator.eviction.chunk_graph import ChunkGraph, ChunkStates, chunk_graph, reached, states_of
from allocator.eviction.heuristics import Chooser, heuristic
from allocator.heaps import heap_named
from allocator.heaps.server import Server
from allocator.recompute.work import NEVER, RecomputeProblem

MOST_WORK = 10
"""A run is given up whose work is more than so many times that of a run without a budget: it computes the same things
again and again, and may not end."""


class Act(IntEnum):
    """What happens to a chunk, or which step runs. One that is evicted ends although somebody still reads it."""

    BEGIN = 0
    RUN = 1
    END = 2
    EVICT = 3


@frozen(eq=False)
class Eviction:
    """What came of a run. `acts` are (act, chunk or step, address of a chunk that begins), in order.

    `work` is the cost of all steps once, and `extra` that of all further runs of steps, of which there were `reruns`.
    A chunk that overwrites another has no acts of its own until it ends.
    """

    heap: str
    work: int
    extra: int
    reruns: int
    evictions: int
    peak_in_use: int
    peak_reserved: int
    _acts: "array[int]" = field(repr=False)

    @property
    def acts(self) -> Iterator[tuple[Act, int, int]]:
        """Yields what happens, in order."""
        numbers = iter(self._acts)
        for act, one, address in zip(numbers, numbers, numbers, strict=True):
            yield Act(act), one, address

    @property
    def slowdown(self) -> float:
        """Returns all work, as a multiple of that of a run without a budget."""
        return (self.work + self.extra) / max(self.work, 1)


def evict(work: RecomputeProblem, budget: int, name: str, heap: str) -> Eviction:
    """Runs steps on a heap that may reserve `budget` bytes, and evicts as a heuristic says where it has no room.

    Nothing is written over another chunk but where a step of `work` may; derive it with `only_required`. What is fed
    and what is fetched is never evicted; what is fed leaves the heap after its last reader, once nothing that is
    missing can be computed only from it. Raises OutOfMemoryError where nothing more can be evicted, TooMuchWorkError
    beyond MOST_WORK, UnknownHeapError, UnknownHeuristicError, UnsupportedProblemError where a heuristic asks for the
    addresses of a heap that has none.
    """
    chosen, model, graph = heuristic(name), heap_named(heap), chunk_graph(work)
    server = model.serve(work.sizes, budget)
    if chosen.window and not server.knows_addresses:
        raise UnsupportedProblemError(f"{name} chooses by address, and the heap {heap} has none")
    never = {c for c, w in enumerate(work.writer) if w == NEVER or work.until[w] == NEVER or not work.size[c]}
    states = states_of(work, never | set(work.reads[-1]))
    near = chosen.neighbourhood(graph, states)
    chooser = Chooser(chosen, states, work.sizes.astype(np.float64), near)
    run = _Run(work, budget, model.name, server, graph, states, chooser)
    for step in range(len(work)):
        run.step(step)
    return run.result()


@define(eq=False)
class _Frame:
    """A step that waits for its inputs: the next of them, and what is locked for it."""

    step: int
    coming: Iterator[int]
    locked: list[int] = field(factory=list)


@define(eq=False)
class _Run:
    """`owner` has the chunk whose block a chunk is in; `idle` the fixed chunks that nobody reads any more."""

    work: RecomputeProblem
    budget: int
    name: str
    heap: Server
    graph: ChunkGraph
    states: ChunkStates
    chooser: Chooser
    acts: "array[int]" = field(factory=lambda: array("q"))
    owner: dict[int, int] = field(factory=dict)
    idle: dict[int, None] = field(factory=dict)
    lost: set[int] = field(factory=set)
    clock: int = 0
    once: int = 0
    reruns: int = 0
    evictions: int = 0
    peak_in_use: int = 0
    peak_reserved: int = 0
    now: int = 0
    most_work: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.most_work = MOST_WORK * sum(self.work.cost)

    def result(self) -> Eviction:
        return Eviction(
            self.name,
            self.once,
            self.clock - self.once,
            self.reruns,
            self.evictions,
            self.peak_in_use,
            self.peak_reserved,
            self.acts,
        )

    def step(self, step: int) -> None:
        """Runs a step for the first time, with all that it needs."""
        self.now = step
        saved = self._save_from(step)
        self._compute(step)
        self.once += self.work.cost[step]
        for chunk in saved:
            self._unlock(chunk)
        for overwrite in self.work.overwrites[step]:
            self._lose(overwrite.src)

    def _save_from(self, step: int) -> list[int]:
        """Computes all that is missing and cannot be computed once the step has overwritten what it must; locks it.

        What is resident and depends on that, too, is evicted no more.
        """
        states, saved = self.states, list[int]()
        for overwrite in self.work.overwrites[step]:
            resident, missing = states.frontier(overwrite.src, self.graph)
            states.fixed[resident] = True
            saved += missing
        for chunk in saved:
            states.locks[chunk] += 1
        for chunk in saved:
            if not states.resident[chunk]:
                self._compute(self.work.writer[chunk])
        return saved

    def _compute(self, step: int) -> None:
        """Runs a step, and before it, depth first, the steps whose outputs it reads and that are not there."""
        stack = [self._frame(step)]
        while stack:
            frame = stack[-1]
            chunk = next(frame.coming, None)
            if chunk is None:
                self._run(frame)
                stack.pop()
                continue
            self._lock(chunk, frame)
            if not self.states.resident[chunk]:
                if self.states.fixed[chunk]:
                    raise PlanError(f"chunk {chunk} is read in step {frame.step}, and cannot be computed again")
                stack.append(self._frame(self.work.writer[chunk]))

    def _frame(self, step: int) -> _Frame:
        return _Frame(step, iter(self.work.reads[step]))

    def _run(self, frame: _Frame) -> None:
        step, states = frame.step, self.states
        writes, is_first = self.work.writes[step], step == self.now
        for chunk in writes:
            self._lock(chunk, frame)
        over = {o.out: o.src for o in self.work.overwrites[step]}
        for chunk in writes:
            if not states.resident[chunk]:
                self._begin(chunk, over.get(chunk, chunk))
        self._act(Act.RUN, step)
        self.clock += self.work.cost[step]
        self.reruns += not is_first
        if self.clock > self.most_work:
            raise TooMuchWorkError(
                f"{self.name} with {self.budget} bytes computes the same again and again: more than {MOST_WORK} times "
                "the work of a run without a budget"
            )
        for chunk in self.work.reads[step]:
            states.pending[chunk] -= is_first
        for chunk in frame.locked:
            states.touched[chunk] = self.clock
            self._unlock(chunk)

    def _lock(self, chunk: int, frame: _Frame) -> None:
        self.states.locks[chunk] += 1
        frame.locked.append(chunk)

    def _unlock(self, chunk: int) -> None:
        """Lets go of a chunk, which leaves the heap where nobody reads it any more."""
        states = self.states
        states.locks[chunk] -= 1
        if states.pending[chunk] or states.locks[chunk] or not states.resident[chunk]:
            return
        if states.fixed[chunk] and self.graph.children[chunk]:
            self.idle[chunk] = None
        else:
            self._end(chunk)

    def _begin(self, chunk: int, source: int) -> None:
        """Gives a chunk bytes: its own, or those of the chunk that it overwrites, where that is another one."""
        states = self.states
        if source == chunk:
            self._alloc(chunk)
            self._act(Act.BEGIN, chunk, self.heap.address(chunk))
        self.owner[chunk] = self.owner.pop(source, chunk)
        states.resident[source] = False
        is_back, states.computed[chunk], states.resident[chunk] = bool(states.computed[chunk]), True, True
        states.missing.discard(chunk)
        if is_back and self.work.users[chunk]:
            self.chooser.neighbourhood.returned(chunk)

    def _alloc(self, chunk: int) -> None:
        while not self.heap.alloc(chunk):
            if self._end_idle():
                continue
            victims = self.chooser.choose(self.clock, self.heap, chunk)
            if not victims:
                raise self._out_of_memory(chunk)
            for victim in victims:
                self.states.missing.add(victim)
                self._end(victim, Act.EVICT)
            self.evictions += len(victims)
        self.peak_in_use = max(self.peak_in_use, self.heap.in_use)
        self.peak_reserved = max(self.peak_reserved, self.heap.reserved)

    def _end(self, chunk: int, act: Act = Act.END) -> None:
        """Takes a chunk out of the heap."""
        self._act(act, chunk)
        self.states.resident[chunk] = False
        self.heap.free(self.owner.pop(chunk))
        if self.work.users[chunk]:  # else it is a workspace
            self.chooser.neighbourhood.left(chunk)

    def _end_idle(self) -> bool:
        """Takes a chunk out that cannot be computed again, if nobody reads it, not even to compute others again."""
        for chunk in self.idle:
            if not self.states.locks[chunk] and not self._is_needed(chunk):
                del self.idle[chunk]
                self._end(chunk)
                self._lose(chunk)
                return True
        return False

    def _is_needed(self, chunk: int) -> bool:
        return bool(self.states.missing and self.states.frontier(chunk, self.graph)[1])

    def _lose(self, chunk: int) -> None:
        """Notes that a chunk is gone for good, so that its children cannot be computed again."""
        states = self.states
        met = reached(chunk, self.graph.children, lambda child: states.is_out(child) and child not in self.lost)
        self.lost |= {chunk, *filter(states.is_out, met)}
        for child in met:
            states.fixed[child] |= states.computed[child]

    def _act(self, act: Act, one: int, address: int = 0) -> None:
        self.acts.extend((act, one, address))

    def _out_of_memory(self, chunk: int) -> OutOfMemoryError:
        run_sizes = [size for run in self.heap.runs(chunk) for one, size in run if one < 0]
        return OutOfMemoryError(
            self.name,
            self.work.size[chunk],
            event=self.now,
            in_use=self.heap.in_use,
            reserved=self.heap.reserved,
            largest_free=max(run_sizes, default=0),
            capacity=self.budget,
        )
