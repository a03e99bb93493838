"""The lengths of a graph with open dimensions, for the time in which passes change it.

All lengths are brought into normal form first: those that are proved to be equal are one dimension. Passes compare
them, and where nothing is proved, they pass by. Nothing is decided, so no pass adds a guard.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from attrs import evolve

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.symbols import Axis, Datum, Derived, Element, Extent, Recipe, computed_before
from engine.graph.var import Var
from engine.passes.derived_values import DerivedValues
from ops.schema.body import bodies
from ops.schema.schema import Attrs, OpSchema, Signature, Specs
from ops.symbolic.exact import NOTHING, ExactSamples, UnknownLengthError
from ops.symbolic.infer import formula, is_symbolic
from ops.symbolic.normal_form import NormalForms
from ops.tensor.dims import SAMPLES, Dim, as_tuples, dims_in, in_sample, leaf, sample_of, with_leaves
from ops.tensor.spec import TensorSpec

_NEW = "?"
"""What the keys of vars begin with that have no name yet."""

_NUMBERS = count()
"""Numbers for such vars, of all graphs: they may share a table."""


class OpenLengths:
    """The lengths of one graph in normal form. Operators that passes add are inferred here."""

    def __init__(self, graph: Graph) -> None:
        samples = graph.samples
        self._is_shared = isinstance(samples, ExactSamples) and not samples.guards
        if isinstance(samples, ExactSamples) and self._is_shared:
            self.table, self._forms = samples, samples.forms
        else:
            self._forms = NormalForms(self._meaning)
            self.table = ExactSamples.of(samples, self._forms)
        self._graph = graph
        self._by_key: dict[str, TensorSpec] = {}
        self._specs: dict[Hashable, TensorSpec] = {}
        self._derived: dict[Derived, Derived] = {}
        self._inferred: dict[Hashable, Specs] = {}
        self._values = DerivedValues(self._dim)
        self._keys = {graph.key(name) for name in graph.vars}
        self.symbols = {name: self._dim(dim) for name, dim in graph.symbols.items()}
        if not self._is_shared:
            self.table.named.extend(d for d in map(self._dim, samples.named) if isinstance(d, Dim))
        self.specs: dict[Var, TensorSpec] = {}
        for var in (*graph.inputs.values(), *graph.constants, *graph.parameters):
            self._set(var, self._spec(var.spec))
        self.derived = {var: self._array(array) for var, array in graph.derived.items()}
        for var in self.derived:
            self._set(var, self._spec(var.spec))
        self.signatures = [self._signature(op) for op in graph.operators]
        self.guards = tuple(evolve(g, left=self._dim(g.left), right=self._dim(g.right)) for g in graph.guards)
        self.pinned = self._pinned()

    def _set(self, var: Var, spec: TensorSpec) -> None:
        self.specs[var] = self._by_key[self._graph.key(var.name)] = spec

    def _dim(self, dim: Any) -> Any:
        return self._forms.dim(dim)

    def _spec(self, spec: TensorSpec) -> TensorSpec:
        """Returns a spec in normal form; specs that are equal are one object."""
        if not spec.is_symbolic:
            return spec
        dims = tuple(map(self._dim, spec.shape))
        key = (spec.dtype, *(id(d) if isinstance(d, Dim) else (d,) for d in dims))
        if key not in self._specs:
            self._specs[key] = TensorSpec(dims, spec.dtype)
        return self._specs[key]

    def _meaning(self, dim: Dim) -> Dim | int:
        """Returns what stands for a leaf of the graph."""
        if dim.table is self.table:
            return dim
        key = dim.key
        if isinstance(key, Axis) and key.var in self._by_key:
            return self._by_key[key.var].shape[key.axis]
        if isinstance(key, (Element, Extent)):
            values = self._values.of(key.source)
            if values is not None and isinstance(key, Extent):
                return int(values.shape[key.axis])
            if values is not None and isinstance(key, Element):
                value: Dim | int = values.reshape(-1)[key.index]
                return value
            key = evolve(key, source=self._array(key.source))
        return evolve(dim, table=self.table, key=key)

    def _array(self, array: Derived) -> Derived:
        """Returns an array of dimensions with all of them in normal form."""
        if self._is_shared:
            return array
        for part in computed_before(array, self._derived) if array not in self._derived else ():
            self._derived[part] = evolve(part, source=self._source(part), table=self.table)
        return self._derived[array]

    def _source(self, array: Derived) -> tuple[Any, ...] | Recipe:
        values = self._values.of(array)
        if values is not None:
            return tuple(values.reshape(-1).tolist())
        if not isinstance(array.source, Recipe):
            return tuple(map(self._dim, array.source))
        operands = tuple(self._array(o) if isinstance(o, Derived) else o for o in array.source.operands)
        return evolve(array.source, operands=operands, attrs=self._attrs(array.source.attrs))

    def _attrs(self, attrs: Attrs) -> Attrs:
        if not any(dims_in(v) for v in attrs.values()):
            return attrs
        return {name: self._value(value) for name, value in attrs.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(map(self._value, value))
        return self._dim(value) if isinstance(value, Dim) else value

    def _signature(self, operator: Operator) -> Signature:
        """Returns the signature of an operator of the graph in normal form."""
        signature, inputs = operator.signature, tuple(self.specs[v] for v in operator.inputs)
        if self._is_shared or not (
            is_symbolic(inputs, operator.attrs) or any(s.is_symbolic for s in signature.outputs)
        ):
            for var in operator.outputs:
                self._set(var, var.spec)
            return signature
        attrs = self._attrs(operator.attrs)
        outputs = self._outputs(operator.schema, inputs, attrs, signature.outputs)
        for var, spec in zip(operator.outputs, outputs, strict=True):
            self._set(var, spec)
        return Signature(inputs, outputs, attrs, signature.constants)

    def _outputs(self, schema: OpSchema, inputs: Specs, attrs: Attrs, sampled: Specs) -> Specs:
        """Returns what an operator gives; `sampled` is what it gives in the samples.

        A length that is not proved is a leaf of its own. The same operator gives the same ones again.
        """
        key = _signature_key(schema, inputs, attrs)
        if key is not None and key in self._inferred:
            return self._inferred[key]
        is_plain = schema.kernels and not bodies(schema, attrs)  # bodies have dimensions of other tables
        proved = (self.table.infer(schema, inputs, attrs) if is_plain else NOTHING).lengths
        outputs = tuple(
            self._spec(
                spec.with_shape(
                    [self._length(n, proved[i][axis] if proved else None) for axis, n in enumerate(spec.shape)]
                )
            )
            for i, spec in enumerate(sampled)
        )
        if key is not None:
            self._inferred[key] = outputs
        return outputs

    def _length(self, sampled: Dim | int, proved: Dim | int | None) -> Any:
        """Returns a length that is proved, if it agrees with the samples; else what stands there as a leaf."""
        if not isinstance(sampled, Dim):
            return sampled
        if proved is not None and all(sample_of(proved, j) == sampled.samples[j] for j in self.table.alive):
            return proved
        return sampled if sampled.table is self.table else evolve(sampled, table=self.table)

    def sign(self, schema: OpSchema, inputs: Specs, attrs: Attrs, constants: frozenset[int]) -> Signature:
        """Returns the signature of an operator that is added: it must fit all samples that are left.

        Raises OpError where it does not; UnknownLengthError for lengths in attributes that may be computed too late.
        """
        for dim in (d for value in attrs.values() for d in dims_in(value)):
            if not all(map(self._is_known, dim.leaves)):
                raise UnknownLengthError(f"{schema.name}: {dim} may not be known in front of the operator")
        first = _signed_in(schema, inputs, attrs, constants, self.table.alive[0])
        full = {n: as_tuples(attrs[n]) if dims_in(attrs.get(n)) else v for n, v in first.attrs.items()}
        key = _signature_key(schema, inputs, full)
        if key is None or key not in self._inferred:
            outputs = self._proved(schema, inputs, full, first) or self._in_samples(schema, inputs, full, constants)
            if key is not None:
                self._inferred[key] = outputs
            return Signature(inputs, outputs, full, constants)
        return Signature(inputs, self._inferred[key], full, constants)

    def _proved(self, schema: OpSchema, inputs: Specs, attrs: Attrs, first: Signature) -> Specs:
        """Returns what an operator gives where all of it is proved; else ()."""
        proved = NOTHING if bodies(schema, attrs) else self.table.infer(schema, inputs, attrs)
        if not proved.is_complete:
            return ()
        shapes: Any = proved.lengths
        return tuple(self._spec(s.with_shape(shape)) for s, shape in zip(first.outputs, shapes, strict=True))

    def _in_samples(self, schema: OpSchema, inputs: Specs, attrs: Attrs, constants: frozenset[int]) -> Specs:
        """Returns what an operator gives, from the numbers of each sample. Raises OpError where it does not fit one."""
        signed = {j: _signed_in(schema, inputs, attrs, constants, j) for j in self.table.alive}
        first = signed[self.table.alive[0]]
        kinds = {tuple((s.ndim, s.dtype) for s in one.outputs) for one in signed.values()}
        if len(kinds) > 1:
            raise UnknownLengthError(f"{schema.name}: what it gives depends on lengths that are not known yet")
        number = next(_NUMBERS)
        sampled = []
        for i, spec in enumerate(first.outputs):
            rows = [{j: one.outputs[i].shape[axis] for j, one in signed.items()} for axis in range(spec.ndim)]
            dims = [self._new(row, f"{_NEW}{number}:{i}", axis) for axis, row in enumerate(rows)]
            sampled.append(spec.with_shape(dims))
        return self._outputs(schema, inputs, attrs, tuple(sampled))

    def _new(self, lengths: Mapping[int, int], key: str, axis: int) -> Any:
        """Returns the length of a new tensor, by sample."""
        first = next(iter(lengths.values()))
        if len(set(lengths.values())) == 1:
            return first
        samples = tuple(lengths.get(j, 0) for j in range(SAMPLES))
        self._keys.add(key)
        return leaf(formula(lengths, self.table.named, key), samples, self.table, Axis(key, axis))

    def _is_known(self, key: Hashable) -> bool:
        """Returns whether the number of a leaf is known in front of any operator that is added."""
        return not isinstance(key, Axis) or key.var not in self._keys or key.var in self._anchors

    def _pinned(self) -> frozenset[Var]:
        """Returns the vars that lengths come from: their shapes or data must stay known, under their names."""
        leaves = set[Hashable]().union(*(g.leaves for g in self.guards))
        arrays = list(self.derived.values())
        for operator, signature in zip(self._graph.operators, self.signatures, strict=True):
            leaves.update(*(d.leaves for value in signature.attrs.values() for d in dims_in(value)))
            leaves.update(*map(body_leaves, bodies_in(operator)))
        self._anchors = {self._graph.key(name) for name in self._graph.inputs} | vars_of(leaves, arrays)
        names = {self._graph.key(name): var for name, var in self._graph.vars.items()}
        computed = {var for op in self._graph.operators for var in op.outputs}
        return frozenset(v for k in self._anchors if (v := names.get(k)) in computed)

    def dim(self, dim: Any) -> Any:
        """Returns a dimension of the graph in normal form."""
        return self._dim(dim)

    def waits_for(self, operator: Operator, arrays: Sequence[Derived]) -> set[str]:
        """Returns the keys of the vars whose shapes or data decide the attributes of an operator, or these arrays."""
        leaves = set[Hashable]().union(*(d.leaves for value in operator.attrs.values() for d in dims_in(value)))
        leaves.update(*map(body_leaves, bodies_in(operator)))
        return vars_of(leaves, arrays)

    def renamed(self, specs: Sequence[tuple[str, TensorSpec]]) -> Callable[[str, TensorSpec], TensorSpec]:
        """Returns a function that gives the specs of a written graph, whose vars have these keys and specs.

        A length that is named after a var that is not there any more is named after the first var that has it.
        """
        gone = self._keys - {key for key, _ in specs}
        leaves = {d.key for d in self._forms.leaves() if isinstance(d.key, Axis) and d.key.var in gone}
        if not leaves:
            return lambda _, spec: spec
        names: dict[Hashable, Dim] = {}
        for key, spec in specs:
            for axis, dim in enumerate(spec.shape):
                if isinstance(dim, Dim) and not dim.parts and dim.key in leaves and dim.key not in names:
                    names[dim.key] = _own(dim, key, axis)

        def renamed(key: str, spec: TensorSpec) -> TensorSpec:
            dims: list[Any] = list(spec.shape)
            for axis, dim in enumerate(dims):
                used = dim.leaves & leaves if isinstance(dim, Dim) else frozenset[Hashable]()
                if used:
                    dims[axis] = self._dim(with_leaves(dim, names) if used <= names.keys() else _own(dim, key, axis))
            return self._spec(spec.with_shape(dims))

        return renamed


def _signed_in(schema: OpSchema, inputs: Specs, attrs: Attrs, constants: frozenset[int], sample: int) -> Signature:
    """Returns the signature of an operator with the numbers of a sample. Raises OpError."""
    specs = [s.with_shape(in_sample(s.shape, sample)) if s.is_symbolic else s for s in inputs]
    return schema.sign(specs, {name: in_sample(value, sample) for name, value in attrs.items()}, constants)


def _own(dim: Dim, key: str, axis: int) -> Dim:
    """Returns a length as a leaf that is named after an axis of a var."""
    text = f"{key}.{axis}" if dim.text.startswith(_NEW) else dim.text
    return Dim(text, dim.samples, dim.table, Axis(key, axis), strength=dim.strength, is_length=True)


def _signature_key(schema: OpSchema, inputs: Specs, attrs: Attrs) -> Hashable:
    """Returns a key that is equal for equal uses of an operator; None where attributes are no plain values."""
    try:
        values = tuple((name, attribute_key(value)) for name, value in attrs.items())
    except TypeError:
        return None
    return schema, values, *(id(s) if s.is_symbolic else s for s in inputs)


def attribute_key(value: Any) -> Hashable:
    """Returns a key that is equal for equal values only: 1, 1.0 and True differ, and so do 0.0 and -0.0.

    Dimensions are equal where they are one object. Raises TypeError for a body.
    """
    if isinstance(value, tuple):
        return tuple(map(attribute_key, value))
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Dim):
        return Dim, id(value)
    if value is None or isinstance(value, (bool, int, str, np.dtype)):
        return type(value), value
    raise TypeError(f"{value!r} is no plain value")


def bodies_in(operator: Operator) -> Iterator[Graph]:
    """Yields the graphs of the bodies of an operator, planned or not."""
    for value in operator.attrs.values():
        body = getattr(value, "graph", value)
        if isinstance(body, Graph):
            yield body


def body_leaves(body: Graph) -> frozenset[Hashable]:
    """Returns the leaves of all dimensions in a body, and in the bodies in it."""
    leaves = set[Hashable]().union(*(g.leaves for g in body.guards))
    leaves.update(*(d.leaves for v in body.inputs.values() for d in dims_in(v.shape)))
    for array in body.derived.values():
        leaves.update(Datum(key, 0) for key in vars_of((), [array]))
    for operator in body.operators:
        leaves.update(*(d.leaves for value in operator.attrs.values() for d in dims_in(value)))
        leaves.update(*map(body_leaves, bodies_in(operator)))
    return frozenset(leaves)


def vars_of(leaves: Iterable[Hashable], arrays: Sequence[Derived]) -> set[str]:
    """Returns the keys of the vars that leaves and arrays depend on."""
    keys, left, seen, names = set(leaves), list(arrays), set[Derived](), set[str]()
    while keys or left:
        names.update(k.var for k in keys if isinstance(k, (Axis, Datum)))
        left += [k.source for k in keys if isinstance(k, (Element, Extent))]
        keys = set()
        if left and (array := left.pop()) not in seen:
            seen.add(array)
            left += array.operands
            keys = {key for dim in array.dims for key in dim.leaves}
    return names
