"""Builds the graph. A value is a var of the graph, or an array where everything is constant."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.graph.deferred import aligned, is_repeated
from engine.graph.graph import Graph, NamesFor
from engine.graph.parameters import as_kept
from engine.graph.symbols import Derived, derive, of_dims
from engine.graph.vanished import Vanished
from engine.graph.var import Var
from engine.onnx.allowance import Allowance
from engine.onnx.external_data import NO_FILES, DataFiles
from engine.onnx.model_names import ModelNames, Value
from engine.onnx.packed import is_packed
from engine.onnx.structures import Held, Nothing, Rows, TensorList
from engine.onnx.tensors import EXTERNAL, array_of
from engine.text.errors import UnsupportedError
from ops.half.ops import sign_stored
from ops.movement.views import EXPAND, IDENTITY
from ops.registry import find
from ops.schema.schema import OpSchema, evaluate
from ops.symbolic.guesses import Guess
from ops.tensor.dims import Dim, Samples, dims_in
from ops.tensor.spec import INTEGERS, Array, TensorSpec, spec_of

Guesses = Callable[[int], Sequence[Guess]]
"""Takes the size of a tensor, returns guesses of its elements; () for none."""

MOST_LENGTHS: Final = 1024
"""The most elements of a tensor that decide sizes, where only the run knows them: each becomes a dimension."""


class GraphBuilder:
    """A graph that grows. Operators are added to it, or run at once where all their inputs are arrays.

    If it `repeats`, it is the graph of a body that runs several times, or one inside such a body.

    `allowance` is what reading the model may still take. `reserved` are the tensor names of the model, which no other
    tensor may take. `may_wait` tells whether the run may decide sizes.
    """

    def __init__(self, graph: Graph, allowance: Allowance, reserved: Collection[str], may_wait: bool = True) -> None:
        self.graph = graph
        self.allowance = allowance
        self.may_wait = may_wait
        self.repeats = False
        self._reserved = frozenset(reserved)
        self._labels: dict[int, tuple[Array | Derived, str]] = {}
        self._constants: dict[int, Var] = {}
        self._read = ModelNames()
        self._numbers: dict[str, int] = {}
        self._data: dict[Var, tuple[Dim | int, ...]] = {}

    def emit(
        self,
        schema: str | OpSchema,
        values: Sequence[Value],
        attrs: Mapping[str, Any],
        node: str,
        outputs: Sequence[str],
    ) -> tuple[Value, ...]:
        """Adds an operator, given by its schema or by the name of one, or computes it; returns its outputs.

        `outputs` are their names, "" for a new one.
        """
        schema = _found(schema)
        constants = [v for v in values if not isinstance(v, Var)]
        if len(constants) == len(values):
            results = self._computed(schema, constants, attrs)
            if results:
                return results
        return self.add(schema, values, attrs, node, outputs)

    def add(
        self,
        schema: str | OpSchema,
        values: Sequence[Value],
        attrs: Mapping[str, Any],
        node: str,
        outputs: Sequence[str],
    ) -> tuple[Var, ...]:
        """Adds the operator as `emit` does, also where all its inputs are constant."""
        operands = [self.var(v) for v in values]
        return self.graph.add(_found(schema), operands, attrs, name=node, output_names=self.names(node, outputs))

    def names(self, node: str, outputs: Sequence[str]) -> NamesFor:
        """Returns the names for the outputs of an operator: the wanted ones, and new ones for "" and for all others."""
        return lambda count: [self._free(wanted, node) for wanted in (*outputs, *[""] * count)[:count]]

    def _computed(
        self, schema: OpSchema, values: Sequence[Array | Derived], attrs: Mapping[str, Any]
    ) -> tuple[Value, ...]:
        """Computes an operator on constants, now or when shapes are bound; returns () where that is too large."""
        tables = [v.table for v in values if isinstance(v, Derived)] + [d.table for d in dims_in(tuple(attrs.values()))]
        if tables:
            return derive(schema, values, attrs, tables[0])
        arrays = [v for v in values if not isinstance(v, Derived)]
        specs = [TensorSpec(v.shape, v.dtype) for v in arrays]
        schema, signature = sign_stored(schema, specs, attrs, frozenset())
        if schema is EXPAND:
            return (np.broadcast_to(arrays[0], signature.y.shape),) if self.allowance.repeats(signature.y) else ()
        if not self.allowance.grants(schema, signature, sum(a.nbytes for a in arrays if is_repeated(a))):
            return ()
        with np.errstate(all="ignore"):
            return evaluate(schema, *arrays, **signature.attrs)

    def integers(self, value: Value, guesses: Guesses) -> tuple[int, ...]:
        """Returns all elements in C order: numbers, and dimensions where there is no number yet.

        The run computes those of a var; `guesses` are numbers that they may be.
        """
        if isinstance(value, Derived):
            return value.elements()
        if not isinstance(value, Var):
            return tuple(value.reshape(-1).tolist())
        if value not in self._data:
            self._data[value] = self._elements(value, guesses)
        elements: Any = self._data[value]
        return tuple(elements)

    def _elements(self, value: Var, guesses: Guesses) -> tuple[Dim | int, ...]:
        size = value.spec.size
        if isinstance(size, Dim):
            raise UnsupportedError(f"the size of tensor {value.name!r}, which is open, decides a number of dimensions")
        if size > MOST_LENGTHS:
            raise UnsupportedError(f"tensor {value.name!r} decides {size} sizes; the run may decide {MOST_LENGTHS}")
        if value.dtype not in INTEGERS:
            (value,) = self.graph.add(find("cast"), [value], {"to": np.int64})
        samples = guesses(size) or ((),) * size
        return tuple(self.graph.data_dim(value, i, samples[i]) for i in range(size))

    def of_integers(self, numbers: Sequence[int], shape: Sequence[int]) -> Value:
        """Returns an int64 tensor of numbers and dimensions."""
        dims = dims_in(tuple(numbers))
        return of_dims(numbers, shape, np.dtype(np.int64), dims[0].table if dims else Samples())

    def var(self, value: Value) -> Var:
        """Returns the value as a var. An array becomes one constant, however often it is used."""
        if isinstance(value, Var):
            return value
        if id(value) not in self._constants:
            _, label = self._labels.setdefault(id(value), (value, ""))
            self._constants[id(value)] = self._constant(value, label)
        return self._constants[id(value)]

    def computed(self, value: Value) -> Var:
        """Returns the value as a var that an operator computes where dimensions decide it: so the run has its data."""
        var = self.var(value)
        return self.graph.add(IDENTITY, [var])[0] if isinstance(value, Derived) else var

    def _constant(self, value: Array | Derived, label: str) -> Var:
        if not isinstance(value, Derived):
            kept = value if is_repeated(value) else as_kept("constant", _read_only(value))
            return self.graph.add_constant(self._free(label, "constant"), spec_of(kept), aligned(kept))
        return self.graph.constant(value, self._free(label, "shape"))

    def stored(self, tensor: Any, what: str, files: DataFiles = NO_FILES) -> Array:
        """Returns the data of a TensorProto, as often as its function or loop is read. Raises ModelError."""
        array = array_of(tensor, what, files)
        if tensor.data_location != EXTERNAL or is_packed(array.dtype):
            self.allowance.take_bytes(array.nbytes)
        return array

    def label(self, value: Held, name: str) -> None:
        """Notes the name of a value. An array becomes a constant under its first name."""
        tensor = _tensor(value)
        self._read.tensors[name] = tensor
        if tensor is not None and not isinstance(tensor, Var):
            self._labels.setdefault(id(tensor), (tensor, name))

    def note_node(self, name: str, first: int, value: Held) -> None:
        """Notes the name of a node in front of which there were `first` operators, and its first output."""
        self._read.nodes.append((name, first, _tensor(value)))

    @property
    def lost_names(self) -> Vanished:
        """Returns what became of the names of the model that the graph lacks."""
        return self._read.lost_in(self.graph, self._constants)

    def sources(self, var: Var) -> tuple[str, ...]:
        """Returns the names of the graph inputs that a var is computed from."""
        writers = {out: operator for operator in self.graph.operators for out in operator.outputs}
        seen, left = {var}, [var]
        while left:
            writer = writers.get(left.pop())
            fresh = [v for v in (writer.inputs if writer else ()) if v not in seen]
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


def _tensor(value: Held) -> Value | None:
    return None if isinstance(value, (TensorList, Rows, Nothing)) else value


def _found(schema: str | OpSchema) -> OpSchema:
    return find(schema) if isinstance(schema, str) else schema


def _read_only(array: Array) -> Array:
    """Returns a read-only view, which a graph need not copy."""
    view = array.view()
    view.flags.writeable = False
    return view
