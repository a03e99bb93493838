"""What the plans of a network for all its lengths have in common, made once from a stage that was planned and judged.

For other lengths, the geometry of all calls is derived (geometry.py), and with it the sizes of all values. Where all
choices of lowering are the same, so are instructions, values, lifetimes and overwrites, and only numbers are new.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from engine.graph.bindings import Bindings
from engine.graph.symbols import Axis, Derived
from engine.lower.backends import backends_of
from engine.lower.calls import Call, Instruction, Join, Lowered, Role, Storage
from engine.lower.lowering import LoweringChoices
from engine.planning.options import Options
from engine.stages.classes import Classes, ClassFinder, Readers
from engine.stages.geometry import (
    CallGeometry,
    CallTemplate,
    Geometries,
    LoweringRules,
    OtherChoiceError,
    ValueGeometry,
)
from engine.stages.task import FinalGuards, Task, Template
from ops.schema.schema import any_strides, no_places
from ops.tensor.dims import Dim, Guard, value_of
from ops.tensor.layout import Layout
from ops.tensor.spec import FLOATS, Array, Shape

MOST_BYTES = 4096
"""Bytes of a constant that is not of floats up to which its elements are compared; a larger one equals only itself."""
MOST_GEOMETRIES = 1 << 14
"""Geometries of calls that are kept for the lengths to come. It trades memory against deriving them again."""


@frozen(eq=False)
class Fit:
    """The geometry of each value and of each instruction for some lengths, and the arrays that depend on them.

    `by_value` and `by_call` have the geometries of the classes. `spans` has a row for each value: first byte, end and
    first element, counted from the first byte of its owner.
    """

    classes: Classes = field(repr=False)
    by_value: Sequence[ValueGeometry]
    by_call: Sequence[CallGeometry]
    derived: Mapping[int, Array]
    spans: Array = field(init=False, repr=False)

    @spans.default
    def _spans(self) -> Array:
        spans = [(v.low, v.high, v.first) for v in self.by_value]
        return np.array(spans, np.int64).reshape(-1, 3)[self.classes.values]

    @property
    def values(self) -> list[ValueGeometry]:
        """The geometry of each value, by id."""
        return [self.by_value[number] for number in self.classes.values.tolist()]

    @property
    def calls(self) -> list[CallGeometry]:
        """The geometry of each instruction, by position."""
        return [self.by_call[number] for number in self.classes.calls.tolist()]

    def value(self, value: int) -> ValueGeometry:
        """Returns the geometry of a value."""
        return self.by_value[int(self.classes.values[value])]


@frozen(eq=False)
class Pattern:
    """The classes of a lowered network. `derived` are constants whose elements lengths decide, by value."""

    lowered: Lowered
    classes: Classes
    derived: Mapping[int, Derived]
    guards: tuple[Guard, ...]
    geometries: Geometries

    def fit(self, lengths: Mapping[str, int], shapes: Mapping[str, Shape], data: Mapping[str, Array]) -> Fit:
        """Derives the geometry of everything for some lengths, and checks all guards. `shapes` are those of the inputs.

        Raises OtherChoiceError where other instructions are right, OpError where the lengths do not fit.
        """
        self.geometries.forget(MOST_GEOMETRIES)
        fitting = _Fitting(self, dict(self.classes.constants))
        fitting.bindings = Bindings(lengths, dict(shapes), dict(data), fitting.length)
        return fitting.run()


@define(eq=False)
class _Fitting:
    """Geometries so far, by class; `derived` has arrays by value."""

    pattern: Pattern
    values: dict[int, ValueGeometry]
    derived: dict[int, Array] = field(factory=dict)
    calls: list[CallGeometry] = field(factory=list)
    bindings: Bindings = field(factory=lambda: Bindings({}))

    def run(self) -> Fit:
        classes, values, geometries = self.pattern.classes, self.values, self.pattern.geometries
        for number, name, spec in classes.inputs:
            self._set(number, geometries.dense(self.bindings.shapes[name], spec.dtype))
        by_operands, calls = geometries.by_operands, self.calls
        for call_class in classes.all:
            operands = [values[v] if v in values else self._derived(v) for v in call_class.operands]
            key: tuple[Hashable, ...] = (call_class.template.number, *operands, *map(self._number, call_class.dims))
            if call_class.template.has_body:  # planned for each choice of lengths
                key = *key, call_class, self.bindings
            call = by_operands.get(key)
            if call is None:
                call = by_operands[key] = geometries.of_call(call_class.template, operands, self.bindings)
            calls.append(call)
            for number, geometry in zip(call_class.written, (*call.outputs, *call.workspace), strict=True):
                self._set(number, geometry)
        for guard in self.pattern.guards:
            guard.check(self.bindings.number)
        self._check_readers()
        by_value = [values[v] if v in values else self._derived(v) for v in range(classes.values.max(initial=-1) + 1)]
        return Fit(classes, by_value, calls, self.derived)

    def _set(self, number: int, geometry: ValueGeometry) -> None:
        """Notes the geometry of a class of values. Raises OtherChoiceError where it has another one already."""
        first = self.values.setdefault(number, geometry)
        if first is not geometry and (first.spec, first.layout) != (geometry.spec, geometry.layout):
            raise OtherChoiceError

    def length(self, leaf: Dim) -> int:
        """Returns the length that a leaf stands for: that of a value along an axis."""
        key, keys = leaf.key, self.pattern.classes.keys
        if isinstance(key, Axis) and key.var in keys:
            return self.values[keys[key.var]].spec.shape[key.axis]
        raise LookupError(f"nothing says what {leaf} is ({key!r})")

    def _number(self, dim: Dim | tuple[int, int]) -> int:
        if isinstance(dim, tuple):
            return self.values[dim[0]].spec.shape[dim[1]]
        return value_of(dim, self.bindings.number)

    def _derived(self, number: int) -> ValueGeometry:
        value = self.pattern.classes.derived[number]
        array = self.derived[value] = self.bindings.array(self.pattern.derived[value])
        geometry = self.values[number] = self.pattern.geometries.dense(array.shape, array.dtype)
        return geometry

    def _check_readers(self) -> None:
        """Checks that the kernels that write for readers that join their inputs are still those."""
        classes = self.pattern.classes
        for number, readers in classes.readers:
            template, places = classes.all[number].template, []
            for reader, operand in readers:
                signature, schema = self.calls[reader].signature, classes.all[reader].template.schema
                place = schema.input_places(Layout.dense(signature.y), signature)[operand]
                places += [place] if place is not None and not place.is_dense else []
            call, signature = template.instruction, self.calls[number].signature
            assert isinstance(call, Call)
            if self.pattern.geometries.kernel(template, signature, places) is not call.kernel:
                raise OtherChoiceError


def make_pattern(
    template: Template, lowered: Lowered, options: Options, like: tuple[LoweringChoices, ...] = ()
) -> tuple[Pattern, ...]:
    """Returns the pattern of a lowered stage; () where it is no whole network, or nests values.

    `like` has the choices for the greatest lengths, where the stage follows them.
    """
    names = {task.operator.name for task in template.tasks if isinstance(task, Task)}
    plain = all(isinstance(task, (Task, FinalGuards)) for task in template.tasks)
    whole = plain and names == {op.name for op in lowered.graph.operators}
    if not whole or lowered.parameters or any(isinstance(i, Join) for i in lowered.instructions):
        return ()
    backends = backends_of(options.backend)
    rules = LoweringRules(options.views, options.prepack, options.threads, backends, like)
    return (_Maker(template, lowered, Geometries(rules, lowered.values)).run(),)


@define(eq=False)
class _Maker:
    template: Template
    lowered: Lowered
    geometries: Geometries
    numbers: dict[Hashable, int] = field(factory=dict)
    by_name: Mapping[str, int] = field(init=False)

    @by_name.default
    def _by_name(self) -> Mapping[str, int]:
        return {v.name: v.id for v in self.lowered.values if v.role not in (Role.COPY, Role.WORKSPACE)}

    def run(self) -> Pattern:
        graph, by_name = self.template.graph, self.by_name
        derived = {graph.key(var.name): array for var, array in graph.derived.items()}
        tasks = {task.operator.name: task for task in self.template.tasks if isinstance(task, Task)}
        keys = {graph.key(name): by_name[var.name] for name, var in graph.inputs.items()}
        for task in tasks.values():
            keys |= {key: by_name[v.name] for key, v in zip(task.keys, task.operator.outputs, strict=True)}
        readers = self._readers()
        templates = []
        for position, instruction in enumerate(self.lowered.instructions):
            own = tuple(tasks[op.name] for op in instruction.operators)
            operands = tuple(by_name[v.name] for op in instruction.operators for v in op.inputs) or instruction.inputs
            number = self._number(instruction, own, operands, frozenset(derived), position in readers)
            templates.append(CallTemplate(number, instruction, own, operands, position in readers))
        by_value = {by_name[name]: array for name, array in derived.items() if name in by_name}
        results = (v for task in tasks.values() for v in task.operator.outputs)
        shapes = {by_name[v.name]: v.shape for v in (*graph.inputs.values(), *results)}
        finder = ClassFinder(self.lowered, self.geometries, shapes, keys, frozenset(by_value))
        return Pattern(
            self.lowered,
            finder.run(templates, readers),
            by_value,
            tuple(guard for task in self.template.tasks for guard in task.guards),
            self.geometries,
        )

    def _readers(self) -> dict[int, Readers]:
        """Returns the positions of calls whose kernel might be another for the sake of readers, with these readers."""
        places: dict[int, list[tuple[int, int]]] = {}
        for position, instruction in enumerate(self.lowered.instructions):
            for op in instruction.operators:
                if op.schema.input_places is not no_places:
                    for operand, var in enumerate(op.inputs):
                        places.setdefault(self.by_name[var.name], []).append((position, operand))
        return {
            position: tuple(places[instruction.outputs[0]])
            for position, instruction in enumerate(self.lowered.instructions)
            if isinstance(instruction, Call) and instruction.operators and instruction.outputs[0] in places
            if instruction.kernel.writes is not any_strides
        }

    def _number(
        self,
        instruction: Instruction,
        tasks: tuple[Task, ...],
        operands: tuple[int, ...],
        derived: frozenset[str],
        waits: bool,
    ) -> int:
        """Returns a number that is equal for instructions that lengths make equal wherever their operands are."""
        elements = tuple(self._elements(v, derived) for v in operands)
        taken = instruction.inputs
        copied = tuple(one != other for one, other in zip(operands, taken, strict=False))
        chosen: tuple[Hashable, ...] = ()
        if isinstance(instruction, Call):
            constants, threads = instruction.signature.constants, instruction.signature.threads
            named = tuple(c.kernels.get(instruction.name, "") for c in self.geometries.rules.like)
            kernel, workspace = id(instruction.kernel), len(instruction.workspace)
            chosen = kernel, named, constants, threads, instruction.overwrites, workspace
        described = tuple((id(t.operator.schema), *_claims(t), _attribute(dict(t.operator.attrs))) for t in tasks)
        fixed = tuple((t.is_fixed, t.operator.signature.constants) for t in tasks)
        pattern = tuple(map(taken.index, taken)), tuple(map(operands.index, operands))
        key = (type(instruction), elements, copied, pattern, chosen, described, fixed, waits)
        return self.numbers.setdefault(key, len(self.numbers))

    def _elements(self, value: int, derived: frozenset[str]) -> Hashable:
        """Returns a key of what is read of an operand before the network runs.

        Elements of constants that are no floats may be lengths or positions, so they are compared.
        """
        record = self.lowered.values[value]
        owner = self.lowered.values[record.owner]
        if owner.storage is not Storage.CONSTANT:
            return owner.storage
        entry = self.lowered.constants.entries[owner.id]
        if owner.name in derived:
            return "derived", owner.id
        if owner.spec.dtype in FLOATS:
            return "floats"
        if isinstance(entry, np.ndarray) and entry.nbytes <= MOST_BYTES:
            return "elements", owner.spec, entry.tobytes()
        return "entry", id(entry)


def _claims(task: Task) -> Iterator[Hashable]:
    """Yields the lengths of outputs that were numbers when the graph was built."""
    for var in task.operator.outputs:
        yield tuple(None if isinstance(n, Dim) else n for n in var.shape)


def _attribute(value: Any) -> Hashable:
    """Returns a key that is equal for attributes that are equal wherever their dimensions are."""
    if isinstance(value, Dim):
        return "dim"
    if isinstance(value, dict):
        return tuple((name, _attribute(value[name])) for name in sorted(value))
    if isinstance(value, (tuple, list)):
        return tuple(map(_attribute, value))
    if isinstance(value, float):
        return float, value.hex()  # 0.0 and -0.0 are equal, and give other bits
    if value is None or isinstance(value, (bool, int, str, np.dtype)):
        return type(value), value
    return "object", id(value)
