"""What lengths decide of a call: its signature, the layouts of its outputs, the bytes of its workspace.

A call template is an instruction of a planned stage without all that. Templates of equal calls (repeated layers of a
network, for example) have one number, so that the geometry is derived once for each number and choice of operands. It
is derived by the functions that sign and lower any operator, and refused where lowering would decide otherwise.
"""

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from engine.graph.bindings import Bindings
from engine.lower.calls import Alias, Call, Instruction, Storage, Value
from engine.lower.lowering import LoweringChoices, named_kernels, workspace_spec
from engine.lower.output_layouts import writing_kernel
from engine.lower.overwrite_rules import broken_rule
from engine.stages.partial_graph import sign_task
from engine.stages.task import Task
from ops.movement.copy import COPY
from ops.schema.schema import Kernel, OpSchema, Overwrite, Signature, Specs, no_views
from ops.tensor.dims import Dim, Parametric, dims_in
from ops.tensor.layout import Layout
from ops.tensor.spec import Shape, TensorSpec


class OtherChoiceError(Exception):
    """Lowering decides otherwise for these lengths; callers never see this."""


@frozen(eq=False)
class ValueGeometry:
    """Shape, element type and layout of a value; [low, high) are its bytes, `first` is that of its first element.

    All count from the first byte of its owner.
    """

    spec: TensorSpec
    layout: Layout
    low: int
    high: int
    first: int


@frozen(eq=False)
class CallGeometry:
    """The geometry of an instruction of this schema."""

    schema: OpSchema
    signature: Signature
    outputs: tuple[ValueGeometry, ...]
    workspace: tuple[ValueGeometry, ...]

    @cached_property
    def cost(self) -> int:
        """Operations and bytes, as those of `engine.lower.costs`."""
        cost = self.schema.cost(self.signature)
        return cost.flops + cost.bytes


