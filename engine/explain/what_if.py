"""Other ways to plan, each measured."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from engine.planning.placed import PlacedPlan


@frozen(eq=False)
class Alternative:
    """`what` is done otherwise, on the command line by `how`; the arena then has `arena_bytes`, `saves` fewer than now.

    Less than 0: more bytes are needed. `note` is what it costs or proves. `options` are those of `engine.make_plan`
    that are other ones; or the level of `engine.optimise`, as "optimise".
    """

    what: str
    how: str
    options: Mapping[str, Any]
    arena_bytes: int
    saves: int
    note: str


@frozen(eq=False)
class Alternatives:
    """What was tried, in the order of `what`; `left_out` says what was not, and why."""

    tried: tuple[Alternative, ...] = ()
    left_out: tuple[str, ...] = ()


FindAlternatives = Callable[[PlacedPlan], Alternatives]
"""Plans the same network in other ways."""


def no_alternatives(_: PlacedPlan) -> Alternatives:
    """Of a stage, of a plan for many lengths, of a body of control flow."""
    return Alternatives((), ("other ways to plan, which takes a whole network whose sizes are known",))
