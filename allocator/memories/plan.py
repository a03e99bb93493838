"""A plan for several memories: where each chunk lies, what that costs, and what is proved about it."""

from enum import StrEnum

from attrs import field, frozen

from allocator.memories.memory import Memory
from allocator.problem import Column, Plan, Status, column

NOWHERE = -1
"""Memory and offset of each chunk, where no plan was found."""
CLOSE = 1e-9
"""A cost is that of the bound if it is no larger by this part of it: both are sums of floating-point numbers."""


class BaselineName(StrEnum):
    """What a plan is compared with; all get their addresses from the same planner."""

    SLOWEST = "all in the slowest"
    """Each chunk lies where it costs most, among the memories that have room."""
    FIRST_COME = "first come, first served"
    """Each chunk, in the order in which lifetimes begin, lies where it costs least, among those that have room."""
    DENSITY = "lifetime density"
    """The same, in the order of seconds saved for each byte and tick of a lifetime."""


@frozen
class Baseline:
    """What a simple way to assign memories costs, in seconds; infinity where it finds no place for some chunk."""

    name: BaselineName
    cost: float


@frozen(eq=False)
class MemoryUse:
    """What one memory holds: `chunks`, and their offsets in the same order in `plan`, with arena and bound in bytes.

    `peak`: the most bytes alive in it at once. `cost`: the seconds of transfers of its chunks.
    """

    memory: Memory
    chunks: Column = field(converter=column)
    plan: Plan
    peak: int
    cost: float


@frozen
class Shortage:
    """A proof that no plan exists: chunks of `nbytes` bytes are alive in `tick`, and can lie in `memories` alone.

    `memories` are indices; together they have `capacity` bytes, which are fewer. No memory: `chunks` can lie in none.
    """

    tick: int
    memories: tuple[int, ...]
    chunks: tuple[int, ...]
    nbytes: int
    capacity: int


@frozen(eq=False)
class MemoryPlan:
    """The memory (an index) and the offset (in bytes) of each chunk; both are NOWHERE where no plan was found.

    `cost`: the seconds of all transfers, infinity without a plan. `bound`: no plan costs less; infinity where none
    exists. `uses`: what each memory holds, in the order of memories; empty without a plan. `status`: OPTIMAL where cost
    and bound meet, FEASIBLE for another plan, INFEASIBLE where it is proved that there is none, with the `reason`,
    UNKNOWN where none was found. `shortages` has the proof of the reason, if it can be added up; else a search proved
    it. `strategy` says what made the plan.
    """

    memory: Column = field(converter=column)
    offset: Column = field(converter=column)
    uses: tuple[MemoryUse, ...]
    cost: float
    bound: float
    status: Status
    strategy: str
    baselines: tuple[Baseline, ...] = ()
    reason: str = ""
    shortages: tuple[Shortage, ...] = ()

    @property
    def has_plan(self) -> bool:
        """Returns whether each chunk has its place."""
        return self.status in {Status.OPTIMAL, Status.FEASIBLE}

    @property
    def gap(self) -> float:
        """Returns the part of the cost by which it may be too large at most; 0 if nothing costs anything."""
        return self.gap_at(self.cost)

    def gap_at(self, cost: float) -> float:
        """Returns the gap if the plan costs so much, with what its memories do not say, such as waits for copies."""
        return max(0.0, 1 - self.bound / cost) if self.has_plan and cost > 0 else 0.0

    def status_at(self, cost: float) -> Status:
        """Returns the status if the plan costs so much."""
        return self.status if cost <= self.cost * (1 + CLOSE) else Status.FEASIBLE
