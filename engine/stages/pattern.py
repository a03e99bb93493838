"""What the plans of a network for all its lengths have in common, made once from a stage that was planned and judged.

For other lengths, the geometry of all calls is derived (geometry.py), and with it the sizes of all values. Where all
choices of lowering are the same, so are instructions, values, lifetimes and overwrites, and only numbers are new.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from allocator.problem import Column
from engine.graph.bindings import Bindings
from engine.graph.symbols import Axis, Derived
from engine.lower.backends import backends_of
from engine.lower.calls import Call, Instruction, Join, Lowered, Role, Storage
from engine.lower.lowering import LoweringChoices
from engine.planning.options import Options
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
from ops.tensor.spec import FLOATS, Array, Shape, spec_of

MOST_BYTES = 4096
"""Bytes of a constant that is not of floats up to which its elements are compared; a larger one equals only itself."""
MOST_GEOMETRIES = 1 << 14
"""Geometries of calls that are kept for the lengths to come. It trades memory against deriving them again."""
Dims = tuple[Dim | tuple[int, int], ...]
"""Dimensions; one that is the length of a value along an axis as the pair of both."""


@frozen(eq=False)
class Fit:
    """The geometry of each value and of each instruction for some lengths, and the arrays that depend on them.

    `low`, `high` and `first` are columns of the values: first byte, end and first element, counted from the first
    byte of their owners.
    """

    values: Sequence[ValueGeometry]
    calls: Sequence[CallGeometry]
    derived: Mapping[int, Array]
    low: Column = field(init=False, repr=False)
    high: Column = field(init=False, repr=False)
    first: Column = field(init=False, repr=False)

    @low.default
    def _low(self) -> Column:
        return np.fromiter([v.low for v in self.values], np.int64, len(self.values))

    @high.default
    def _high(self) -> Column:
        return np.fromiter([v.high for v in self.values], np.int64, len(self.values))

    @first.default
    def _first(self) -> Column:
        return np.fromiter([v.first for v in self.values], np.int64, len(self.values))


@frozen(eq=False)
class Pattern:
    """The instructions of a lowered network as templates, in their order; `dims` has the dimensions of each.

    `constants` has the geometries that never change, by value; `derived` are constants whose elements lengths decide.
    `keys` maps the keys of bindings to values. `readers` has the templates, by position, that choose their kernel by
    their readers too: of each reader the positions of its instruction and of the operand. `with_bodies` are the
    positions of templates with bodies of control flow.
    """

    lowered: Lowered
    templates: tuple[CallTemplate, ...]
    dims: tuple[Dims, ...]
    constants: Mapping[int, ValueGeometry]
    derived: Mapping[int, Derived]
    keys: Mapping[str, int]
    readers: Mapping[int, tuple[tuple[int, int], ...]]
    with_bodies: frozenset[int]
    guards: tuple[Guard, ...]
    geometries: Geometries

    def fit(self, lengths: Mapping[str, int], shapes: Mapping[str, Shape], data: Mapping[str, Array]) -> Fit:
        """Derives the geometry of everything for some lengths, and checks all guards. `shapes` are those of the inputs.

        Raises OtherChoiceError where other instructions are right, OpError where the lengths do not fit.
        """
        self.geometries.forget(MOST_GEOMETRIES)
        fitting = _Fitting(self, dict(self.constants))
        fitting.bindings = Bindings(lengths, dict(shapes), dict(data), fitting.length)
        return fitting.run()


@define(eq=False)
class _Fitting:
    pattern: Pattern
    values: dict[int, ValueGeometry]
    derived: dict[int, Array] = field(factory=dict)
    calls: list[CallGeometry] = field(factory=list)
    bindings: Bindings = field(factory=lambda: Bindings({}))

    def run(self) -> Fit:
        pattern, values, geometries = self.pattern, self.values, self.pattern.geometries
        lowered = pattern.lowered
        for value in lowered.inputs.values():
            spec = lowered.values[value].spec.with_shape(self.bindings.shapes[lowered.values[value].name])
            values[value] = geometries.dense(spec)
        by_operands, calls = geometries.by_operands, self.calls
        for position, (template, dims) in enumerate(zip(pattern.templates, pattern.dims, strict=True)):
            operands = [values[v] if v in values else self._derived(v) for v in template.operands]
            numbers = [self._number(d) for d in dims]
            key: tuple[Hashable, ...] = (template.number, *operands, *numbers)
            if position in pattern.with_bodies:  # planned for each choice of lengths
                key = *key, position, self.bindings
            call = by_operands.get(key)
            if call is None:
                call = by_operands[key] = geometries.of_call(template, operands, self.bindings)
            calls.append(call)
            for value, geometry in zip(template.written, (*call.outputs, *call.workspace), strict=True):
                values[value] = geometry
        for guard in pattern.guards:
            guard.check(self.bindings.number)
        self._check_readers()
        return Fit(
            [values[v] if v in values else self._derived(v) for v in range(len(lowered.values))], calls, self.derived
        )

    def length(self, leaf: Dim) -> int:
        """Returns the length that a leaf stands for: that of a value along an axis."""
        key = leaf.key
        if isinstance(key, Axis) and key.var in self.pattern.keys:
            return self.values[self.pattern.keys[key.var]].spec.shape[key.axis]
        raise LookupError(f"nothing says what {leaf} is ({key!r})")

    def _number(self, dim: Dim | tuple[int, int]) -> int:
        if isinstance(dim, tuple):
            return self.values[dim[0]].spec.shape[dim[1]]
        return value_of(dim, self.bindings.number)

    def _derived(self, value: int) -> ValueGeometry:
        array = self.derived[value] = self.bindings.array(self.pattern.derived[value])
        geometry = self.values[value] = self.pattern.geometries.dense(spec_of(array))
        return geometry

    def _check_readers(self) -> None:
        """Checks that the kernels that write for readers that join their inputs are still those."""
        for position, readers in self.pattern.readers.items():
            template, places = self.pattern.templates[position], []
            for reader, operand in readers:
                signature, schema = self.calls[reader].signature, self.pattern.templates[reader].schema
                place = schema.input_places(Layout.dense(signature.y), signature)[operand]
                places += [place] if place is not None and not place.is_dense else []
            call, signature = template.instruction, self.calls[position].signature
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
    keys: dict[str, int] = field(factory=dict)

    def run(self) -> Pattern:
        graph, values = self.template.graph, self.lowered.values
        by_name = {v.name: v.id for v in values if v.role not in (Role.COPY, Role.WORKSPACE)}
        self.keys = {graph.key(name): by_name[var.name] for name, var in graph.inputs.items()}
        derived = {graph.key(var.name): array for var, array in graph.derived.items()}
        tasks = {task.operator.name: task for task in self.template.tasks if isinstance(task, Task)}
        for task in tasks.values():
            self.keys |= {key: by_name[v.name] for key, v in zip(task.keys, task.operator.outputs, strict=True)}
        readers = self._readers(by_name)
        templates = []
        for position, instruction in enumerate(self.lowered.instructions):
            own = tuple(tasks[op.name] for op in instruction.operators)
            operands = tuple(by_name[v.name] for op in instruction.operators for v in op.inputs) or instruction.inputs
            number = self._number(instruction, own, operands, frozenset(derived))
            templates.append(CallTemplate(number, instruction, own, operands, position in readers))
        fixed = [v for v in self.lowered.constants if values[v].name not in derived]
        return Pattern(
            self.lowered,
            tuple(templates),
            tuple(tuple(map(self._compiled, t.dims)) for t in templates),
            {v: self.geometries.dense(values[v].spec) for v in fixed},
            {by_name[name]: array for name, array in derived.items() if name in by_name},
            self.keys,
            readers,
            frozenset(position for position, t in enumerate(templates) if t.has_body),
            tuple(guard for task in self.template.tasks for guard in task.guards),
            self.geometries,
        )

    def _compiled(self, dim: Dim) -> Dim | tuple[int, int]:
        key = dim.key
        return (self.keys[key.var], key.axis) if isinstance(key, Axis) and key.var in self.keys else dim

    def _readers(self, by_name: Mapping[str, int]) -> dict[int, tuple[tuple[int, int], ...]]:
        """Returns the positions of calls whose kernel might be another for the sake of readers, with these readers."""
        places: dict[int, list[tuple[int, int]]] = {}
        for position, instruction in enumerate(self.lowered.instructions):
            for op in instruction.operators:
                if op.schema.input_places is not no_places:
                    for operand, var in enumerate(op.inputs):
                        places.setdefault(by_name[var.name], []).append((position, operand))
        return {
            position: tuple(places[instruction.outputs[0]])
            for position, instruction in enumerate(self.lowered.instructions)
            if isinstance(instruction, Call) and instruction.operators and instruction.outputs[0] in places
            if instruction.kernel.writes is not any_strides
        }

    def _number(
        self, instruction: Instruction, tasks: tuple[Task, ...], operands: tuple[int, ...], derived: frozenset[str]
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
        key = (type(instruction), elements, copied, pattern, chosen, described, fixed)
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
