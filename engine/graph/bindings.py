"""The bindings of a graph with symbolic dimensions: lengths, shapes of vars, and the data that decide sizes."""

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import define, field

from engine.graph.symbols import Axis, Datum, Derived, Element, Extent, Recipe, Symbol, compute, computed_before
from ops.tensor.dims import Dim, replaced, value_of
from ops.tensor.errors import ShapeError
from ops.tensor.spec import Array, Shape


def _unknown(leaf: Dim) -> int:
    raise LookupError(f"nothing says what {leaf} is ({leaf.key!r})")


def _element(var: str, array: Array, index: int) -> int:
    if not -array.size <= index < array.size:
        raise ShapeError(f"element {index} of {var!r} decides a size, but it has {array.size} element(s)")
    return int(array.reshape(-1)[index])


@define(eq=False)
class Bindings:
    """Numbers for dimensions: `lengths` by the name of a symbol, `shapes` and `data` by the key of a var."""

    lengths: Mapping[str, int]
    shapes: dict[str, Shape] = field(factory=dict)
    data: dict[str, Array] = field(factory=dict)
    outside: Callable[[Dim], int] = _unknown
    _arrays: dict[Derived, Array] = field(factory=dict)
    _kept: dict[Derived, Array] = field(factory=dict)

    def number(self, leaf: Dim) -> int:
        """Returns the number of a leaf; `outside` is asked for leaves that are not bound here."""
        match leaf.key:
            case Symbol(name) if name in self.lengths:
                return self.lengths[name]
            case Axis(var, axis) if var in self.shapes:
                return self.shapes[var][axis]
            case Datum(var, index) if var in self.data:
                return _element(var, self.data[var], index)
            case Element(source, index):
                return int(self.array(source).reshape(-1)[index])
            case Extent(source, axis):
                return int(self.array(source).shape[axis])
        return self.outside(leaf)

    def value(self, attribute: Any) -> Any:
        """Returns an attribute with numbers in place of dimensions."""
        return replaced(attribute, lambda dim: value_of(dim, self.number))

    def array(self, derived: Derived) -> Array:
        """Returns an array that depends on dimensions; it is computed once."""
        arrays = self._kept if derived.is_kept else self._arrays
        if derived not in arrays:
            for array in computed_before(derived, ChainMap(self._arrays, self._kept)):
                (self._kept if array.is_kept else self._arrays)[array] = self._computed(array)
        return arrays[derived]

    def decide(self, keys: frozenset[str]) -> bool:
        """Returns whether the data of these keys are bound, here or outside."""
        return keys <= self.data.keys() or self.outside is not _unknown

    def forget(self, scope: str) -> None:
        """Removes the bindings of vars whose keys begin with `scope`, and all arrays except those that are kept."""
        for table in (self.data, self.shapes):
            for key in [k for k in table if k.startswith(scope)]:
                del table[key]
        self._arrays.clear()

    def after(self, data: Mapping[str, Array]) -> "Bindings":
        """Returns the same bindings with more data; later changes do not reach these bindings."""
        arrays = dict(self._arrays), dict(self._kept)
        return Bindings(self.lengths, dict(self.shapes), {**self.data, **data}, self.outside, *arrays)

    def _computed(self, derived: Derived) -> Array:
        if not isinstance(derived.source, Recipe):
            shape = next(iter(derived.samples.values())).shape
            return np.array(self.value(derived.source), derived.dtype).reshape(shape)
        recipe = derived.source
        operands = [self.array(o) if isinstance(o, Derived) else o for o in recipe.operands]
        return compute(recipe.schema, operands, {n: self.value(v) for n, v in recipe.attrs.items()})[recipe.output]
