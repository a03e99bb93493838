"""Judge 0 for open dimensions: lengths agree in all samples, what decides them stays known, and no guard is lost.

It trusts no proof of a pass: it infers operators again in each sample, and looks each leaf up.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import zip_longest
from typing import Any

from attrs import field, frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.symbols import Axis, Datum, Derived, Element, Extent, Symbol
from engine.text.errors import PassError
from ops.schema.schema import Attrs, Specs
from ops.tensor.dims import Dim, Guard, dims_in, in_sample
from ops.tensor.errors import OpError
from ops.tensor.spec import TensorSpec


@frozen(eq=False)
class SampledLengths:
    """The samples that a graph and its successor have, in which their lengths are compared."""

    alive: tuple[int, ...]
    _rows: dict[int, tuple[Dim, Hashable]] = field(factory=dict)
    _inferred: set[Hashable] = field(factory=set)

    def row(self, dim: Dim | int) -> Hashable:
        """Returns the number of a dimension in each sample, one number where it is the same in all."""
        if not isinstance(dim, Dim):
            return dim
        if id(dim) not in self._rows:
            numbers = tuple(dim.samples[j] for j in self.alive)
            self._rows[id(dim)] = (dim, numbers[0] if len(set(numbers)) == 1 else numbers)
        return self._rows[id(dim)][1]

    def shape(self, spec: TensorSpec) -> Hashable:
        """Returns a spec as a key that is equal for specs of equal lengths in all samples."""
        return (spec.dtype, *map(self.row, spec.shape)) if spec.is_symbolic else spec

    def alike(self, some: Specs, others: Specs) -> bool:
        """Returns whether specs have equal lengths in all samples."""
        pairs = zip(some, others, strict=False)
        return len(some) == len(others) and all(a is b or self.shape(a) == self.shape(b) for a, b in pairs)

    def value(self, value: Any) -> Any:
        """Returns an attribute with such keys in place of dimensions."""
        if isinstance(value, (tuple, list)):
            return tuple(map(self.value, value))
        return self.row(value) if isinstance(value, Dim) else value

    def same_attrs(self, one: Attrs, other: Attrs) -> bool:
        """Returns whether attributes are the same objects, but for dimensions that are equal in all samples."""
        pairs = ((value, other.get(name)) for name, value in one.items())
        return one.keys() == other.keys() and all(
            a is b or (bool(dims_in(a)) and self.value(a) == self.value(b)) for a, b in pairs
        )

    def guard(self, guard: Guard) -> Hashable:
        """Returns what a guard says, as such a key."""
        return guard.relation, guard.holds, self.row(guard.left), self.row(guard.right)

    def check_inferred(self, operator: Operator, constants: frozenset[int]) -> None:
        """Infers an operator in each sample, once for equal uses of its schema.

        Raises PassError where it gives something else than it says.
        """
        signature = operator.signature
        specs = tuple(map(self.shape, signature.inputs)), tuple(map(self.shape, signature.outputs))
        attrs = tuple((name, self.value(value)) for name, value in operator.attrs.items())
        use = operator.schema, constants, specs, attrs
        for j in self.alive if not self._is_known(use) else ():
            inputs, outputs = (
                [s.with_shape(in_sample(s.shape, j)) for s in specs] for specs in (signature.inputs, signature.outputs)
            )
            try:
                again = operator.schema.sign(inputs, {n: in_sample(v, j) for n, v in operator.attrs.items()}, constants)
            except OpError as error:
                raise PassError(f"{operator} does not take its inputs: {error}") from error
            if list(again.outputs) != outputs:
                raise PassError(f"{operator} gives {again.outputs} in a sample, and says {signature.outputs}")

    def _is_known(self, use: Hashable) -> bool:
        """Returns whether an equal use was asked for before; False for attributes that cannot be looked up."""
        try:
            is_known = use in self._inferred
        except TypeError:
            return False
        self._inferred.add(use)
        return is_known


def sampled_lengths(before: Graph, after: Graph) -> SampledLengths:
    """Returns the samples of both graphs. Raises PassError where a pass gave some up."""
    if before.samples.alive != after.samples.alive:
        raise PassError(f"a pass gave up samples of graph {before.name!r}")
    return SampledLengths(tuple(before.samples.alive))


def check_lengths(before: Graph, after: Graph, lengths: SampledLengths) -> None:
    """Raises PassError where a guard is lost or is checked too late, or a length comes from something unknown."""
    position = {after.key(name): -1 for name in after.inputs}
    position |= {after.key(v.name): i for i, op in enumerate(after.operators) for v in op.outputs}
    own = {before.key(name) for name in before.vars}
    used = _keys(_all_dims(before), before.derived.values())
    foreign = {k for k in used if not isinstance(k, (Axis, Datum)) or k.var not in own}
    check = _Sources(after, position, foreign).check
    for i, op in enumerate(after.operators):
        arrays = [after.derived[v] for v in op.inputs if v in after.derived]
        check(str(op), _keys(dims_in(tuple(op.attrs.values())), arrays), i)
    stays = _by_statement(after, lengths)
    places = {op.name: i for i, op in enumerate(after.operators)}
    first = [len(places)]  # of the operators from each one on, backwards: where the first of them stands now
    for op in reversed(before.operators):
        first.append(min(first[-1], places.get(op.name, first[-1])))
    first.reverse()
    pairs = [
        (guard, kept)
        for statement, guards in _by_statement(before, lengths).items()
        for guard, kept in zip_longest(guards, stays.get(statement, ())[: len(guards)])
    ]
    for guard, kept in pairs:
        if kept is None:
            raise PassError(f"nobody checks any more whether {guard} is {guard.holds}")
        keys = _keys([d for d in (kept.left, kept.right) if isinstance(d, Dim)], ())
        check(f"guard {kept}", keys, kept.position)
        needed = max((position[v] + 1 for v in _vars(keys) if v in position), default=0)
        if kept.position > max(needed, first[min(guard.position, len(before.operators))]):
            raise PassError(f"guard {kept} is checked behind operators that rely on it")


def _by_statement(graph: Graph, lengths: SampledLengths) -> dict[Hashable, list[Guard]]:
    """Returns the guards of each statement, in the order in which they are checked."""
    guards: dict[Hashable, list[Guard]] = {}
    for guard in sorted(graph.guards, key=lambda g: g.position):
        guards.setdefault(lengths.guard(guard), []).append(guard)
    return guards


def _all_dims(graph: Graph) -> list[Dim]:
    attrs = [d for op in graph.operators for d in dims_in(tuple(op.attrs.values()))]
    sides = [d for g in graph.guards for d in (g.left, g.right) if isinstance(d, Dim)]
    return attrs + sides + [d for v in graph.inputs.values() for d in dims_in(v.shape)]


@frozen(eq=False)
class _Sources:
    """The sources of numbers: `position` has operators by keys of outputs, `foreign` has leaves of graphs around."""

    graph: Graph
    position: Mapping[str, int]
    foreign: Collection[Hashable]

    def check(self, what: str, keys: Iterable[Hashable], before: int) -> None:
        """Raises PassError where a leaf is not known in front of the operator at this position."""
        for key in keys:
            if isinstance(key, Symbol) and key.name in self.graph.symbols:
                continue
            if isinstance(key, (Axis, Datum)) and self.position.get(key.var, before) < before:
                continue
            if key not in self.foreign:
                raise PassError(f"{what} depends on {key}, which is not known there")


def _vars(keys: Iterable[Hashable]) -> list[str]:
    return [k.var for k in keys if isinstance(k, (Axis, Datum))]


def _keys(dims: Iterable[Dim], arrays: Iterable[Derived]) -> set[Hashable]:
    """Returns the keys of all leaves, those of arrays included."""
    keys, arrays_left, dims_left, seen = set[Hashable](), list(arrays), list(dims), set[Derived]()
    while arrays_left or dims_left:
        for key in {k for d in dims_left for k in d.leaves}:
            if isinstance(key, (Element, Extent)):
                arrays_left.append(key.source)
            else:
                keys.add(key)
        dims_left = []
        if arrays_left and (array := arrays_left.pop()) not in seen:
            seen.add(array)
            arrays_left += array.operands
            dims_left = array.dims
    return keys
