"""The order of calls: as they were added, depth first, or so that few bytes are alive at once.

A graph is ordered after lowering and before nesting, so that every order has the tensors, views, copies and workspaces
of the plan.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from attrs import evolve, frozen

from allocator.ordering.result import NO_LIMITS, Limits, OrderResult, as_given, followed
from allocator.ordering.search import lowest
from allocator.ordering.step_graph import StepGraph, depth_first, step_graph
from allocator.steps import only_required
from engine import searches
from engine.lower.calls import Call, Instruction, Lowered, arena_ids
from engine.lower.schedule import dependences
from engine.lower.steps import to_program
from engine.searches.in_use import current_place
from engine.text.errors import OptionError

GIVEN, MEMORY = "given", "memory"


@frozen
class Ordering:
    """The cost of an order: the most bytes alive at once in the given order and in the chosen one.

    No order of these calls has fewer than `bound` bytes alive. The bytes are counted without addresses and alignment,
    and before the effects that `before` names, such as "anything is nested"; it is "" where the plan has no such
    effect.
    """

    order: str
    given_bytes: int
    chosen_bytes: int
    bound: int
    before: str = ""

    @property
    def is_proved(self) -> bool:
        """True if no order has fewer bytes alive at once, in this count."""
        return self.chosen_bytes == self.bound

    @property
    def claim(self) -> str:
        """The statement that `bound` proves, with its condition."""
        return "no order has fewer bytes alive" + (f" before {self.before}" if self.before else "")

    def as_given(self) -> "Ordering":
        """Returns the cost where the given order was kept in the end."""
        return evolve(self, order=GIVEN, chosen_bytes=self.given_bytes)


@frozen(eq=False)
class Arranged:
    """Calls in the chosen order, and the cost of that order."""

    lowered: Lowered
    ordering: Ordering


def _as_given(net: StepGraph, _: Limits) -> OrderResult:
    return as_given(net)


def _depth_first(net: StepGraph, _: Limits) -> OrderResult:
    return followed(net, depth_first(net))


def _memory(net: StepGraph, limits: Limits) -> OrderResult:
    place = current_place()
    return lowest(net, limits) if place is None else searches.lowest_shared(net, limits, place)


ORDERS: Mapping[str, Callable[[StepGraph, Limits], OrderResult]] = MappingProxyType(
    {GIVEN: _as_given, "depth_first": _depth_first, MEMORY: _memory}
)
"""The functions that order steps, by name. "memory" searches for the order with the fewest bytes alive at once."""


def check_order(name: str) -> None:
    """Raises OptionError for an unknown order."""
    if name not in ORDERS:
        raise OptionError(f"order {name!r} is unknown; one of: {', '.join(ORDERS)}")


def network_of(lowered: Lowered, overwrite: bool = True) -> StepGraph:
    """Returns the calls to order as a network.

    `overwrite=False` counts bytes as if no operator wrote over its input.
    """
    ids = arena_ids(lowered)
    program = to_program(lowered, ids)
    return step_graph(program if overwrite else only_required(program), dependences(lowered))


def arrange(lowered: Lowered, order: str, *, overwrite: bool = True, limits: Limits = NO_LIMITS) -> Arranged:
    """Returns the calls in that order, or the same object where they stand in it.

    Deterministic unless the limits set a time.
    """
    net = network_of(lowered, overwrite)
    result = ORDERS[order](net, limits)
    ticks = net.step[result.order].tolist()
    chosen = lowered if ticks == net.step.tolist() else in_order(lowered, ticks)
    return Arranged(chosen, Ordering(order, result.initial_peak, result.peak, result.bound))


def in_order(lowered: Lowered, ticks: Sequence[int]) -> Lowered:
    """Returns the calls of these ticks one after the other; an alias follows the value that it views."""
    writers, owner = lowered.writers, [v.owner for v in lowered.values]
    place = {0: -1} | {tick: i for i, tick in enumerate(ticks)}

    def key(instruction: Instruction) -> int:
        return place[
            instruction.tick if isinstance(instruction, Call) else writers.get(owner[instruction.inputs[0]], 0)
        ]

    return _in_turn(lowered, sorted(lowered.instructions, key=key))


def in_order_of(lowered: Lowered, other: Lowered) -> Lowered:
    """Returns the instructions in the order of another lowering, by name; unchanged where the names differ."""
    place = {instruction.name: i for i, instruction in enumerate(other.instructions)}
    if place.keys() != {instruction.name for instruction in lowered.instructions}:
        return lowered
    return _in_turn(lowered, sorted(lowered.instructions, key=lambda instruction: place[instruction.name]))


def _in_turn(lowered: Lowered, instructions: Sequence[Instruction]) -> Lowered:
    return evolve(lowered, instructions=tuple(s.at(i) for i, s in enumerate(instructions, 1)))
