"""Values while a model is read: vars of the graph, or arrays where everything is known. Builds the graph."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.errors import ModelError
from engine.graph import Graph
from engine.var import Var
from ops.registry import find
from ops.schema import evaluate
from ops.spec import Array, TensorSpec

Value = Var | Array
"""A tensor: a var of the graph, or an array where it is known before anything runs."""

MOST_FOLDED: Final = 2**31
"""Bytes that one operator may put into a constant; a whole ONNX message cannot hold more either."""


class GraphBuilder:
    """Adds operators to a graph, or runs them at once where all their inputs are arrays.

    `reserved` are tensor names of the model: what is made in between never takes one of them.
    """

    def __init__(self, graph: Graph, reserved: Collection[str]) -> None:
        self.graph = graph
        self._reserved = frozenset(reserved)
        self._labels: dict[int, tuple[Array, str]] = {}
        self._constants: dict[int, Var] = {}
        self._numbers: dict[str, int] = {}

    def emit(
        self, name: str, values: Sequence[Value], attrs: Mapping[str, Any], node: str, outputs: Sequence[str]
    ) -> tuple[Value, ...]:
        """The outputs of our operator `name`. `outputs` names them; where one is "", a name is made."""
        schema = find(name)
        made = schema.sign([TensorSpec(v.shape, v.dtype) for v in values], attrs).outputs
        arrays = [v for v in values if not isinstance(v, Var)]
        if len(arrays) == len(values):
            check_size(made)
            with np.errstate(all="ignore"):
                return evaluate(schema, *arrays, **attrs)
        wanted = (*outputs, *[""] * len(made))[: len(made)]
        names = [self._free(name, node) for name in wanted]
        return self.graph.add(schema, [self.var(v) for v in values], attrs, name=node, output_names=names)

    def var(self, value: Value) -> Var:
        """The value as a var; an array becomes one constant, however often it is used."""
        if isinstance(value, Var):
            return value
        if id(value) not in self._constants:
            _, label = self._labels.setdefault(id(value), (value, ""))
            self._constants[id(value)] = self.graph.constant(_read_only(value), self._free(label, "constant"))
        return self._constants[id(value)]

    def label(self, value: Value, name: str) -> None:
        """Says under which name an array becomes a constant; its first name stays."""
        if not isinstance(value, Var):
            self._labels.setdefault(id(value), (value, name))

    def sources(self, var: Var) -> tuple[str, ...]:
        """The graph inputs that a var is computed from."""
        makers = {out: operator for operator in self.graph.operators for out in operator.outputs}
        seen, left = {var}, [var]
        while left:
            maker = makers.get(left.pop())
            fresh = [v for v in (maker.inputs if maker else ()) if v not in seen]
            seen.update(fresh)
            left.extend(fresh)
        return tuple(name for name, v in self.graph.inputs.items() if v in seen)

    def _free(self, wanted: str, stem: str) -> str:
        if wanted and wanted not in self.graph.vars:
            return wanted
        stem = wanted or stem
        while True:
            number = self._numbers.get(stem, 0)
            self._numbers[stem] = number + 1
            name = f"{stem}:{number}"
            if name not in self.graph.vars and name not in self._reserved:
                return name


def check_size(specs: Iterable[TensorSpec]) -> None:
    """Raises ModelError for constants that are too large to be made while a model is read."""
    for spec in specs:
        if spec.nbytes > MOST_FOLDED:
            raise ModelError(f"a constant {spec} of {spec.nbytes} bytes would be made; at most {MOST_FOLDED} are")


def _read_only(array: Array) -> Array:
    """The same bytes, which nobody writes any more: a graph need not copy them."""
    view = array.view()
    view.flags.writeable = False
    return view
