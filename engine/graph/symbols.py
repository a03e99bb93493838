"""Symbols: the sources of the numbers of dimensions, and arrays that depend on dimensions only."""

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.schema.schema import Attrs, OpSchema, Signature, evaluate
from ops.symbolic.infer import draft, formula, no_length_fits
from ops.tensor.dims import SAMPLES, Dim, Samples, dims_in, in_sample, leaf
from ops.tensor.errors import DataError, OpError, ShapeError
from ops.tensor.spec import Array, TensorSpec, spec_of

MOST_BYTES = 2**16
"""Most bytes of an array that is computed when shapes are bound; larger ones are computed in the run."""
_LONGEST = 40
"""Most characters of a formula in an error or in the text of a graph."""


@frozen
class Symbol:
    """A name in the shape of an input."""

    name: str


@frozen
class Axis:
    """The length of a var along an axis, by the name of the var."""

    var: str
    axis: int


@frozen
class Datum:
    """An element of a var in C order, known when the var has been computed."""

    var: str
    index: int


@frozen(eq=False)
class Recipe:
    """An operator that computes an array from others: its output number `output`; `text` shows it as a call."""

    schema: OpSchema
    operands: "tuple[Derived | Array, ...]"
    attrs: Attrs
    output: int
    text: str


@frozen(eq=False)
class Derived:
    """A small array that is computed when shapes are bound, before the network runs.

    `source` has its elements in C order, some of them dimensions, or a recipe. `samples` has the array in each sample
    that is still possible; `lengths` are its dimensions as text. If `is_kept`, it keeps the numbers of its first
    computation also when dimensions change: those of one turn of a loop.
    """

    source: tuple[Any, ...] | Recipe
    dtype: np.dtype[Any]
    lengths: tuple[str, ...]
    table: Samples = field(repr=False)
    samples: Mapping[int, Array] = field(repr=False)
    is_kept: bool = False

    @property
    def dims(self) -> list[Dim]:
        """The dimensions that stand in its source."""
        return dims_in(tuple(self.source.attrs.values()) if isinstance(self.source, Recipe) else self.source)

    @property
    def operands(self) -> "list[Derived]":
        """The arrays of its kind that it is computed from."""
        recipe = self.source.operands if isinstance(self.source, Recipe) else ()
        return [o for o in recipe if isinstance(o, Derived)]

    @property
    def spec(self) -> TensorSpec:
        """The shape and dtype; lengths may be dimensions."""
        dims: Any = tuple(self._length(axis, text) for axis, text in enumerate(self.lengths))
        return TensorSpec(dims, self.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of all axes; some may be dimensions."""
        return self.spec.shape

    @property
    def size(self) -> int:
        """The number of elements. Raises ShapeError where that is no number."""
        sizes = {self.samples[j].size for j in self.table.alive}
        if len(sizes) > 1:
            raise ShapeError(f"how many elements an array has ({', '.join(self.lengths)}) is not known yet")
        return sizes.pop()

    def elements(self) -> tuple[Any, ...]:
        """Returns all elements in C order, as dimensions and numbers.

        Raises ShapeError where their number is not known.
        """
        return tuple(self._element(i) for i in range(self.size))

    def _element(self, index: int) -> Dim | int:
        """Returns a number where it is the same in all samples, which a guard then checks."""
        if isinstance(self.source, tuple):
            element: Dim | int = self.source[index]
            return element
        numbers = {j: int(self.samples[j].reshape(-1)[index]) for j in self.table.alive}
        return _leaf(numbers, self._text_of(index), Element(self, index), self.table)

    def _text_of(self, index: int) -> str:
        """Returns the text of an element, such as `min(n,10)`. Decides nothing."""
        if isinstance(self.source, tuple):
            return str(self.source[index])
        text = self.source.text
        return text if all(self.samples[j].size == 1 for j in self.table.alive) else f"element {index} of {text}"

    def __str__(self) -> str:
        """Returns the text of its only element, or of how it is made."""
        if isinstance(self.source, tuple):
            return ",".join(map(str, self.source)) if len(self.source) == 1 else f"[{','.join(map(str, self.source))}]"
        numbers = {j: self.samples[j].reshape(-1) for j in self.table.alive}
        if any(n.size != 1 for n in numbers.values()):
            return self.source.text
        return str(formula({j: int(n[0]) for j, n in numbers.items()}, self.table.named, self.source.text))

    def _length(self, axis: int, text: str) -> Dim | int:
        return _leaf({j: self.samples[j].shape[axis] for j in self.table.alive}, text, Extent(self, axis), self.table)


@frozen(eq=False)
class Element:
    """An element of a derived array."""

    source: Derived
    index: int


@frozen(eq=False)
class Extent:
    """The length of a derived array along an axis."""

    source: Derived
    axis: int


def computed_before(array: Derived, present: Container[Derived] = ()) -> list[Derived]:
    """Returns an array and all that it is computed from, each once, operands first; none that is `present` already."""
    order: dict[Derived, None] = {}
    left = [array]
    while left:
        waiting = [o for o in left[-1].operands if o not in order and o not in present]
        if waiting:
            left += waiting
        else:
            order.setdefault(left.pop())
    return list(order)


def data_behind(leaves: Iterable[Hashable], arrays: Iterable[Derived] = ()) -> frozenset[Datum]:
    """Returns the elements of vars that decide dimensions with these leaves, and these arrays."""
    data, seen = set[Datum](), set[Derived]()
    keys, left = set(leaves), list(arrays)
    while keys or left:
        data.update(key for key in keys if isinstance(key, Datum))
        left += [key.source for key in keys if isinstance(key, (Element, Extent))]
        keys = set()
        if left and (array := left.pop()) not in seen:
            seen.add(array)
            left += array.operands
            keys = {key for dim in array.dims for key in dim.leaves}
    return frozenset(data)


def of_dims(dims: Sequence[Any], shape: Sequence[int], dtype: np.dtype[Any], table: Samples) -> Derived | Array:
    """Returns an array whose elements are dimensions and numbers; a plain array where all are numbers."""
    if not dims_in(tuple(dims)):
        return np.array(dims, dtype).reshape(shape)
    samples = {j: np.array(in_sample(tuple(dims), j), dtype).reshape(shape) for j in table.alive}
    return Derived(tuple(dims), dtype, tuple(map(str, shape)), table, samples)


def derive(schema: OpSchema, operands: Sequence[Derived | Array], attrs: Attrs, table: Samples) -> tuple[Derived, ...]:
    """Applies an operator to such arrays; returns () where a result would be too large. Raises OpError.

    Samples that its kernel refuses (an index that is too large, for example) are dropped, as those that do not fit are,
    and as long ones are in which alone a result would be too large.
    """
    before = list(table.alive)
    specs = [o.spec if isinstance(o, Derived) else spec_of(o) for o in operands]
    drafted = draft(schema, specs, attrs, frozenset(), table)
    small = [j for j, g in drafted.signatures.items() if all(s.nbytes <= MOST_BYTES for s in g.outputs)]
    if len(small) < 2 or not table.typical() <= set(small):
        return ()
    table.keep(small)
    runs, faults = _runs(schema, operands, attrs, table.alive)
    if len(runs) < 2:
        table.keep(before)
        dims = [d for o in operands if isinstance(o, Derived) for d in o.dims]
        raise ShapeError(f"{schema.name}: {no_length_fits(dims, faults)}") from next(iter(faults.values()))
    table.keep(runs)
    signed: Signature = drafted.signed(lambda output, axis: (f"{schema.name}.{output}.{axis}", (output, axis)))
    return tuple(
        Derived(
            Recipe(schema, tuple(operands), attrs, i, _called(schema, operands, i)),
            spec.dtype,
            tuple(map(str, spec.shape)),
            table,
            {j: arrays[i] for j, arrays in runs.items()},
        )
        for i, spec in enumerate(signed.outputs)
    )


def compute(schema: OpSchema, arrays: Sequence[Array], attrs: Attrs) -> tuple[Array, ...]:
    """Computes an operator on arrays. Raises OpError where they do not fit, or its kernel refuses them."""
    try:
        with np.errstate(all="ignore"):
            return evaluate(schema, *arrays, **attrs)
    except (ArithmeticError, DataError, IndexError, MemoryError, ValueError) as error:
        if isinstance(error, OpError) and not isinstance(error, (DataError, IndexError)):
            raise  # an error of specs names the operator already
        raise ShapeError(f"{schema.name}: {error}") from error


def _runs(
    schema: OpSchema, operands: Sequence[Derived | Array], attrs: Attrs, samples: Iterable[int]
) -> tuple[dict[int, tuple[Array, ...]], dict[int, OpError]]:
    """Returns the outputs of an operator in the samples that its kernel takes, and the errors in the others."""
    outputs: dict[int, tuple[Array, ...]] = {}
    faults: dict[int, OpError] = {}
    for j in samples:
        arrays = [o.samples[j] if isinstance(o, Derived) else o for o in operands]
        try:
            outputs[j] = compute(schema, arrays, {n: in_sample(v, j) for n, v in attrs.items()})
        except OpError as error:
            faults[j] = error
    return outputs, faults


def _called(schema: OpSchema, operands: Sequence[Derived | Array], output: int) -> str:
    """Returns a short text, however deep the operands are nested."""
    name = schema.name + (f":{output}" if output else "")
    text = f"{name}({','.join(map(_short, operands))})"
    return text if len(text) <= _LONGEST else f"{name}(...)"


def _short(operand: Derived | Array) -> str:
    """Returns an operand in few characters: an array of many elements by its shape."""
    if isinstance(operand, Derived):
        return str(operand)
    return str(operand.item()) if operand.size == 1 else str(spec_of(operand))


def _leaf(numbers: Mapping[int, int], text: str, key: Element | Extent, table: Samples) -> Dim | int:
    samples = tuple(numbers.get(j, 0) for j in range(SAMPLES))
    dim = leaf(formula(numbers, table.named, text), samples, table, key, is_length=isinstance(key, Extent))
    only = next(iter(numbers.values()))
    return only if len(set(numbers.values())) == 1 and dim == only else dim
