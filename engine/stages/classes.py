"""The values and instructions of a network that have one geometry whatever the lengths are.

Dense values whose shapes are written alike are of one class, and so are instructions of one number (pattern.py) whose
operands are of one class each. So what lengths decide is derived once for repeated layers. No shape is believed: the
geometries of a class are compared for each choice of lengths, wherever one is derived.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from attrs import define, field, frozen

from allocator.problem import Column
from engine.graph.symbols import Axis
from engine.lower.calls import Call, Lowered
from engine.stages.geometry import CallTemplate, Geometries, ValueGeometry
from ops.tensor.dims import Dim
from ops.tensor.spec import Shape, TensorSpec

Readers = tuple[tuple[int, int], ...]
"""Readers of a value: the instruction of each, and the position of the operand."""
Number = Dim | tuple[int, int]
"""A dimension; one that is the length of a value along an axis as the class of the value, and the axis."""


@frozen(eq=False)
class CallClass:
    """Instructions that have one geometry whatever the lengths are: those of repeated layers, for example.

    `template` is the first of them; operands, what is written and `dims` are those of the template, as classes of
    values.
    """

    template: CallTemplate
    operands: tuple[int, ...]
    written: tuple[int, ...]
    dims: tuple[Number, ...]


@frozen(eq=False)
class Classes:
    """The classes of all values and instructions. `values` and `calls` have the class of each one, by id and position.

    `inputs` has the class, the name and the spec of each input; `constants` has the geometries that never change,
    `derived` the value of each class whose elements lengths decide. `keys` maps the keys of bindings to classes.
    `readers` has the classes of calls that choose their kernel by their readers too.
    """

    all: tuple[CallClass, ...]
    values: Column
    calls: Column
    inputs: tuple[tuple[int, str, TensorSpec], ...]
    constants: Mapping[int, ValueGeometry]
    derived: Mapping[int, int]
    keys: Mapping[str, int]
    readers: tuple[tuple[int, Readers], ...]


@define(eq=False)
class ClassFinder:
    """Finds the classes; `shapes` are those of inputs and of results, by value, as the graph has them.

    `keys` maps the keys of bindings to values; `derived` are the values whose elements lengths decide.
    """

    lowered: Lowered
    geometries: Geometries
    shapes: Mapping[int, Shape]
    keys: Mapping[str, int]
    derived: frozenset[int]
    _values: dict[int, int] = field(factory=dict)
    _numbers: dict[Hashable, int] = field(factory=dict)
    _found: dict[Hashable, CallClass] = field(factory=dict)
    _calls: dict[Hashable, int] = field(factory=dict)

    def run(self, templates: Sequence[CallTemplate], readers: Mapping[int, Readers]) -> Classes:
        """Returns the classes of the instructions of these templates; `readers` are those of some, by position."""
        values, lowered = self.lowered.values, self.lowered
        inputs = [(self._dense(v, self.shapes[v]), values[v].name, values[v].spec) for v in lowered.inputs.values()]
        fixed = [values[v] for v in lowered.constants if v not in self.derived]
        constants = {self._dense(v.id, v.spec.shape): self.geometries.dense(v.spec.shape, v.spec.dtype) for v in fixed}
        derived = {self._class_of(v, ("derived", v)): v for v in self.derived}
        calls = [self._add(template) for template in templates]
        waiting = ((calls[i], tuple((calls[j], operand) for j, operand in of)) for i, of in readers.items())
        return Classes(
            tuple(self._found.values()),
            np.array([self._values[v.id] for v in values], np.int64),
            np.array(calls, np.int64),
            tuple(inputs),
            constants,
            derived,
            {key: self._values[v] for key, v in self.keys.items()},
            tuple(dict.fromkeys(waiting)),
        )

    def _class_of(self, value: int, key: Hashable) -> int:
        number = self._values[value] = self._numbers.setdefault(key, len(self._numbers))
        return number

    def _dense(self, value: int, shape: Shape) -> int:
        """Returns the class of a value that owns its bytes, by what is written of its shape."""
        dtype = self.lowered.values[value].spec.dtype
        return self._class_of(value, ("dense", dtype, tuple(map(self._wording, shape))))

    def _add(self, template: CallTemplate) -> int:
        """Returns the class of an instruction; one with a body has a class of its own."""
        operands = tuple(self._values[v] for v in template.operands)
        own = template if template.has_body else None
        key = template.number, operands, tuple(map(self._wording, template.dims)), own
        if key not in self._found:
            number = self._calls[key] = len(self._calls)
            written = tuple(self._written(template, number, i) for i in range(len(template.written)))
            self._found[key] = CallClass(template, operands, written, tuple(map(self._number, template.dims)))
        self._values.update(zip(template.written, self._found[key].written, strict=True))
        return self._calls[key]

    def _written(self, template: CallTemplate, number: int, i: int) -> int:
        value = template.written[i]
        owns = isinstance(template.instruction, Call) and value in self.shapes
        return self._dense(value, self.shapes[value]) if owns else self._class_of(value, ("written", number, i))

    def _number(self, dim: Dim) -> Number:
        if isinstance(dim.key, Axis) and self.keys.get(dim.key.var) in self._values:
            return self._values[self.keys[dim.key.var]], dim.key.axis
        return dim

    def _wording(self, dim: Dim | int) -> Hashable:
        """Returns a key of a dimension that is equal where its number is. It compares none, since that would decide."""
        if not isinstance(dim, Dim):
            return dim
        number = self._number(dim)
        if not isinstance(number, Dim):
            return number
        return (dim.sign, *map(self._wording, dim.parts)) if dim.parts else dim.key
