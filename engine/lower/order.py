"""In which order calls run: as they were added, depth first, or so that few bytes are alive at once.

A graph is ordered after it is lowered, so that its tensors, views, copies and workspaces are those of the plan whatever
the order is; before anything is nested in other values.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from attrs import evolve, frozen

from allocator.ordering.result import NO_LIMITS, Limits, OrderResult, as_given, followed
from allocator.ordering.search import lowest
from allocator.ordering.step_graph import StepGraph, step_graph
from allocator.ordering.walk import depth_first
from allocator.steps import only_required
from engine.lower.calls import Call, Lowered, Stage, arena_ids
from engine.lower.schedule import dependences
from engine.lower.steps import to_program
from engine.text.errors import OptionError

GIVEN, MEMORY = "given", "memory"


@frozen
class Ordering:
    """What an order costs: most bytes alive at once in the given order, in the chosen one, and in any.

    No order of these calls has fewer than `bound` bytes alive. Bytes are counted without regard to addresses and
    alignment, and before what `before` says, such as "anything is nested": nothing where the plan does no such thing in
    any order.
    """

    order: str
    given_bytes: int
    chosen_bytes: int
    bound: int
    before: str = ""

    @property
    def is_proved(self) -> bool:
        """Whether no order has fewer bytes alive at once, as they are counted here."""
        return self.chosen_bytes == self.bound

    @property
    def claim(self) -> str:
        """What `bound` says, with the condition under which it does."""
        return "no order has fewer bytes alive" + (f" before {self.before}" if self.before else "")

    def as_given(self) -> "Ordering":
        """The same where the given order was kept after all."""
        return evolve(self, order=GIVEN, chosen_bytes=self.given_bytes)


@frozen(eq=False)
class Arranged:
    """Calls in the order that was chosen, and what that costs."""

    lowered: Lowered
    ordering: Ordering


def _as_given(net: StepGraph, _: Limits) -> OrderResult:
    return as_given(net)


def _depth_first(net: StepGraph, _: Limits) -> OrderResult:
    return followed(net, depth_first(net))


ORDERS: Mapping[str, Callable[[StepGraph, Limits], OrderResult]] = MappingProxyType(
    {GIVEN: _as_given, "depth_first": _depth_first, MEMORY: lowest}
)
"""By name. "memory" searches for the order in which fewest bytes are alive at once."""


def check_order(name: str) -> None:
    """Raises OptionError for an order that there is not."""
    if name not in ORDERS:
        raise OptionError(f"order {name!r} is unknown; one of: {', '.join(ORDERS)}")


def network_of(lowered: Lowered, overwrite: bool = True) -> StepGraph:
    """What there is to order; `overwrite=False` counts bytes as if no operator wrote over its input."""
    ids = arena_ids(lowered)
    program = to_program(lowered, ids)
    return step_graph(program if overwrite else only_required(program), dependences(lowered))


def arrange(lowered: Lowered, order: str, *, overwrite: bool = True, limits: Limits = NO_LIMITS) -> Arranged:
    """The calls in that order; the same object where they stand in it. Deterministic unless the limits name a time."""
    net = network_of(lowered, overwrite)
    found = ORDERS[order](net, limits)
    ticks = net.step[found.order].tolist()
    chosen = lowered if ticks == net.step.tolist() else in_order(lowered, ticks)
    return Arranged(chosen, Ordering(order, found.initial_peak, found.peak, found.bound))


def in_order(lowered: Lowered, ticks: Sequence[int]) -> Lowered:
    """The calls of these ticks one after the other; an alias follows what it looks at."""
    writers, owner = lowered.writers, [v.owner for v in lowered.values]
    place = {0: -1} | {tick: i for i, tick in enumerate(ticks)}

    def key(stage: Stage) -> int:
        return place[stage.tick if isinstance(stage, Call) else writers.get(owner[stage.inputs[0]], 0)]

    return _in_turn(lowered, sorted(lowered.stages, key=key))


def in_order_of(lowered: Lowered, other: Lowered) -> Lowered:
    """The stages in the order of those of the same names in another lowering; as they are where there are others."""
    place = {stage.name: i for i, stage in enumerate(other.stages)}
    if place.keys() != {stage.name for stage in lowered.stages}:
        return lowered
    return _in_turn(lowered, sorted(lowered.stages, key=lambda stage: place[stage.name]))


def _in_turn(lowered: Lowered, stages: Sequence[Stage]) -> Lowered:
    return evolve(lowered, stages=tuple(evolve(s, tick=i) for i, s in enumerate(stages, 1)))
