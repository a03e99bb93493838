"""The data-flow judge: replays an execution plan on symbols and tells whether each read would find what was meant.

Every byte of every storage holds the number of the value that was last written there. A call may read a value only
where all bytes of its place hold the value's owner; what a kernel writes takes the bytes over. Nothing here looks at
lifetimes, chunks or the plan's offsets; places are believed only after the schema's own view rule has confirmed them,
and owners are found anew. Idea: the checker of regalloc2 (Fallin 2021), with byte ranges in place of registers.
"""

from attrs import define, evolve, field

from engine.calls import Alias, Call, Join
from engine.check.pieces import Piece, cut, cut_all
from engine.check.plans import PlanLike
from engine.check.runs import Run, runs_of
from engine.check.spans import Span, spans
from engine.errors import DataFlowError
from engine.operator import Operator
from engine.views import view_array
from ops.layout import Layout
from ops.schema import Kernel, Overwrite, Signature
from ops.spec import TensorSpec

NOTHING = -1
"""What a byte holds that no value was written to."""


def check_data_flow(plan: PlanLike) -> None:
    """Raises DataFlowError with the first call that would go wrong. Takes O(n log n) in the number of accesses."""
    _Judge(plan, spans(plan, NOTHING)).run()


@define(eq=False)
class _Judge:
    plan: PlanLike
    spans: tuple[Span[int], ...]
    owners: dict[int, int] = field(factory=dict)
    sources: dict[int, str] = field(factory=dict)
    pieces: dict[int, list[Piece]] = field(factory=dict)

    def run(self) -> None:
        lowered = self.plan.lowered
        self._feed()
        done: list[Operator] = []
        for stage in lowered.stages:
            done.extend(stage.operators)
            if isinstance(stage, Alias):
                self._alias(stage)
            elif isinstance(stage, Join):
                self._join(stage)
            else:
                self._call(stage)
        self._all_done(done)
        self._copies_are_true()
        for name, value in lowered.outputs.items():
            self._read(f"output {name!r}", value)
            self._means(f"output {name!r}", value, lowered.graph.outputs[name].name)
        self._parameters()

    def _feed(self) -> None:
        lowered = self.plan.lowered
        for value in lowered.constants:
            self._constant(value)
        for value in lowered.parameters:  # there from before the run
            self._define("parameters", value, lowered.values[value].source)
        for name, value in lowered.inputs.items():
            self._define("feed", value, lowered.graph.inputs[name].name)

    def _parameters(self) -> None:
        """Each parameter of the graph ends where it began, and holds what it should."""
        lowered, graph = self.plan.lowered, self.plan.lowered.graph
        told = {self.sources.get(v): v for v in lowered.parameters}
        for var in graph.parameters:
            if var.name not in told:
                raise DataFlowError(f"parameter {var.name!r} has no place")
            first = told[var.name]
            last, where = lowered.parameters[first], f"parameter {var.name!r}"
            self._read(where, last)
            self._means(where, last, graph.updates.get(var, var).name)
            if self.plan.places[last].layout != self.plan.places[first].layout or self.spans[last].held is not (
                self.spans[first].held
            ):
                raise DataFlowError(f"{where} is updated elsewhere than where it lies")

    def _constant(self, value: int) -> None:
        """A constant of the graph, or a dense copy of what a view of one shows."""
        lowered = self.plan.lowered
        source = lowered.values[value].source
        given = lowered.graph.constants.get(lowered.graph.vars[source])
        if given is not None and lowered.constants[value] is not given:
            raise DataFlowError(f"constants: {self._name(value)} does not hold the data of {source!r}")
        self._define("constants", value, source)

    def _define(self, where: str, value: int, source: str, kernel: Kernel | None = None) -> None:
        """A value is written to bytes of its own inside its storage: dense ones, or what the kernel can write."""
        layout, spec = self.plan.places[value].layout, self.plan.lowered.values[value].spec
        if not layout.is_all_of(spec) and not (kernel and _is_written(layout, spec, kernel)):
            raise DataFlowError(f"{where}: {self._name(value)} is written but not dense")
        span = self._inside(where, value)
        self.owners[value] = value
        self.sources[value] = source
        self.pieces[value] = [(low, high, value) for low, high in span.runs]
        for low, high in span.runs:
            span.held.write(low, high, value)

    def _inside(self, where: str, value: int) -> Span[int]:
        """Where a value lies, which must be inside its storage."""
        span = self.spans[value]
        if span.low < 0 or span.high > span.size:
            raise DataFlowError(
                f"{where}: {self._name(value)} lies at [{span.low}, {span.high}), outside of {span.size} bytes"
            )
        return span

    def _alias(self, stage: Alias) -> None:
        (operator,), (source,) = stage.operators, stage.inputs
        self._means(stage.name, source, operator.inputs[0].name)
        wanted = operator.schema.views(self.plan.places[source].layout, operator.signature)
        looked_at = self.spans[source].held
        for var, value, layout in zip(operator.outputs, stage.outputs, wanted, strict=True):
            if self.plan.places[value].layout != layout or self.spans[value].held is not looked_at:
                raise DataFlowError(f"{stage.name}: {self._name(value)} is no view of {self._name(source)}")
            self.owners[value] = self.owners[source]
            self.sources[value] = var.name

    def _join(self, stage: Join) -> None:
        """The inputs lie where the operator wants them in its output, are all there, and are all of it."""
        (operator,), (value,) = stage.operators, stage.outputs
        span = self._inside(stage.name, value)
        wanted = operator.schema.holds(self.plan.places[value].layout, operator.signature)
        for var, part, layout in zip(operator.inputs, stage.inputs, wanted, strict=True):
            self._read(stage.name, part)
            self._means(stage.name, part, var.name)
            if self.spans[part].runs and (layout is None or not self._lies(part, layout, span)):
                raise DataFlowError(f"{stage.name}: {self._name(part)} is not where it must be in {self._name(value)}")
        self.owners[value], self.sources[value] = value, operator.outputs[0].name
        written = (self.pieces[self.owners[part]] for part in stage.inputs)
        runs = (self.spans[part].runs for part in stage.inputs)
        self.pieces[value] = sorted(piece for w, r in zip(written, runs, strict=True) for piece in cut_all(w, r))
        self._read(stage.name, value)

    def _lies(self, value: int, layout: Layout, whole: Span[int]) -> bool:
        """Whether a value lies like that, in the same storage as the whole."""
        found = self.plan.places[value].layout
        pairs = zip(found.shape, found.strides, layout.strides, strict=True)
        same = found.offset == layout.offset and found.shape == layout.shape and found.itemsize == layout.itemsize
        return same and self.spans[value].held is whole.held and all(n == 1 or s == t for n, s, t in pairs)

    def _copies_are_true(self) -> None:
        """Constants that were copied while planning hold what their sources show."""
        lowered = self.plan.lowered
        tensors, given = lowered.graph.vars, lowered.graph.constants
        shown = {self.sources[v]: v for s in lowered.stages if isinstance(s, Alias) for v in s.outputs}
        for value, copy in lowered.constants.items():
            source = self.sources[value]
            if tensors[source] not in given:
                place, dtype = self.plan.places[shown[source]], lowered.values[value].spec.dtype
                if view_array(lowered.constants[place.owner], place.layout, dtype).tobytes() != copy.tobytes():
                    raise DataFlowError(f"constants: {self._name(value)} does not hold what {source!r} shows")

    def _call(self, stage: Call) -> None:
        for value in stage.inputs:
            self._read(stage.name, value)
        for operator in stage.operators:
            for var, value in zip(operator.inputs, stage.inputs, strict=True):
                self._means(stage.name, value, var.name)
        for position, value in enumerate(stage.inputs):
            if not stage.kernel.takes(stage.signature, position, self.plan.places[value].layout):
                raise DataFlowError(f"{stage.name}: its kernel cannot read {self._name(value)} where it lies")
        self._computes(stage)
        self._write(stage)

    def _computes(self, stage: Call) -> None:
        """The call runs a kernel of its operator, with the operator's attributes and the workspace that it declares."""
        for operator in stage.operators:
            if not _declares(operator, stage.signature) or stage.kernel not in operator.schema.kernels:
                raise DataFlowError(f"{stage.name}: does not compute what {operator} does")
        wanted = stage.kernel.workspace(stage.signature)
        found = sum(self.plan.lowered.values[v].spec.nbytes for v in stage.workspace)
        if found != wanted or not stage.kernel.supports(stage.signature):
            raise DataFlowError(f"{stage.name}: its kernel needs {wanted} bytes of workspace and has {found}")

    def _write(self, stage: Call) -> None:
        written = stage.outputs + stage.workspace
        writes, reads = [self.spans[v] for v in written], [self.spans[v] for v in stage.inputs]
        for i, span in enumerate(writes):
            for j, other in enumerate(writes[:i]):
                if span.meets(other):
                    raise DataFlowError(f"{stage.name}: {self._name(written[i])} lies on {self._name(written[j])}")
            for position, read in enumerate(reads):
                if span.meets(read) and not self._permitted(stage, i, position):
                    one, other_name = self._name(written[i]), self._name(stage.inputs[position])
                    raise DataFlowError(f"{stage.name}: {one} is written over its input {other_name}")
        names = [v.name for op in stage.operators for v in op.outputs] or [self.sources[stage.inputs[0]]]
        for value, source in zip(written, names + [""] * len(stage.workspace), strict=True):
            self._define(stage.name, value, source, stage.kernel)

    def _permitted(self, stage: Call, output: int, position: int) -> bool:
        """Whether the schema lets that output start so far behind that very input."""
        if output >= len(stage.outputs):
            return False
        taken, taker = self.plan.places[stage.inputs[position]].layout, self.plan.places[stage.outputs[output]].layout
        wanted = Overwrite(output, position, taker.offset - taken.offset)
        fits = taken.is_dense or taken == taker  # element on element where there are holes
        return fits and any(wanted in op.schema.overwrites(op.signature) for op in stage.operators)

    def _read(self, where: str, value: int) -> None:
        if value not in self.owners:
            raise DataFlowError(f"{where}: reads {self._name(value)} before anything computed it")
        span, owner = self._inside(where, value), self.owners[value]
        if len(self.pieces[owner]) == 1 and not span.held.stranger(span.low, span.high, owner):
            return
        for low, high in span.runs:
            wanted = cut(self.pieces[owner], low, high)
            if span.held.pieces(low, high) != wanted:
                self._compare(where, value, (low, high), wanted)

    def _compare(self, where: str, value: int, run: Run, wanted: list[Piece]) -> None:
        """Piece by piece: the same bytes may be told apart in other places."""
        for low, high, name in wanted:
            found = self.spans[value].held.stranger(low, high, name)
            if found:
                byte, held = found
                holds = "nothing" if held == NOTHING else self._name(held)
                raise DataFlowError(f"{where}: reads {self._name(value)}, but byte {byte} of its place holds {holds}")
        if sum(high - low for low, high, _ in wanted) != run[1] - run[0]:
            raise DataFlowError(f"{where}: reads {self._name(value)}, of which some bytes were never computed")

    def _means(self, where: str, value: int, source: str) -> None:
        if self.sources.get(value) != source:
            raise DataFlowError(f"{where}: reads {self._name(value)} where {source!r} is meant")

    def _all_done(self, done: list[Operator]) -> None:
        missing = set(self.plan.lowered.graph.operators) - set(done)
        if missing or len(done) != len(self.plan.lowered.graph.operators):
            names = ", ".join(sorted(op.name for op in missing)) or "one runs twice"
            raise DataFlowError(f"not every operator runs once: {names}")

    def _name(self, value: int) -> str:
        return repr(self.plan.lowered.values[value].name)


def _is_written(layout: Layout, spec: TensorSpec, kernel: Kernel) -> bool:
    """Whether a layout has each element of a tensor once, and the kernel can write there."""
    if (layout.shape, layout.itemsize) != (spec.shape, spec.dtype.itemsize) or not kernel.writes(layout):
        return False
    return sum(high - low for low, high in runs_of(layout)) == spec.nbytes


def _declares(operator: Operator, signature: Signature) -> bool:
    """Whether a signature is the operator's, but for constants that it may not speak of."""
    declared = operator.signature
    if signature is declared:
        return True
    return signature.constants <= declared.constants and signature == evolve(declared, constants=signature.constants)
