"""The graph that a user builds: vars, operators, and the order in which they were added, which is always runnable."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from engine.errors import GraphError
from engine.var import Var
from ops.schema import Attrs, OpSchema, Signature
from ops.spec import Array, TensorSpec, as_dtype, spec_of


@frozen(eq=False)
class Operator:
    """One use of a schema. Compares by identity."""

    name: str
    schema: OpSchema
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    signature: Signature = field(repr=False)

    @property
    def attrs(self) -> Attrs:
        """All attributes, defaults filled in."""
        return self.signature.attrs

    def __str__(self) -> str:
        return f"{self.name} ({self.schema.name})"


class Graph:
    """Grows by `input`, `constant`, `add` (which the functions of `ops` call) and `output`; nothing is ever taken away.

    Names of vars and of operators are unique; where none is given, one is made.
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self._inputs: dict[str, Var] = {}
        self._constants: dict[Var, Array] = {}
        self._operators: list[Operator] = []
        self._outputs: dict[str, Var] = {}
        self._vars: dict[str, Var] = {}
        self._operator_names: set[str] = set()
        self._counters: dict[str, int] = {}

    @property
    def inputs(self) -> Mapping[str, Var]:
        """What the caller feeds, by name."""
        return MappingProxyType(self._inputs)

    @property
    def constants(self) -> Mapping[Var, Array]:
        """Arrays that never change (read-only), by var."""
        return MappingProxyType(self._constants)

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All operators, in a runnable order."""
        return tuple(self._operators)

    @property
    def outputs(self) -> Mapping[str, Var]:
        """What the caller fetches, by name. One var may stand under several names."""
        return MappingProxyType(self._outputs)

    @property
    def vars(self) -> Mapping[str, Var]:
        """All vars by name."""
        return MappingProxyType(self._vars)

    def input(self, name: str, shape: Sequence[int], dtype: npt.DTypeLike = "float32") -> Var:
        """Adds an input. Raises GraphError for a name that is taken, OpError for a bad shape or dtype."""
        var = self._var(name, TensorSpec(tuple(shape), as_dtype(dtype)))
        self._inputs[name] = var
        return var

    def constant(self, array: npt.ArrayLike, name: str | None = None) -> Var:
        """Adds an array that never changes: a dense copy, or the very array where that is dense and read-only.

        Raises GraphError for what is no array.
        """
        try:
            given = np.asarray(array)
        except ValueError as error:
            raise GraphError(f"a constant must be an array: {error}") from error
        as_it_is = given.flags.c_contiguous and not given.flags.writeable
        kept = given if as_it_is else np.array(given, order="C")
        kept.flags.writeable = False
        var = self._var(name or self._fresh("constant"), spec_of(kept))
        self._constants[var] = kept
        return var

    def add(
        self,
        schema: OpSchema,
        inputs: Sequence[Var],
        attrs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        output_names: Sequence[str] | None = None,
    ) -> tuple[Var, ...]:
        """Adds an operator and returns its outputs. Raises GraphError, or OpError where the inputs do not fit."""
        for var in inputs:
            if not isinstance(var, Var) or var.graph is not self:
                raise GraphError(f"{schema.name}: input {var!r} is no var of graph {self.name!r}")
        constants = frozenset(i for i, v in enumerate(inputs) if v in self._constants)
        signature = schema.sign([v.spec for v in inputs], attrs or {}, constants)
        name = self._operator_name(name or self._fresh(schema.name))
        names = tuple(output_names or self._output_names(name, len(signature.outputs)))
        self._check_free(names)
        self._operator_names.add(name)
        outputs = tuple(self._var(n, s) for n, s in zip(names, signature.outputs, strict=True))
        self._operators.append(Operator(name, schema, tuple(inputs), outputs, signature))
        return outputs

    def output(self, var: Var, name: str | None = None) -> Var:
        """Marks a var as an output under `name` (its own where none is given). Raises GraphError."""
        if not isinstance(var, Var) or var.graph is not self:
            raise GraphError(f"output {var!r} is no var of graph {self.name!r}")
        name = name or var.name
        if name in self._outputs:
            raise GraphError(f"graph {self.name!r} has two outputs named {name!r}")
        self._outputs[name] = var
        return var

    def text(self) -> str:
        """The graph as readable lines: inputs, constants in short, one line an operator, outputs."""
        lines = [f"graph {self.name}"]
        lines += [f"  input    %{v.name}: {v.spec}" for v in self._inputs.values()]
        lines += [f"  constant %{v.name}: {v.spec}" for v in self._constants]
        lines += [f"  {_operator_text(op)}" for op in self._operators]
        lines += [f"  output   {name} = %{v.name}" for name, v in self._outputs.items()]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self._inputs)} inputs, {len(self._operators)} operators>"

    def _check_free(self, names: Sequence[str]) -> None:
        for i, name in enumerate(names):
            if name in self._vars or name in names[:i]:
                raise GraphError(f"graph {self.name!r} has two tensors named {name!r}")

    def _var(self, name: str, spec: TensorSpec) -> Var:
        self._check_free((name,))
        var = Var(name, spec, self)
        self._vars[name] = var
        return var

    def _operator_name(self, name: str) -> str:
        return name if name not in self._operator_names else self._fresh(name)

    def _output_names(self, operator: str, count: int) -> tuple[str, ...]:
        wanted = (operator,) if count == 1 else tuple(f"{operator}:{i}" for i in range(count))
        return tuple(n if n not in self._vars else self._fresh(n) for n in wanted)

    def _fresh(self, stem: str) -> str:
        while True:
            number = self._counters.get(stem, 0)
            self._counters[stem] = number + 1
            name = f"{stem}_{number}"
            if name not in self._vars and name not in self._operator_names:
                return name


def _operator_text(operator: Operator) -> str:
    outs = ", ".join(f"%{v.name}: {v.spec}" for v in operator.outputs)
    ins = ", ".join(f"%{v.name}" for v in operator.inputs)
    attrs = "".join(f" {k}={_shown(v)}" for k, v in operator.attrs.items())
    return f"{outs} = {operator.schema.name}({ins}){attrs}"


def _shown(value: object) -> str:
    return str(value).replace(" ", "") if isinstance(value, tuple) else str(value)
