"""The state of a run between two stages: the tasks that are left, the known sizes and data, the live tensors."""

from collections.abc import Mapping

from attrs import frozen

from engine.graph.bindings import Bindings
from engine.graph.var import Var
from engine.stages.task import Tasks, Template
from ops.schema.schema import OpSchema, Signature
from ops.tensor.spec import Shape

NOWHERE = -1
"""Offset of a tensor that is still to be fed."""


@frozen(eq=False)
class LiveTensor:
    """A live tensor that owns its bytes, from `offset` on."""

    offset: int
    shape: Shape


@frozen(eq=False)
class SignedOperator:
    """An operator with numbers in its signature. A later stage adds it again to make its views."""

    name: str
    schema: OpSchema
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    signature: Signature


@frozen(eq=False)
class RunState:
    """The state between two stages.

    `alive` has the tensors in the arena, `views` the operators whose outputs are views of them; `keyed` maps the keys
    of `bindings` to vars. The arena has `top` bytes; no chunk may lie across one of the `boundaries`.
    """

    tasks: Tasks
    bindings: Bindings
    alive: Mapping[Var, LiveTensor]
    views: Mapping[Var, SignedOperator]
    keyed: Mapping[str, Var]
    top: int
    boundaries: tuple[int, ...]


def initial_state(template: Template, bindings: Bindings) -> RunState:
    """Returns the state before the first stage: the inputs are alive as soon as they are fed."""
    keyed = {template.graph.key(name): var for name, var in template.graph.inputs.items()}
    alive = {var: LiveTensor(NOWHERE, bindings.shapes[key]) for key, var in keyed.items()}
    return RunState(template.tasks, bindings, alive, {}, keyed, 0, ())