@frozen(eq=False)
class CallTemplate:
    """An instruction without lengths. Templates with the same `number` are equal but for names, weights and addresses.

    `task` is empty for a copy that the planner added. `operands` are the values that its operator reads, before any
    dense copy, `written` those that it computes or shows, with its workspace. `waits` says that its readers decide
    about its kernel too.
    """

    number: int
    instruction: Instruction
    task: tuple[Task, ...]
    operands: tuple[int, ...]
    waits: bool = False
    written: tuple[int, ...] = field(init=False)
    has_body: bool = field(init=False)
    """True if an attribute has dimensions inside it that may depend on other graphs."""

    @written.default
    def _written(self) -> tuple[int, ...]:
        extra = self.instruction.workspace if isinstance(self.instruction, Call) else ()
        return self.instruction.outputs + extra

    @has_body.default
    def _has_body(self) -> bool:
        return any(_has_body(value) for task in self.task for value in task.operator.attrs.values())

    @property
    def schema(self) -> OpSchema:
        """The schema of the operator."""
        return self.task[0].operator.schema if self.task else COPY

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions in its attributes, in a fixed order, except those in bodies."""
        values = (value for task in self.task for value in task.operator.attrs.values())
        return tuple(dim for value in values if not _has_body(value) for dim in dims_in(value))


@frozen(eq=False)
class LoweringRules:
    """What lowering was asked for. `like` has the choices for the greatest lengths, where they are followed."""

    views: bool
    prepack: bool
    threads: int
    backends: tuple[str, ...]
    like: tuple[LoweringChoices, ...] = ()

    @property
    def is_bounded(self) -> bool:
        """True if the choices for the greatest lengths are followed."""
        return bool(self.like)


@define(eq=False)
class Geometries:
    """All geometries so far, each once, so that they are equal where they are the same object.

    Geometries of calls are kept under the number of their template, those of the operands, and numbers of dimensions.
    """

    rules: LoweringRules
    values: Sequence[Value]
    by_layout: dict[tuple[TensorSpec, Layout], ValueGeometry] = field(factory=dict)
    by_shape: dict[tuple[Shape, np.dtype[Any]], ValueGeometry] = field(factory=dict)
    by_operands: dict[Hashable, CallGeometry] = field(factory=dict)

    def forget(self, most: int) -> None:
        """Drops all geometries where there are more than so many calls."""
        if len(self.by_operands) > most:
            self.by_operands.clear()
            self.by_layout.clear()
            self.by_shape.clear()

    def dense(self, shape: Shape, dtype: np.dtype[Any]) -> ValueGeometry:
        """Returns the geometry of a value that owns its bytes."""
        key = shape, dtype
        if key not in self.by_shape:
            spec = TensorSpec(shape, dtype)
            self.by_shape[key] = self._lying(spec, Layout.dense(spec))
        return self.by_shape[key]

    def _all_dense(self, specs: Specs) -> tuple[ValueGeometry, ...]:
        return tuple(self.dense(spec.shape, spec.dtype) for spec in specs)

    def _lying(self, spec: TensorSpec, layout: Layout) -> ValueGeometry:
        key = spec, layout
        if key not in self.by_layout:
            self.by_layout[key] = ValueGeometry(spec, layout, *layout.extent, layout.offset)
        return self.by_layout[key]

    def of_call(self, template: CallTemplate, operands: Sequence[ValueGeometry], bindings: Bindings) -> CallGeometry:
        """Derives the geometry of a call. Raises OtherChoiceError, and OpError where the lengths do not fit."""
        signature = _signature(template, tuple(o.spec for o in operands), bindings)
        if isinstance(template.instruction, Alias):
            layouts = template.schema.views(operands[0].layout, signature)
            outputs = tuple(
                self._lying(spec, layout) for spec, layout in zip(signature.outputs, layouts, strict=True) if layout
            )
            if len(outputs) < len(layouts):
                raise OtherChoiceError
            return CallGeometry(template.schema, signature, outputs, ())
        assert isinstance(template.instruction, Call)
        if template.task:
            signature = self._lowered(template, operands, signature)
        self._check_choices(template, template.instruction, operands, signature)
        workspace = self._workspace(template.instruction, signature)
        return CallGeometry(template.schema, signature, self._all_dense(signature.outputs), workspace)

    def _lowered(self, template: CallTemplate, operands: Sequence[ValueGeometry], signature: Signature) -> Signature:
        """Returns the signature of the call of an operator that is no view."""
        views, rules = template.schema.views, self.rules
        may_be_view = views is not no_views and rules.views and not rules.is_bounded and operands
        if may_be_view and None not in views(operands[0].layout, signature):
            raise OtherChoiceError
        constants = signature.constants if rules.prepack else frozenset[int]()
        if constants != signature.constants or signature.threads != rules.threads:
            return evolve(signature, constants=constants, threads=rules.threads)
        return signature

    def _workspace(self, call: Call, signature: Signature) -> tuple[ValueGeometry, ...]:
        nbytes = call.kernel.workspace(signature)
        if bool(nbytes) != bool(call.workspace) and (nbytes or not self.rules.is_bounded):
            raise OtherChoiceError
        return self._all_dense((workspace_spec(nbytes),)) if call.workspace else ()

    def _check_choices(
        self, template: CallTemplate, call: Call, operands: Sequence[ValueGeometry], signature: Signature
    ) -> None:
        kernel = call.kernel
        same = kernel.supports(signature) if template.waits else self.kernel(template, signature) is kernel
        for position, before in enumerate(template.operands):
            same = same and self._reads(call, signature, position, before, operands[position])
        if not same or (template.task and self._overwrites(template, call, operands, signature) != call.overwrites):
            raise OtherChoiceError

    def kernel(self, template: CallTemplate, signature: Signature, places: Sequence[Layout] = ()) -> Kernel:
        """Returns the kernel that lowering chooses; `places` are the layouts that readers want."""
        schema, backends = template.schema, self.rules.backends
        if template.task and self.rules.like:
            names = {choices.kernels.get(template.instruction.name, "") for choices in self.rules.like}
            following = next(named_kernels(schema, signature, backends, names), None)
            if following is not None:
                return following
        return writing_kernel(schema, signature, backends, places)

    def _reads(self, call: Call, signature: Signature, position: int, before: int, operand: ValueGeometry) -> bool:
        """Returns whether a call reads an operand as it does: where it lies, or a dense copy of it."""
        taken, planned = call.inputs[position], self.values[before]
        accepted = call.kernel.accepts(signature, position, operand.layout)
        if taken == before:
            return accepted
        if self.values[taken].storage is Storage.CONSTANT and operand.layout != planned.layout:
            return False  # it was copied when the stage was planned
        return self.rules.is_bounded or not accepted

    def _overwrites(
        self, template: CallTemplate, call: Call, operands: Sequence[ValueGeometry], signature: Signature
    ) -> tuple[Overwrite, ...]:
        """Returns the overwrites that keep all rules, as lowering finds them."""
        declared = template.schema.forwards(signature)
        if not declared:
            return ()
        values: dict[int, Value] = {}
        for position in {overwrite.input for overwrite in declared}:
            value, operand = call.inputs[position], operands[position]
            layout = operand.layout if template.operands[position] == value else Layout.dense(operand.spec)
            values[value] = self.values[value].lying(operand.spec, layout)
        for position in {overwrite.output for overwrite in declared}:
            value, spec = call.outputs[position], signature.outputs[position]
            values[value] = self.values[value].lying(spec, Layout.dense(spec))
        return tuple(o for o in declared if not broken_rule(o, declared, call.inputs, call.outputs, values))


def _has_body(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_body, value))
    return isinstance(value, Parametric)


def _signature(template: CallTemplate, specs: tuple[TensorSpec, ...], bindings: Bindings) -> Signature:
    """Returns the signature of the operator, as a stage signs it."""
    if not template.task:
        return COPY.sign(specs, {})
    (task,) = template.task
    return task.operator.signature if task.is_fixed else sign_task(task, specs, bindings)
