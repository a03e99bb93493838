"""Writes the graph of one stripe: the operators on the rows that it needs, from inputs that have no other rows."""

from collections.abc import Sequence
from itertools import count

from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cascade.choices import overwritable
from engine.passes.cascade.rows import Part, Span
from engine.streams.stripes import Rows, StripedGraph
from ops.common.tiling import ROWS
from ops.movement.concat import CONCAT
from ops.movement.copy import COPY
from ops.movement.slicing import SLICE
from ops.schema.schema import Attrs


def stripe_graph(rows: Rows) -> Graph:
    """Returns the graph that computes some rows of the outputs, whose names and those of inputs are the same.

    Rows of constants are inputs, too, and rows that were kept; those that are kept for the next stripe are outputs.
    """
    writer = _Writer(rows.source, rows, Graph(rows.source.graph.name))
    writer.write()
    return writer.graph


@define(eq=False)
class _Writer:
    striped: StripedGraph
    rows: Rows
    graph: Graph
    whole: dict[Var, Var] = field(factory=dict)
    """By var of the source that is read whole, the same here."""
    held: dict[tuple[Var, int], Var] = field(factory=dict)
    """By var of the source and axis, some rows of it here; `Rows.place` says which."""
    kept: dict[Var, Var] = field(factory=dict)
    """By var of the source, the rows that are kept for the next stripe."""

    def write(self) -> None:
        source, stripe = self.striped.graph, self.rows.stripe
        self._inputs()
        beside = [operator for operator in source.operators if stripe.whole.issuperset(operator.outputs)]
        pairs = (pair for part in stripe.parts for pair in zip(part.operator.inputs, part.read, strict=True))
        read = {v for v, span in pairs if span is None} | {v for operator in beside for v in operator.inputs}
        for var in source.constants:
            if var in read:
                self.whole[var] = self.graph.add_constant(var.name, var.spec, source.constants.entries[var])
        for operator in beside:
            inputs = [self.whole[v] for v in operator.inputs]
            self.whole[operator.outputs[0]] = self._add(operator, inputs, operator.attrs)
        for mover in self.striped.movers:
            if mover.outputs[0] in stripe.needed:
                self._move_input(mover, stripe.needed[mover.outputs[0]])
        self._parts(stripe.parts[::-1])
        self._outputs()
        for var, kept in self.kept.items():
            self.graph.output(kept, self.striped.kept_name(var))

    def _parts(self, parts: Sequence[Part]) -> None:
        """Adds parts, and copies of the rows that are kept: behind the last part that reads them, so that the others
        die, or in front of it where it may write over them.
        """
        last = {v: number for number, part in enumerate(parts) for v in part.operator.inputs}
        for number, part in enumerate(parts):
            over = set(overwritable(part.operator))
            dying = [v for v in self.rows.keeps if last.get(v) == number]
            self._keep([v for v in dying if v in over])
            self._part(part)
            self._keep([v for v in dying if v not in over])
        self._keep([v for v in self.rows.keeps if v not in self.kept])

    def _part(self, part: Part) -> None:
        """Adds a part, behind the rows of its output that were kept."""
        (output,) = part.operator.outputs
        first, end = self.rows.kept.get(output, part.written)[0], part.written[0]
        ahead = [self._read(output, (first, end))] if first < end else []
        new = self._add(part.operator, list(map(self._read, part.operator.inputs, part.read, part.axes)), part.attrs)
        if ahead:
            name = self._free_name(f"{output.name}/rows")
            (new,) = self.graph.add(CONCAT, [*ahead, new], {"axis": ROWS}, name=name)
        self.held[output, ROWS] = new

    def _keep(self, variables: Sequence[Var]) -> None:
        """Adds copies of rows that are kept for the next stripe."""
        for var in variables:
            name = self._free_name(f"{var.name}/later")
            (self.kept[var],) = self.graph.add(COPY, [self._read(var, self.rows.keeps[var])], name=name)

    def _inputs(self) -> None:
        for name, var in self.striped.graph.inputs.items():
            if name in self.rows.whole:
                self.whole[var] = self.graph.input(name, var.shape, var.dtype)
            elif name in self.rows.reads:
                self._input(name, var, self.striped.axes[name], self.rows.reads[name])
        for (var, axis), span in self.rows.constants.items():
            self._input(self.striped.input_name(var, axis), var, axis, span)
        for var, span in self.rows.kept.items():
            self._input(self.striped.kept_name(var), var, ROWS, span)

    def _input(self, name: str, var: Var, axis: int, span: Span) -> None:
        shape = (*var.shape[:axis], span[1] - span[0], *var.shape[axis + 1 :])
        self.held[var, axis] = self.graph.input(name, shape, var.dtype)

    def _move_input(self, mover: Operator, span: Span) -> None:
        x, (output,) = mover.inputs[0], mover.outputs
        rows = self._read(x, span, self.striped.axes[x.name])
        self.held[output, ROWS] = self._add(mover, [rows], _moving(mover, output, span))

    def _outputs(self) -> None:
        span = self.rows.first, self.rows.last
        moved: dict[Var, Var] = {}  # a var may be several outputs
        for output in self.striped.outputs:
            rows = self._read(output.image, span)
            if output.mover is not None:
                (y,) = output.mover.outputs
                if y not in moved:
                    moved[y] = self._add(output.mover, [rows], _moving(output.mover, y, span, output.axis))
                rows = moved[y]
            self.graph.output(rows, output.name)

    def _read(self, var: Var, span: Span | None, axis: int = ROWS) -> Var:
        """Returns rows of a var of the source; what is here of it where these are all."""
        if span is None:
            return self.whole[var]
        rows = self.held[var, axis] if (var, axis) in self.held else self.whole[var]
        first, last = self.rows.place(var, span, axis)
        if (first, last) == (0, rows.shape[axis]):
            return rows
        attrs = {"starts": (first,), "ends": (last,), "axes": (axis,)}
        return self.graph.add(SLICE, [rows], attrs, name=self._free_name(f"{rows.name}/rows"))[0]

    def _free_name(self, name: str) -> str:
        taken = self.striped.graph.vars.keys() | self.graph.vars.keys()
        return next(n for n in (f"{name}{i}" for i in count()) if n not in taken)

    def _add(self, operator: Operator, inputs: Sequence[Var], attrs: Attrs) -> Var:
        names = [v.name for v in operator.outputs]
        return self.graph.add(operator.schema, inputs, attrs, name=operator.name, output_names=names)[0]


def _moving(mover: Operator, output: Var, span: Span, axis: int = ROWS) -> Attrs:
    """Returns the attributes of an operator that moves axes, for some rows of its output."""
    if "shape" not in mover.attrs:
        return mover.attrs
    return {**mover.attrs, "shape": (*output.shape[:axis], span[1] - span[0], *output.shape[axis + 1 :])}
