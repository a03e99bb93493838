"""Tensors stored in 16 bits, in half of the arena; what computes still computes in float32."""

from functools import partial
from itertools import chain, count
from typing import Any

import numpy as np
from attrs import define, field

from engine.graph.deferred import SMALL, Deferred, Entry, array_of, converted
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.verify import verify
from engine.planning.options import check_stored
from engine.text.errors import GraphError
from ops.elementwise.cast import CAST
from ops.half.ops import IN_SINGLE, Inner
from ops.schema.body import bodies
from ops.schema.opaque import is_opaque
from ops.schema.schema import OpSchema
from ops.tensor.spec import Array, as_dtype

_SINGLE = np.dtype("float32")
_FEW = 4096
"""Constants of at most so many elements stay in float32: biases and scales. It trades precision for little memory."""


def cast_storage(graph: Graph, dtype: str) -> Graph:
    """Returns the same network with its float32 tensors stored as "float16" or "bfloat16", under the same names.

    Inputs and outputs keep their types. Operators compute in float32 and round what they give, to nearest, ties to
    even; what is beyond the range of float16 becomes infinite. Constants of few elements, what is inside of control
    flow and operators with several outputs stay in float32. Raises OptionError for another type, GraphError for a graph
    with open dimensions or parameters.
    """
    if graph.is_symbolic:
        raise GraphError(f"graph {graph.name!r} has dimensions that are names; see arenaplan.bind")
    if graph.parameters:
        raise GraphError(f"graph {graph.name!r} has parameters, whose updates would drown in the rounding of {dtype!r}")
    check_stored(dtype)
    results = _Storage(graph, as_dtype(dtype), Graph(graph.name)).run()
    verify(graph, results)
    results.vanished = graph.vanished
    return results


@define(eq=False)
class _Storage:
    source: Graph
    dtype: np.dtype[Any]
    graph: Graph
    plain: dict[Var, Var] = field(factory=dict)
    """The vars with the type that they had in the source, such as float32."""
    stored: dict[Var, Var] = field(factory=dict)
    """The vars in 16 bits."""
    exact: set[Var] = field(factory=set)
    """The constants of few elements, and parts and moves of them, which stay in float32."""
    operators: frozenset[str] = field(init=False)

    @operators.default
    def _operators(self) -> frozenset[str]:
        return frozenset(operator.name for operator in self.source.operators)

    def run(self) -> Graph:
        for name, var in self.source.inputs.items():
            self.plain[var] = self.graph.input(name, var.shape, var.dtype)
        self.exact.update(v for v in self.source.constants if v.spec.size <= _FEW)
        for operator in self.source.operators:
            self._operator(operator)
        for name, var in self.source.outputs.items():
            self.graph.output(self._plain(var), name)
        return self.graph

    def _operator(self, operator: Operator) -> None:
        singles = any(v.dtype == _SINGLE for v in operator.inputs + operator.outputs)
        schema = operator.schema
        if not singles or bodies(schema, operator.attrs) or schema is IN_SINGLE or is_opaque(schema):
            self._keep(operator)
        elif operator.schema.bit_copies and self._is_exact(operator):
            self.exact.update(operator.outputs)
            self._keep(operator)
        elif operator.schema.bit_copies:
            self._move(operator)
        elif len(operator.outputs) == 1:
            self._compute(operator)
        else:
            self._keep(operator)

    def _is_exact(self, operator: Operator) -> bool:
        """Returns whether an operator moves constants of few elements alone, such as rows of one, for a stripe."""
        return self.exact.issuperset(operator.inputs) and all(v.spec.size <= _FEW for v in operator.outputs)

    def _keep(self, operator: Operator) -> None:
        """Adds an operator that computes on plain tensors."""
        inputs = [self._plain(v) for v in operator.inputs]
        self._add(operator, operator.schema, inputs, dict(operator.attrs), self.plain)

    def _move(self, operator: Operator) -> None:
        """Adds an operator that copies bits, on tensors of 16 bits."""
        inputs = [self._stored(v) if v.dtype == _SINGLE else self._plain(v) for v in operator.inputs]
        self._add(operator, operator.schema, inputs, dict(operator.attrs), self.stored)

    def _compute(self, operator: Operator) -> None:
        inputs = [self._stored(v) if self._is_stored(v) else self._plain(v) for v in operator.inputs]
        attrs = {"operator": Inner(operator.schema, operator.attrs), "to": self.dtype}
        results = self.stored if operator.outputs[0].dtype == _SINGLE else self.plain
        self._add(operator, IN_SINGLE, inputs, attrs, results)

    def _is_stored(self, var: Var) -> bool:
        return var.dtype == _SINGLE and var not in self.exact

    def _add(
        self, operator: Operator, schema: OpSchema, inputs: list[Var], attrs: dict[str, Any], results: dict[Var, Var]
    ) -> None:
        constants = frozenset(i for i, v in enumerate(inputs) if v in self.graph.constants)
        signature = schema.sign([v.spec for v in inputs], attrs, constants)
        names = tuple(v.name for v in operator.outputs)
        outputs = self.graph.add_signed(schema, inputs, signature, operator.name, names)
        results.update(zip(operator.outputs, outputs, strict=True))

    def _stored(self, var: Var) -> Var:
        if var not in self.stored:
            if var in self.source.constants:
                self.stored[var] = self._constant(var, self.dtype, self._rounded(var), "stored")
            else:
                self.stored[var] = self._cast(var, self.plain[var], self.dtype, "stored")
        return self.stored[var]

    def _plain(self, var: Var) -> Var:
        if var not in self.plain:
            if var in self.source.constants:
                self.plain[var] = self._constant(var, var.dtype, self.source.constants.entries[var], "plain")
            else:
                self.plain[var] = self._cast(var, self.stored[var], _SINGLE, "plain")
        return self.plain[var]

    def _rounded(self, var: Var) -> Entry:
        """Returns a constant in 16 bits; a large one is rounded when it is read."""
        spec = var.spec.with_dtype(self.dtype)
        make = partial(_in_16_bits, self.source.constants.entries[var], self.dtype)
        return Deferred(spec, make) if spec.nbytes > SMALL else make()

    def _constant(self, var: Var, dtype: np.dtype[Any], entry: Entry, suffix: str) -> Var:
        name = var.name if var.name not in self.graph.vars else self._free(f"{var.name}/{suffix}")
        return self.graph.add_constant(name, var.spec.with_dtype(dtype), entry)

    def _free(self, name: str) -> str:
        """Returns a name that neither graph has: this one, or the same with a number."""
        numbered = (f"{name}_{i}" for i in count(1))
        taken = self.source.vars, self.graph.vars, self.operators
        return next(n for n in chain((name,), numbered) if not any(n in names for names in taken))

    def _cast(self, var: Var, of: Var, dtype: np.dtype[Any], suffix: str) -> Var:
        name = self._free(f"{var.name}/{suffix}")
        signature = CAST.sign([of.spec], {"to": dtype})
        return self.graph.add_signed(CAST, [of], signature, name, (name,))[0]


def _in_16_bits(entry: Entry, dtype: np.dtype[Any]) -> Array:
    """Returns an array in 16 bits. Numbers beyond the range become infinite, as they do in operators."""
    with np.errstate(over="ignore"):
        return converted(array_of(entry), dtype)
