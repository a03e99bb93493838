"""Lowering: operators become calls, with views, dense copies, workspaces and the permitted overwrites."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import define, evolve, field, frozen

from engine.graph.deferred import Deferred, Entry, array_of
from engine.graph.graph import Graph
from engine.graph.mapped import release
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.lower.calls import Alias, Call, Instruction, Lowered, Role, Storage, Value
from engine.lower.output_layouts import output_layouts, writing_kernel
from engine.lower.overwrite_rules import broken_rule
from engine.lower.target import HOST, Target
from engine.lower.updates import check_updates
from engine.system.arrays import view_array
from engine.text.errors import TargetError
from engine.text.faults import name_operator
from ops.movement.copy import COPY
from ops.schema.backends import PLAIN
from ops.schema.body import bodies
from ops.schema.schema import Kernel, OpSchema, Overwrite, Signature
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec


@frozen(eq=False)
class LoweringChoices:
    """The choices of a lowering, by operator name, so that the same graph with other lengths is lowered alike.

    `aliases` became views; `copies` are the positions of inputs that were copied dense; `workspaces` have a workspace.
    """

    aliases: frozenset[str]
    copies: frozenset[tuple[str, int]]
    kernels: Mapping[str, str]
    workspaces: frozenset[str]


def lowering_choices(lowered: Lowered) -> LoweringChoices:
    """Returns the choices of a lowering."""
    copied = {v.id for v in lowered.values if v.role is Role.COPY or (v.id in lowered.constants and v.name != v.source)}
    return LoweringChoices(
        frozenset(s.name for s in lowered.instructions if isinstance(s, Alias)),
        frozenset((c.name, i) for c in lowered.calls for i, v in enumerate(c.inputs) if c.operators and v in copied),
        {c.name: c.kernel.name for c in lowered.calls if c.operators},
        frozenset(c.name for c in lowered.calls if c.workspace),
    )


def lower(
    graph: Graph,
    *,
    views: bool = True,
    prepack: bool = True,
    caller_buffers: Collection[str] = (),
    backends: Sequence[str] = PLAIN,
    like: tuple[LoweringChoices, ...] = (),
    threads: int = 1,
    target: Target = HOST,
) -> Lowered:
    """Lowers a graph whose operators stand in a runnable order. Raises GraphError, TargetError.

    `views=False` gives every output its own bytes; `prepack=False` lets kernels pack no constants. `caller_buffers`
    names the inputs and outputs that live in arrays of the caller; such an output is never a view, and an input or
    constant that is such an output is copied. `backends` are asked for kernels in this order. `like` has choices for
    the graph with other lengths, which are followed where possible. Libraries compute on `threads` threads. Workspaces
    are those of the `target`, for which nothing is packed.
    """
    copied = frozenset(copy for pattern in like for copy in pattern.copies)
    with_workspace = frozenset(name for pattern in like for name in pattern.workspaces)
    return _Lowering(
        graph,
        views,
        prepack and target.is_host,
        frozenset(caller_buffers),
        tuple(backends),
        like,
        copied,
        with_workspace,
        threads,
        target,
    ).run()


@define(eq=False)
class _Lowering:
    graph: Graph
    views: bool
    prepack: bool
    caller_buffers: frozenset[str]
    backends: tuple[str, ...]
    like: tuple[LoweringChoices, ...]
    copied: frozenset[tuple[str, int]]
    with_workspace: frozenset[str]
    threads: int
    target: Target
    values: list[Value] = field(factory=list)
    instructions: list[Instruction] = field(factory=list)
    constants: dict[int, Entry] = field(factory=dict)
    of_var: dict[Var, int] = field(factory=dict)
    dense_copies: dict[int, int] = field(factory=dict)
    bound_outputs: dict[Var, str] = field(factory=dict)
    updated: dict[Var, Var] = field(factory=dict)
    output_layouts: dict[Var, list[Layout]] = field(factory=dict)

    def run(self) -> Lowered:
        self.target.check_operators({operator.schema.name for operator in self.graph.operators})
        self.updated = {value: parameter for parameter, value in self.graph.updates.items()}
        self.output_layouts = output_layouts(self.graph)
        self._sources()
        self._choose_bound_outputs()
        for operator in self.graph.operators:
            try:
                self._operator(operator)
            except Exception as error:
                name_operator(error, operator.name)
                raise
        outputs = {name: self._fetched(name, var) for name, var in self.graph.outputs.items()}
        updates = {self.of_var[p]: self.of_var[self.graph.updates.get(p, p)] for p in self.graph.parameters}
        inputs = {name: self.of_var[var] for name, var in self.graph.inputs.items()}
        self._mark_outputs(outputs)
        lowered = Lowered(
            self.graph,
            tuple(self.values),
            tuple(self.instructions),
            self.constants,
            inputs,
            outputs,
            self.caller_buffers,
            updates,
            backends=self.backends,
            target=self.target,
        )
        check_updates(lowered)
        return lowered

    def _sources(self) -> None:
        for name, var in self.graph.inputs.items():
            storage = Storage.CALLER if name in self.caller_buffers else Storage.ARENA
            self.of_var[var] = self._own(var.name, var.name, var.spec, storage, Role.INPUT)
        for var, entry in self.graph.constants.entries.items():
            self.of_var[var] = self._constant(var.name, entry, var.spec)
        for var in self.graph.parameters:
            self.of_var[var] = self._own(var.name, var.name, var.spec, Storage.ARENA, Role.PARAMETER)

    def _choose_bound_outputs(self) -> None:
        computed = {v for op in self.graph.operators for v in op.outputs}
        for name, var in self.graph.outputs.items():
            if (
                name in self.caller_buffers
                and var in computed
                and var not in self.updated
                and var not in self.bound_outputs
            ):
                self.bound_outputs[var] = name

    def _operator(self, operator: Operator) -> None:
        inputs = tuple(self.of_var[v] for v in operator.inputs)
        layouts = self._view_layouts(operator, inputs)
        if layouts:
            owner = self.values[self.values[inputs[0]].owner]
            outputs = tuple(self._view(v, lay, owner) for v, lay in zip(operator.outputs, layouts, strict=True))
            self.instructions.append(Alias(self._tick(), operator.name, (operator,), inputs[:1], outputs))
        else:
            outputs = self._call(operator, inputs)
        self.of_var.update(zip(operator.outputs, outputs, strict=True))

    def _view_layouts(self, operator: Operator, inputs: tuple[int, ...]) -> tuple[Layout, ...]:
        if not self.views or not inputs or not self.bound_outputs.keys().isdisjoint(operator.outputs):
            return ()
        if self.like and any(operator.name not in p.aliases for p in self.like):
            return ()
        optional = operator.schema.views(self.values[inputs[0]].layout, operator.signature)
        layouts = tuple(lay for lay in optional if lay is not None)
        return layouts if len(layouts) == len(operator.outputs) else ()

    def _call(self, operator: Operator, inputs: tuple[int, ...]) -> tuple[int, ...]:
        if not self.target.is_host and any(bodies(operator.schema, operator.attrs)):
            raise TargetError(
                f"operator {operator.name!r} is control flow ({operator.schema.name}), which is not planned for a "
                f"target: leave out target {self.target.name!r}"
            )
        signature = operator.signature if self.prepack else evolve(operator.signature, constants=frozenset())
        if signature.threads != self.threads:
            signature = evolve(signature, threads=self.threads)
        kernel = self._kernel(operator, signature)
        copied, name = self.copied, operator.name
        operands = tuple(
            v if kernel.accepts(signature, i, self.values[v].layout) and (name, i) not in copied else self._dense(v)
            for i, v in enumerate(inputs)
        )
        outputs = tuple(self._output(v) for v in operator.outputs)
        nbytes = self.target.workspace_bytes(operator.schema.name, signature, kernel)
        workspace = self._workspace(operator.name, nbytes)
        declared = operator.schema.forwards(signature)
        allowed = tuple(o for o in declared if not broken_rule(o, declared, operands, outputs, self.values))
        allowed = tuple(o for o in allowed if self._keeps_parameter(o, operator))
        call = Call(self._tick(), operator.name, (operator,), kernel, signature, operands, outputs, workspace, allowed)
        self.instructions.append(call)
        return outputs

    def _kernel(self, operator: Operator, signature: Signature) -> Kernel:
        """Returns the kernel that `like` names, where it supports the signature.

        Else the first that writes the output layouts.
        """
        places = self.output_layouts.get(operator.outputs[0], ())
        if not self.like:
            return writing_kernel(operator.schema, signature, self.backends, places)
        named = (p.kernels.get(operator.name, "") for p in self.like)
        following = named_kernels(operator.schema, signature, self.backends, frozenset(named))
        return next(following, None) or writing_kernel(operator.schema, signature, self.backends, places)

    def _keeps_parameter(self, forward: Overwrite, operator: Operator) -> bool:
        """Returns whether the output is no update of a parameter, or overwrites that parameter."""
        parameter = self.updated.get(operator.outputs[forward.output])
        return parameter is None or (operator.inputs[forward.input] is parameter and not forward.offset)

    def _dense(self, value_id: int) -> int:
        """Returns a dense copy of a value, which all readers share."""
        value = self.values[value_id]
        if value_id not in self.dense_copies:
            self.dense_copies[value_id] = self._copy(value, f"{value.name}/dense")
        return self.dense_copies[value_id]

    def _copy(self, value: Value, name: str) -> int:
        if value.storage is Storage.CONSTANT:
            source = self.constants[value.owner]
            return self._constant(name, Deferred(value.spec, partial(_dense, source, value)), value.spec, value.source)
        copy = self._own(name, value.source, value.spec, Storage.ARENA, Role.COPY)
        self._copy_call(value, copy)
        return copy

    def _copy_call(self, value: Value, copy: int) -> None:
        name = self.values[copy].name
        signature, kernel, nbytes = copying(value.spec, self.backends, self.target)
        workspace = self._workspace(name, nbytes)
        self.instructions.append(Call(self._tick(), name, (), kernel, signature, (value.id,), (copy,), workspace, ()))

    def _fetched(self, name: str, var: Var) -> int:
        """Returns the value that an output is read from; a bound output that no call writes gets a copy."""
        value = self.values[self.of_var[var]]
        if name not in self.caller_buffers or self.bound_outputs.get(var) == name:
            return value.id
        copy = self._own(f"{name}/output", value.source, value.spec, Storage.CALLER, Role.OUTPUT)
        self._copy_call(value, copy)
        return copy

    def _mark_outputs(self, outputs: Mapping[str, int]) -> None:
        for value_id in outputs.values():
            if self.values[value_id].role is Role.ACTIVATION:
                self.values[value_id] = evolve(self.values[value_id], role=Role.OUTPUT)

    def _output(self, var: Var) -> int:
        storage = Storage.CALLER if var in self.bound_outputs else Storage.ARENA
        return self._own(var.name, var.name, var.spec, storage, Role.ACTIVATION)

    def _view(self, var: Var, layout: Layout, owner: Value) -> int:
        view = Value(len(self.values), var.name, var.name, var.spec, layout, owner.id, owner.storage, Role.ACTIVATION)
        self.values.append(view)
        return view.id

    def _own(self, name: str, source: str, spec: TensorSpec, storage: Storage, role: Role) -> int:
        value_id = len(self.values)
        self.values.append(Value(value_id, name, source, spec, Layout.dense(spec), value_id, storage, role))
        return value_id

    def _constant(self, name: str, array: Entry, spec: TensorSpec, source: str = "") -> int:
        value_id = self._own(name, source or name, spec, Storage.CONSTANT, Role.CONSTANT)
        self.constants[value_id] = array
        return value_id

    def _workspace(self, operator: str, nbytes: int) -> tuple[int, ...]:
        if not nbytes and operator not in self.with_workspace:
            return ()
        spec = workspace_spec(nbytes)
        return (self._own(f"{operator}/workspace", "", spec, Storage.ARENA, Role.WORKSPACE),)

    def _tick(self) -> int:
        return len(self.instructions) + 1


def named_kernels(
    schema: OpSchema, signature: Signature, backends: Collection[str], names: Collection[str]
) -> Iterator[Kernel]:
    """Yields the kernels of these names and back-ends that take a signature."""
    candidates = (k for k in schema.kernels if k.name in names and k.backend in backends)
    return (k for k in candidates if k.supports(signature))


def copying(spec: TensorSpec, backends: Sequence[str], target: Target) -> tuple[Signature, Kernel, int]:
    """Returns what makes a dense copy of a tensor: signature, kernel, and the bytes of its workspace."""
    signature = COPY.sign((spec,), {})
    kernel = COPY.kernel(signature, backends)
    return signature, kernel, target.workspace_bytes("", signature, kernel)


def workspace_spec(nbytes: int) -> TensorSpec:
    """Returns the spec of a workspace."""
    return TensorSpec((nbytes,), np.dtype("uint8"))


def _dense(source: Entry, value: Value) -> Array:
    """Returns a dense copy of a view of a constant."""
    whole = array_of(source)
    copy = np.array(view_array(whole, value.layout, value.spec.dtype), order="C")
    release(whole)
    return copy
