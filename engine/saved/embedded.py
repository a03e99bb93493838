"""A plan that is stored in a model: the identity of its calls, and the offset of each chunk."""

from typing import Any

from attrs import frozen

from allocator.problem import Bound
from engine.lower.memories import memory_text
from engine.lower.target import Target
from engine.planning.options import FIELDS, Options, about
from engine.planning.placed import PlacedPlan
from engine.saved.fingerprint import Identity, digest_of_problem, identity_of

SHAPING = tuple(name for name in FIELDS if about(name).decides_problem)
"""The options that decide what there is to place; the others only say how and how long addresses are searched for."""
FILE_KEYS = {name: about(name).file_key or name for name in SHAPING}
"""The keys under which files have these options: the names that they had when the format was made."""


@frozen
class EmbeddedPlan:
    """A saved plan. `options` are those of `SHAPING`; `order` has the ticks of calls that are not in the given order.

    `memories` has the memory of each chunk, and of each constant behind them; empty where there is one arena.
    `weights` has the first byte of each of these constants, counted from that of its memory.
    Where tensors change their memory, `moves` has the copies (see `engine.lower.copied`), and `unmoved_seconds` what
    transfers take without them; `read_until` has the tick up to which each copy of a constant is read, 0 for others.
    `computed` has the numbers of those that are no copies, but computed again.
    `left_out` has the groups of passes that did not run, of those that the option `optimise` asks for.
    Where operators run again, `again` has the names of all that runs, and the arena bytes without that (see
    `engine.planning.placed`). Row i of `offsets` has the name of the value of chunk i, and its first byte. `memory`
    is the digest of the problem. `bound` is believed where its witness adds up to it. `source` says where the plan was
    read. If `required`, no other plan is made in its place. Sizes are bytes.
    """

    identity: Identity
    memory: str
    options: tuple[tuple[str, Any], ...]
    arena_bytes: int
    bound: Bound
    strategy: str
    order: tuple[int, ...]
    again: tuple[tuple[tuple[str, ...], int], ...]
    offsets: tuple[tuple[str, int], ...]
    left_out: tuple[str, ...] = ()
    memories: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    moves: tuple[tuple[str, int, int], ...] = ()
    read_until: tuple[int, ...] = ()
    computed: tuple[int, ...] = ()
    unmoved_seconds: float = 0.0
    source: str = "the plan"
    required: bool = False


def embedded_plan(plan: PlacedPlan, order: tuple[int, ...]) -> EmbeddedPlan:
    """Returns a plan, whose calls stand in that order, as data."""
    owners = plan.owners(plan.chunks)
    return EmbeddedPlan(
        identity=identity_of(plan.lowered),
        memory=digest_of_problem(plan.problem),
        options=shaping(plan.options),
        arena_bytes=plan.arena_bytes,
        bound=_added_up(plan),
        strategy=plan.plan.strategy,
        order=order,
        again=tuple((again.sequence, again.plain_bytes) for again in plan.recomputed),
        left_out=tuple(name for done in plan.optimisation for name in done.left_out),
        memories=tuple(m for placed in plan.memories for m in placed.assigned.memory.tolist()),
        weights=tuple(
            at for placed in plan.memories for at in placed.assigned.offset[placed.contents.chunks :].tolist()
        ),
        moves=tuple((copied.tensor, copied.after, copied.until) for moved in plan.moved for copied in moved.copies),
        read_until=tuple(copied.read_until for moved in plan.moved for copied in moved.copies),
        computed=tuple(k for moved in plan.moved for k, copied in enumerate(moved.copies) if copied.again),
        unmoved_seconds=sum(moved.plain_seconds for moved in plan.moved),
        offsets=tuple((owners[chunk].name, offset) for chunk, offset in enumerate(plan.plan.offset.tolist())),
    )


def _added_up(plan: PlacedPlan) -> Bound:
    """Returns the bound of a plan with its reason and witness, where they are of the problem that a reader derives.

    Where operators may run at once, they are of the problem that the policy made of it.
    """
    bound = plan.plan.bound
    return bound if bound.witness and not plan.schedule.policy else Bound(bound.nbytes)


def shaping(options: Options) -> tuple[tuple[str, Any], ...]:
    """Returns those of the options that decide the problem, as plain data; a target as its text."""
    return tuple((name, _plain(name, getattr(options, name))) for name in SHAPING)


def _plain(name: str, value: Any) -> Any:
    """Returns the value of an option as a file has it: a target and memories as texts."""
    if isinstance(value, Target):
        return value.text
    return tuple(map(memory_text, value)) if name == "memories" else value
