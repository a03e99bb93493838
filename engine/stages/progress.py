"""How far a network has come: what is left to run, what is known, what is alive and where."""

from collections.abc import Mapping

from attrs import frozen

from engine.graph.bindings import Facts
from engine.graph.var import Var
from engine.stages.task import Late, Task, Template
from ops.schema.schema import OpSchema, Signature
from ops.tensor.spec import Shape

NOWHERE = -1
"""Offset of a tensor that is still to be fed."""


@frozen(eq=False)
class Held:
    """A tensor that is alive, with bytes of its own from `offset` on."""

    offset: int
    shape: Shape


@frozen(eq=False)
class Made:
    """An operator as it was signed with numbers; a later stage makes views by it once more."""

    name: str
    schema: OpSchema
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    signature: Signature


@frozen(eq=False)
class Progress:
    """State between two stages.

    `alive` has what lies in the arena, `views` what looks at it; `keyed` the vars that facts know by a key. The arena
    has `top` bytes; no chunk may lie across one of the `seams`.
    """

    tasks: tuple[Task | Late, ...]
    facts: Facts
    alive: Mapping[Var, Held]
    views: Mapping[Var, Made]
    keyed: Mapping[str, Var]
    top: int
    seams: tuple[int, ...]


def at_the_start(template: Template, facts: Facts) -> Progress:
    """Before anything has run: the inputs are alive as soon as they are fed."""
    keyed = {template.graph.key(name): var for name, var in template.graph.inputs.items()}
    alive = {var: Held(NOWHERE, facts.shapes[key]) for key, var in keyed.items()}
    return Progress(template.tasks, facts, alive, {}, keyed, 0, ())
