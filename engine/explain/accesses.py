"""Which operator writes and reads which bytes, and when: the facts that all explanations of a plan are made from."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from attrs import frozen

from allocator import policies
from allocator.derive import chunks as memory
from allocator.derive.overwrites import Judged, Permit, always
from allocator.derive.users import users
from allocator.steps import Program
from engine.lower.calls import Instruction, Value
from engine.lower.roles import roles_of
from engine.lower.schedule import dependences
from engine.planning.placed import PlacedPlan

LATER_STAGES = "later stages"
"""The reader at the end of a stage that is not the last one; its kind is empty."""


@frozen
class Use:
    """A read of bytes in a tick: the operator, its schema's name as `kind`, and the tensor by whose name it reads."""

    tick: int
    operator: str
    kind: str
    tensor: str

    @property
    def is_handed_over(self) -> bool:
        """True if later stages take the bytes over."""
        return not self.kind and self.operator == LATER_STAGES

    @property
    def is_fetched(self) -> bool:
        """True if the caller fetches the bytes."""
        return not self.kind and self.operator == "fetch"


@frozen(eq=False)
class Accesses:
    """A plan with its steps and the reads and writes of each value. Values are numbered as in the allocator.

    `reads` has, by value, the ticks in which it is read. `members` are the values of each chunk. `judged` has the
    verdicts on overwrites by tick, and `taken` the overwrites of the plan as (chunk, overwritten chunk, byte offset).
    `writers` is the tick in which each value (by id) is written, and `roles` has the role of each value (by id).
    """

    plan: PlacedPlan
    program: Program
    values: tuple[Value, ...]
    reads: tuple[tuple[int, ...], ...]
    members: tuple[tuple[int, ...], ...]
    judged: Mapping[int, tuple[Judged, ...]]
    taken: frozenset[tuple[int, int, int]]
    writers: Mapping[int, int]
    roles: tuple[str, ...]

    @property
    def last_tick(self) -> int:
        """The tick in which outputs are fetched."""
        return len(self.program.steps) - 1

    def name(self, chunk: int) -> str:
        """Returns the name of the tensor that a chunk was made for."""
        return self.owner(chunk).name

    def owner(self, chunk: int) -> Value:
        """Returns the value that a chunk was made for."""
        return next(self.values[v] for v in self.members[chunk] if not self.values[v].is_view)

    def written(self, chunk: int) -> int:
        """Returns the tick in which a chunk is written first; 0 where the caller feeds it."""
        return self.writers.get(self.owner(chunk).id, 0)

    def uses(self, chunk: int) -> tuple[Use, ...]:
        """Returns all reads of a chunk, by any name, in order of ticks."""
        return self._uses(self.members[chunk])

    def uses_of(self, value: int) -> tuple[Use, ...]:
        """Returns the reads of a value by its own name, in order of ticks."""
        return self._uses((value,))

    def use(self, tick: int, value: int) -> Use:
        """Returns the read of a value in a tick."""
        lowered = self.plan.lowered
        name = LATER_STAGES if lowered.hands_over and tick == self.last_tick else lowered.tick_name(tick)
        return Use(tick, name, lowered.tick_kind(tick), self.values[value].name)

    def overwriter(self, chunk: int) -> tuple[int, ...]:
        """Returns the chunk that is written over a chunk; empty where there is none."""
        return tuple(self.plan.chunks.src[self.plan.chunks.dest == chunk].tolist())

    def overwritten(self, chunk: int) -> tuple[int, ...]:
        """Returns the chunk that a chunk is written over; empty where there is none."""
        return tuple(self.plan.chunks.dest[self.plan.chunks.src == chunk].tolist())

    def instruction(self, tick: int) -> tuple[Instruction, ...]:
        """Returns the instruction that runs in a tick, in a tuple; empty where the caller feeds or fetches."""
        return self.plan.lowered.instructions[tick - 1 : tick] if tick else ()

    def _uses(self, values: Iterable[int]) -> tuple[Use, ...]:
        return tuple(self.use(tick, v) for tick, v in sorted((tick, v) for v in values for tick in self.reads[v]))


def accesses_of(plan: PlacedPlan) -> Accesses:
    """Collects the accesses of a plan in one pass over its steps."""
    program = plan.program
    reads: list[list[int]] = [[] for _ in program.sizes]
    for tick, step in enumerate(program.steps):
        for value in step.reads:
            reads[value].append(tick)
    members: list[list[int]] = [[] for _ in range(len(plan.chunks))]
    for value, chunk in enumerate(plan.chunks.chunk_of.tolist()):
        members[chunk].append(value)
    values = tuple(v for v in plan.lowered.values if v.id in plan.ids)
    verdicts = memory.judge(program, permit=_permit(plan, program))
    judged = {tick: tuple(group) for tick, group in groupby(verdicts, key=lambda j: j.step)}
    columns = (plan.chunks.src.tolist(), plan.chunks.dest.tolist(), plan.chunks.overwrite_offset.tolist())
    taken = frozenset(zip(*columns, strict=True))
    of_value, of_chunk = tuple(map(tuple, reads)), tuple(map(tuple, members))
    writers, roles = plan.lowered.writers, roles_of(plan.lowered)
    return Accesses(plan, program, values, of_value, of_chunk, judged, taken, writers, roles)


def _permit(plan: PlacedPlan, program: Program) -> Permit:
    """Returns the rule by which the plan's parallel policy permits overwrites."""
    if not plan.schedule.policy:
        return always
    policy, touched = policies.policy(plan.schedule.policy, dependences(plan.lowered)), users(program)
    return lambda chunk, tick: policy.may_overwrite(touched.others(chunk, tick), tick)
