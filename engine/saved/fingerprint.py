"""Digests of everything that decides the calls of a plan: equal identities have the same calls in one order."""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import attrs
import numpy as np
from attrs import field, frozen

from allocator.problem import Problem
from engine.control.body import PlannedBody
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.lower.calls import Call, Instruction, Lowered, Value
from ops.schema.schema import OpSchema
from ops.tensor.spec import NARROW, TensorSpec


@frozen
class Identity:
    """The identity of lowered calls. `feeds` and `fetches` have name, dtype and shape; the others are SHA-256 sums.

    `operators`: operators in order, with schemas, attributes, shapes and names. `kernels`: the chosen ones, and the
    bytes of their workspaces. `layouts`: which values are views or copies of which. Of constants, only shapes count.
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
    """Returns the identity of calls: all that decides a plan except lifetimes, see `digest_of_problem`."""
    graph = lowered.graph
    return Identity(
        _specs(graph.inputs),
        _specs(graph.outputs),
        digest_of(
            [_operator(instruction.name, op) for instruction in lowered.instructions for op in instruction.operators]
        ),
        digest_of(
            [(c.name, c.kernel.name, [lowered.values[v].spec.nbytes for v in c.workspace]) for c in lowered.calls]
        ),
        digest_of(
            [[_instruction(s) for s in lowered.instructions], [_value(v) for v in lowered.values], _ends(lowered)]
        ),
    )


def digest_of_problem(problem: Problem) -> str:
    """Returns the digest of lifetimes, sizes, alignments and overwrites: all that decides addresses."""
    columns = ("begin", "end", "size", "alignment", "pinned", "src", "dest", "overwrite_offset")
    return digest_of([getattr(problem, name) for name in columns])


def digest_of(value: Any) -> str:
    """Returns the SHA-256 sum of data that an operator's attributes may hold, the same in every process."""
    return _sha256(json.dumps(value, separators=(",", ":"), default=_plain).encode())


def _sha256(content: bytes) -> str:
    hashlib: Any = import_module("hashlib")  # it loads OpenSSL, 3.6 MB in a process that saves no plan
    return str(hashlib.sha256(content).hexdigest())


def _specs(vars: Mapping[str, Var]) -> tuple[tuple[str, str], ...]:
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


def _instruction(instruction: Instruction) -> list[Any]:
    fields = [type(instruction).__name__, instruction.name, instruction.inputs, instruction.outputs]
    if isinstance(instruction, Call):
        fields += [instruction.workspace, [(o.output, o.input, o.offset) for o in instruction.overwrites]]
    return fields


def _value(value: Value) -> list[Any]:
    lay = value.layout
    where = [lay.offset, lay.shape, lay.strides, lay.itemsize, value.owner, value.storage.value, value.role.value]
    return [value.name, value.source, *_spec(value.spec), *where]


def _spec(spec: TensorSpec) -> list[Any]:
    return [_dtype(spec.dtype), spec.shape]


def _ends(lowered: Lowered) -> list[Any]:
    return [lowered.inputs, lowered.outputs, sorted(lowered.caller_buffers), sorted(lowered.parameters.items())]


def _plain(value: Any) -> Any:
    """Returns plain data in place of an object that JSON cannot write: its kind and its content."""
    for kinds, convert in _CONVERTERS:
        if isinstance(value, kinds):
            return convert(value)
    if attrs.has(type(value)):
        return [type(value).__name__, {a.name: getattr(value, a.name) for a in attrs.fields(type(value))}]
    return repr(value)


def _dtype(dtype: np.dtype[Any]) -> str:
    """Returns what tells an element type from all others: numpy's code, which narrow ones share, or its name."""
    return dtype.name if dtype in NARROW else dtype.str


def _array(value: Any) -> list[Any]:
    array = np.ascontiguousarray(value)
    return ["array", _dtype(array.dtype), list(np.shape(value)), _sha256(array.tobytes())]


_CONVERTERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (Mapping, dict),
    ((np.ndarray, np.generic), _array),
    (np.dtype, _dtype),
    (OpSchema, lambda value: ["schema", value.name]),
    (PlannedBody, lambda value: ["body", value.graph.text(), value.plan.arena_bytes]),
)
