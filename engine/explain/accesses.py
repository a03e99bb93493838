"""Who writes and reads what, and when: what all sentences about a plan are made from."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from attrs import frozen

from allocator import policies
from allocator.derive import chunks as memory
from allocator.derive.overwrites import Judged, Permit, always
from allocator.derive.users import users
from allocator.steps import Program
from engine.lower.calls import Stage, Value
from engine.lower.schedule import dependences
from engine.planning.placed import PlacedPlan

LATER_STAGES = "later stages"
"""What reads at the end of a stage that is not the last; it is of no kind."""


@frozen
class Use:
    """An operator that reads bytes, by the name of the tensor by which it knows them; `kind` is its schema's name."""

    tick: int
    operator: str
    kind: str
    tensor: str

    @property
    def is_handed(self) -> bool:
        """Whether later stages take the bytes over."""
        return not self.kind and self.operator == LATER_STAGES

    @property
    def is_fetched(self) -> bool:
        """Whether the caller fetches the bytes."""
        return not self.kind and self.operator == "fetch"


@frozen(eq=False)
class Accesses:
    """A plan with its steps. Numbers of values are the allocator's; `reads` has the ticks in which each is read.

    `members` are the values of each chunk; `judged` the verdicts on overwrites by tick, and `taken` those that the plan
    has, as (chunk, chunk that it overwrites, byte of that). `writers`: in which tick each value (by id) is written.
    """

    plan: PlacedPlan
    program: Program
    values: tuple[Value, ...]
    reads: tuple[tuple[int, ...], ...]
    members: tuple[tuple[int, ...], ...]
    judged: Mapping[int, tuple[Judged, ...]]
    taken: frozenset[tuple[int, int, int]]
    writers: Mapping[int, int]

    @property
    def last_tick(self) -> int:
        """In which outputs are fetched."""
        return len(self.program.steps) - 1

    def name(self, chunk: int) -> str:
        """The tensor that a chunk was made for."""
        return self.owner(chunk).name

    def owner(self, chunk: int) -> Value:
        """The value that a chunk was made for."""
        return next(self.values[v] for v in self.members[chunk] if not self.values[v].is_view)

    def written(self, chunk: int) -> int:
        """The tick in which a chunk is written first; 0 where it is fed."""
        return self.writers.get(self.owner(chunk).id, 0)

    def uses(self, chunk: int) -> tuple[Use, ...]:
        """All reads of a chunk, by any name, in order."""
        return self._uses(self.members[chunk])

    def uses_of(self, value: int) -> tuple[Use, ...]:
        """The reads of a value by its own name, in order."""
        return self._uses((value,))

    def use(self, tick: int, value: int) -> Use:
        """A value in a tick."""
        lowered = self.plan.lowered
        name = LATER_STAGES if lowered.hands_over and tick == self.last_tick else lowered.tick_name(tick)
        return Use(tick, name, lowered.tick_kind(tick), self.values[value].name)

    def taker(self, chunk: int) -> tuple[int, ...]:
        """The chunk that is written over a chunk, if there is one."""
        return tuple(self.plan.chunks.src[self.plan.chunks.dest == chunk].tolist())

    def giver(self, chunk: int) -> tuple[int, ...]:
        """The chunk that a chunk is written over, if there is one."""
        return tuple(self.plan.chunks.dest[self.plan.chunks.src == chunk].tolist())

    def stage(self, tick: int) -> tuple[Stage, ...]:
        """What runs in a tick; nothing where the caller feeds and fetches."""
        return self.plan.lowered.stages[tick - 1 : tick] if tick else ()

    def _uses(self, values: Iterable[int]) -> tuple[Use, ...]:
        found = sorted((tick, v) for v in values for tick in self.reads[v])
        return tuple(self.use(tick, v) for tick, v in found)


def accesses_of(plan: PlacedPlan) -> Accesses:
    """Looks at each step of a plan once."""
    program = plan.program
    reads: list[list[int]] = [[] for _ in program.sizes]
    for tick, step in enumerate(program.steps):
        for value in step.reads:
            reads[value].append(tick)
    members: list[list[int]] = [[] for _ in range(len(plan.chunks))]
    for value, chunk in enumerate(plan.chunks.chunk_of.tolist()):
        members[chunk].append(value)
    values = tuple(v for v in plan.lowered.values if v.id in plan.ids)
    found = memory.judge(program, permit=_permit(plan, program))
    judged = {tick: tuple(group) for tick, group in groupby(found, key=lambda j: j.step)}
    columns = (plan.chunks.src.tolist(), plan.chunks.dest.tolist(), plan.chunks.overwrite_offset.tolist())
    taken = frozenset(zip(*columns, strict=True))
    of_value, of_chunk = tuple(map(tuple, reads)), tuple(map(tuple, members))
    return Accesses(plan, program, values, of_value, of_chunk, judged, taken, plan.lowered.writers)


def _permit(plan: PlacedPlan, program: Program) -> Permit:
    """What the policy of a plan says to overwrites."""
    if not plan.schedule.policy:
        return always
    policy, touched = policies.policy(plan.schedule.policy, dependences(plan.lowered)), users(program)
    return lambda chunk, tick: policy.may_overwrite(touched.others(chunk, tick), tick)
