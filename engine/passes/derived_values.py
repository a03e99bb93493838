"""The elements of arrays that depend on dimensions only, as dimensions: what ONNX writes as Shape, Gather, Concat.

An element that is read through a chain of operators is then the dimension that it is, and can be compared.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import define, field

from engine.graph.symbols import Derived, Recipe, compute, computed_before
from ops.elementwise.binary import ADD, MUL, SUB
from ops.elementwise.cast import CAST
from ops.movement.concat import CONCAT
from ops.schema.schema import OpSchema
from ops.tensor.dims import Dim, sample_of
from ops.tensor.errors import OpError
from ops.tensor.spec import INTEGERS, Array

_ARITHMETIC: Mapping[OpSchema, Callable[[Any, Any], Any]] = {ADD: np.add, SUB: np.subtract, MUL: np.multiply}
_MOST = 256
"""Elements of an array, at most. Shapes have fewer; a larger number takes longer."""
_TAG = 2**40
"""The least number that stands for an element: no index and no length is as large."""


@define(eq=False)
class DerivedValues:
    """Arrays of dimensions by derived array; `dim` brings a dimension into the form in which it shall be."""

    dim: Callable[[Any], Any]
    _values: dict[Derived, Array | None] = field(factory=dict)

    def of(self, array: Derived) -> Array | None:
        """Returns the elements as an array of dimensions and numbers; None where they cannot be told one by one."""
        for part in computed_before(array, self._values) if array not in self._values else ():
            values = self._elements(part) if part.dtype in INTEGERS else None
            self._values[part] = values if values is not None and _agrees(values, part) else None
        return self._values[array]

    def _elements(self, array: Derived) -> Array | None:
        shapes = {array.samples[j].shape for j in array.table.alive}
        if len(shapes) > 1 or np.prod(next(iter(shapes))) > _MOST:
            return None
        if not isinstance(array.source, Recipe):
            return _objects([self.dim(n) for n in array.source], next(iter(shapes)))
        operands = [self._operand(o) for o in array.source.operands]
        arrays = [o for o in operands if o is not None]
        return self._applied(array.source, arrays) if len(arrays) == len(operands) else None

    def _operand(self, operand: Derived | Array) -> Array | None:
        if isinstance(operand, Derived):
            return self.of(operand)
        return operand.astype(object) if operand.dtype in INTEGERS and operand.size <= _MOST else None

    def _applied(self, recipe: Recipe, operands: list[Array]) -> Array | None:
        """Returns what an operator makes of such arrays; None for one that is not known here."""
        if recipe.schema is CAST:
            return operands[0]
        if recipe.schema in _ARITHMETIC:
            result = np.asarray(_ARITHMETIC[recipe.schema](*operands), object)
            return _objects([self.dim(n) for n in result.reshape(-1)], result.shape)
        others = () if recipe.schema is CONCAT else operands[1:]
        if not recipe.schema.bit_copies or any(isinstance(n, Dim) for o in others for n in o.reshape(-1)):
            return None
        return _moved(recipe, operands)


def _moved(recipe: Recipe, operands: list[Array]) -> Array | None:
    """Returns what an operator that copies elements gives: it is run on numbers that stand for them."""
    tags: dict[int, Any] = {}
    arrays = []
    for i, operand in enumerate(operands):
        if i and recipe.schema is not CONCAT:
            arrays.append(operand.astype(np.int64))
            continue
        first = _TAG + len(tags)
        tags.update(enumerate(operand.reshape(-1), first))
        arrays.append(np.arange(first, first + operand.size, dtype=np.int64).reshape(operand.shape))
    try:
        result = compute(recipe.schema, arrays, recipe.attrs)[recipe.output]
    except OpError:
        return None
    numbers = result.reshape(-1).tolist()
    return _objects([tags[n] for n in numbers], result.shape) if tags.keys() >= set(numbers) else None


def _objects(values: list[Any], shape: tuple[int, ...]) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def _agrees(values: Array, array: Derived) -> bool:
    """Returns whether the elements are those of each sample."""
    flat = values.reshape(-1)
    return all(
        values.shape == array.samples[j].shape
        and [sample_of(n, j) for n in flat] == array.samples[j].reshape(-1).tolist()
        for j in array.table.alive
    )
