"""Values while a model is read: vars of the graph, or arrays where everything is known. Builds the graph."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.graph.deferred import aligned
from engine.graph.graph import Graph, NamesFor
from engine.graph.parameters import as_kept
from engine.graph.symbols import Derived, derive, of_dims
from engine.graph.var import Var
from engine.text.errors import ModelError, UnsupportedError
from ops.half.ops import sign_stored
from ops.movement.views import IDENTITY
from ops.registry import find
from ops.schema.schema import OpSchema, evaluate
from ops.symbolic.guesses import Guess
from ops.tensor.dims import Dim, Samples, dims_in
from ops.tensor.spec import INTEGERS, Array, TensorSpec, spec_of

Value = Var | Array | Derived
"""A tensor: a var of the graph, an array where it is known, or derived where dimensions decide it."""

Guesses = Callable[[int], Sequence[Guess]]
"""Numbers that the elements of a tensor of that size might be; () for no idea."""

MOST_FOLDED: Final = 2**31
"""Bytes that one operator may put into a constant; a whole ONNX message cannot hold more either."""


class GraphBuilder:
    """Adds operators to a graph, or runs them at once where all their inputs are arrays.

    `reserved` are tensor names of the model: what is made in between never takes one of them. `may_wait` tells whether
    sizes may be left to the run to decide.
    """

    def __init__(self, graph: Graph, reserved: Collection[str], may_wait: bool = True) -> None:
        self.graph = graph
        self.may_wait = may_wait
        self._reserved = frozenset(reserved)
        self._labels: dict[int, tuple[Array | Derived, str]] = {}
        self._constants: dict[int, Var] = {}
        self._numbers: dict[str, int] = {}
        self._data: dict[Var, tuple[Dim | int, ...]] = {}

    def emit(
        self, name: str, values: Sequence[Value], attrs: Mapping[str, Any], node: str, outputs: Sequence[str]
    ) -> tuple[Value, ...]:
        """The outputs of our operator `name`. `outputs` names them; where one is "", a name is made."""
        schema = find(name)
        known = [v for v in values if not isinstance(v, Var)]
        if len(known) == len(values):
            made = self._computed(schema, known, attrs)
            if made:
                return made

        operands = [self.var(v) for v in values]
        return self.graph.add(schema, operands, attrs, name=node, output_names=self.names(node, outputs))

    def names(self, node: str, outputs: Sequence[str]) -> NamesFor:
        """Names for the outputs of an operator: those wanted, and made ones for "" and for those behind them."""
        return lambda count: [self._free(wanted, node) for wanted in (*outputs, *[""] * count)[:count]]

    def _computed(
        self, schema: OpSchema, values: Sequence[Array | Derived], attrs: Mapping[str, Any]
    ) -> tuple[Value, ...]:
        """An operator on what is known: at once, or when shapes are bound; () where it is too large for that."""
        tables = [v.table for v in values if isinstance(v, Derived)] + [d.table for d in dims_in(tuple(attrs.values()))]
        if tables:
            return derive(schema, values, attrs, tables[0])
        arrays = [v for v in values if not isinstance(v, Derived)]
        specs = [TensorSpec(v.shape, v.dtype) for v in arrays]
        schema, signature = sign_stored(schema, specs, attrs, frozenset())
        check_size(signature.outputs)
        with np.errstate(all="ignore"):
            return evaluate(schema, *arrays, **signature.attrs)

    def integers(self, value: Value, guesses: Guesses) -> tuple[int, ...]:
        """All elements in C order: numbers, and dimensions where there is no number yet.

        Those of a var are known when it has been computed; `guesses` are what they might be.
        """
        if isinstance(value, Derived):
            return value.elements()
        if not isinstance(value, Var):
            return tuple(value.reshape(-1).tolist())
        if value not in self._data:
            self._data[value] = self._elements(value, guesses)
        found: Any = self._data[value]
        return tuple(found)

    def _elements(self, value: Var, guesses: Guesses) -> tuple[Dim | int, ...]:
        size = value.spec.size
        if isinstance(size, Dim):
            raise UnsupportedError(f"how many numbers tensor {value.name!r} has decides how many dimensions there are")
        if value.dtype not in INTEGERS:
            (value,) = self.graph.add(find("cast"), [value], {"to": np.int64})
        given = guesses(size) or ((),) * size
        return tuple(self.graph.data_dim(value, i, given[i]) for i in range(size))

    def of_integers(self, numbers: Sequence[int], shape: Sequence[int]) -> Value:
        """An int64 tensor of numbers and dimensions."""
        found = dims_in(tuple(numbers))
        return of_dims(numbers, shape, np.dtype(np.int64), found[0].table if found else Samples())

    def var(self, value: Value) -> Var:
        """The value as a var; an array becomes one constant, however often it is used."""
        if isinstance(value, Var):
            return value
        if id(value) not in self._constants:
            _, label = self._labels.setdefault(id(value), (value, ""))
            self._constants[id(value)] = self._constant(value, label)
        return self._constants[id(value)]

    def computed(self, value: Value) -> Var:
        """The same, of what dimensions decide by way of an operator: then its data are there when the run is."""
        var = self.var(value)
        return self.graph.add(IDENTITY, [var])[0] if isinstance(value, Derived) else var

    def _constant(self, value: Array | Derived, label: str) -> Var:
        if not isinstance(value, Derived):
            kept = as_kept("constant", _read_only(value))
            return self.graph.add_constant(self._free(label, "constant"), spec_of(kept), aligned(kept))
        return self.graph.constant(value, self._free(label, "shape"))

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
