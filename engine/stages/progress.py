"""How far a network has come: what is left to run, what is known, what is alive and where."""

from collections.abc import Mapping

from attrs import frozen

from engine.facts import Facts
from engine.graph import Operator
from engine.stages.template import Task

NOWHERE = -1
"""Offset of a tensor that is still to be fed."""


@frozen(eq=False)
class Progress:
    """State between two stages.

    `alive` are offsets in the arena by the name of a tensor that has bytes of its own; `views` the operators that make
    a tensor out of another's bytes, by its name. The arena has `top` bytes; no chunk may lie across one of the `seams`.
    """

    tasks: tuple[Task, ...]
    facts: Facts
    alive: Mapping[str, int]
    views: Mapping[str, Operator]
    top: int
    seams: tuple[int, ...]
