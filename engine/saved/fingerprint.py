"""What decides the calls of a plan, as digests: plans whose identities are equal have the same calls in one order."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from attrs import field, frozen

from allocator.problem import Problem
from engine.control.body import PlannedBody
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.lower.calls import Call, Lowered, Stage, Value
from ops.schema.schema import OpSchema
from ops.tensor.spec import TensorSpec


@frozen
class Identity:
    """`feeds` and `fetches` tell name, dtype and shape of inputs and outputs; the others are SHA-256 sums, as texts.

    `operators`: operators in order, with schemas, attributes, shapes and names. `kernels`: those that were chosen, and
    their workspaces. `layouts`: which values are views or copies of which. Of constants, the shapes count alone.
    """

    feeds: tuple[tuple[str, str], ...]
    fetches: tuple[tuple[str, str], ...]
    operators: str
    kernels: str
    layouts: str
    digest: str = field(init=False)

    @digest.default
    def _sum(self) -> str:
        return digest_of((self.feeds, self.fetches, self.operators, self.kernels, self.layouts))


def identity_of(lowered: Lowered) -> Identity:
    """What decides everything but lifetimes, which options have a part in: `digest_of_problem` tells these."""
    graph = lowered.graph
    return Identity(
        _told(graph.inputs),
        _told(graph.outputs),
        digest_of([_operator(stage.name, op) for stage in lowered.stages for op in stage.operators]),
        digest_of(
            [(c.name, c.kernel.name, [lowered.values[v].spec.nbytes for v in c.workspace]) for c in lowered.calls]
        ),
        digest_of([[_stage(s) for s in lowered.stages], [_value(v) for v in lowered.values], _ends(lowered)]),
    )


def digest_of_problem(problem: Problem) -> str:
    """Lifetimes, sizes, alignments, overwrites: all that decides addresses."""
    columns = ("begin", "end", "size", "alignment", "pinned", "src", "dest", "overwrite_offset")
    return digest_of([getattr(problem, name) for name in columns])


def digest_of(value: Any) -> str:
    """SHA-256 of anything that an operator's attributes may hold, the same in every process."""
    return hashlib.sha256(json.dumps(value, separators=(",", ":"), default=_plain).encode()).hexdigest()


def _told(vars: Mapping[str, Var]) -> tuple[tuple[str, str], ...]:
    return tuple((name, f"{var.dtype.name} {'x'.join(map(str, var.shape)) or 'scalar'}") for name, var in vars.items())


def _operator(name: str, operator: Operator) -> list[Any]:
    signature = operator.signature
    vars = [[v.name for v in operator.inputs], [v.name for v in operator.outputs]]
    return [
        name,
        operator.schema,
        signature.attrs,
        signature.inputs,
        signature.outputs,
        sorted(signature.constants),
        vars,
    ]


def _stage(stage: Stage) -> list[Any]:
    told = [type(stage).__name__, stage.name, stage.inputs, stage.outputs]
    if isinstance(stage, Call):
        told += [stage.workspace, [(o.output, o.input, o.offset) for o in stage.overwrites]]
    return told


def _value(value: Value) -> list[Any]:
    lay = value.layout
    where = [lay.offset, lay.shape, lay.strides, lay.itemsize, value.owner, value.storage.value, value.role.value]
    return [value.name, value.source, *_spec(value.spec), *where]


def _spec(spec: TensorSpec) -> list[Any]:
    return [spec.dtype.str, spec.shape]


def _ends(lowered: Lowered) -> list[Any]:
    return [lowered.inputs, lowered.outputs, sorted(lowered.caller_buffers), sorted(lowered.parameters.items())]


def _plain(value: Any) -> Any:
    """Data in place of what JSON does not know by itself: what it is, and what is in it."""
    for kinds, tell in _TELL:
        if isinstance(value, kinds):
            return tell(value)
    if attrs.has(type(value)):
        return [type(value).__name__, {a.name: getattr(value, a.name) for a in attrs.fields(type(value))}]
    return repr(value)


def _array(value: Any) -> list[Any]:
    found = np.ascontiguousarray(value)
    return ["array", found.dtype.str, list(np.shape(value)), hashlib.sha256(found.tobytes()).hexdigest()]


_TELL: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (Mapping, dict),
    ((np.ndarray, np.generic), _array),
    (np.dtype, lambda value: value.str),
    (OpSchema, lambda value: ["schema", value.name]),
    (PlannedBody, lambda value: ["body", value.graph.text(), value.plan.arena_bytes]),
)
