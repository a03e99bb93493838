"""The chunks of a trace in the free-list simulation of push-down, step by step."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from allocator.problem import Column, Problem
from allocator.solvers.base import arena_bytes
from allocator.solvers.free_list import Event, FreeList, push_down, simulate
from allocator.solvers.megengine import PUSHDOWN, PUSHDOWN_SORTED, Pushdown
from engine.trace.to_problem import problem_of
from engine.trace.trace import ARRIVALS, Trace

Memory = tuple[tuple[int, int], ...]
"""The chunk (or NO_CHUNK) and the bytes of each block, from low to high."""


@frozen(eq=False)
class Simulation:
    """What the free list does with the chunks of a problem in the order of a strategy. `tensors` has their names."""

    model: str
    strategy: Pushdown
    problem: Problem
    lower_bound: int
    tensors: Mapping[int, str]

    def steps(self) -> Iterator[tuple[Event, Memory]]:
        """Yields each event, and the memory queue after it."""
        memory = FreeList()
        for event in self._events(memory):
            yield event, memory.memory()

    def offsets(self) -> Column:
        """Returns the offsets that the events lead to."""
        return push_down(self.problem, self._events(FreeList()))

    def arena_bytes(self) -> int:
        """Returns the arena that the offsets need."""
        return arena_bytes(self.problem, self.offsets())

    def _events(self, memory: FreeList) -> Iterator[Event]:
        return simulate(self.strategy.timeline(self.problem), memory)


def simulation_of(trace: Trace) -> Simulation:
    """Returns the simulation for the chunks of a static trace: that of its strategy, or MegEngine's.

    Raises EngineError for a trace of several stages or on a heap.
    """
    problem, plan = problem_of(trace)
    strategy = PUSHDOWN_SORTED if plan.strategy == PUSHDOWN_SORTED.name else PUSHDOWN
    tensors = {event.chunk: event.tensor for event in trace if event.kind in ARRIVALS}
    return Simulation(trace.facts.model, strategy, problem, plan.lower_bound, tensors)
