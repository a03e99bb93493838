"""Writes the graph of one stripe: the operators on the rows that it needs, from inputs that have no other rows."""

from collections.abc import Sequence
from itertools import count

from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cascade.rows import Span
from engine.streams.stripes import Rows, StripedGraph
from ops.common.tiling import ROWS
from ops.movement.slicing import SLICE
from ops.schema.schema import Attrs


def stripe_graph(striped: StripedGraph, rows: Rows) -> Graph:
    """Returns the graph that computes some rows of the outputs, whose names and those of inputs are the same."""
    writer = _Writer(striped, rows, Graph(striped.graph.name))
    writer.write()
    return writer.graph


@define(eq=False)
class _Writer:
    striped: StripedGraph
    rows: Rows
    graph: Graph
    whole: dict[Var, Var] = field(factory=dict)
    """By var of the source that is read whole, the same here."""
    held: dict[Var, tuple[Var, int]] = field(factory=dict)
    """By var of the source, rows of it here, and which one the first of them is."""

    def write(self) -> None:
        source, stripe = self.striped.graph, self.rows.stripe
        self._inputs()
        read = {v for part in stripe.parts for v in part.operator.inputs}
        for var in source.constants:
            if var in read:
                entry = source.constants.entries[var]
                self.whole[var] = self.graph.add_constant(var.name, var.spec, entry)
        for mover in self.striped.movers:
            if mover.outputs[0] in stripe.needed:
                self._move_input(mover, stripe.needed[mover.outputs[0]])
        for part in reversed(stripe.parts):
            (output,) = part.operator.outputs
            inputs = list(map(self._read, part.operator.inputs, part.read, part.axes))
            self.held[output] = self._add(part.operator, inputs, part.attrs), part.written[0]
        self._outputs()

    def _inputs(self) -> None:
        for name, var in self.striped.graph.inputs.items():
            if name in self.rows.whole:
                self.whole[var] = self.graph.input(name, var.shape, var.dtype)
            elif name in self.rows.reads:
                axis, (first, last) = self.striped.axes[name], self.rows.reads[name]
                shape = (*var.shape[:axis], last - first, *var.shape[axis + 1 :])
                self.held[var] = self.graph.input(name, shape, var.dtype), first

    def _move_input(self, mover: Operator, span: Span) -> None:
        x, (output,) = mover.inputs[0], mover.outputs
        rows = self._slice(*self.held[x], span, self.striped.axes[x.name])
        self.held[output] = self._add(mover, [rows], _moving(mover, output, span)), span[0]

    def _outputs(self) -> None:
        span = self.rows.first, self.rows.last
        for output in self.striped.outputs:
            rows = self._read(output.image, span)
            if output.mover is not None:
                (moved,) = output.mover.outputs
                rows = self._add(output.mover, [rows], _moving(output.mover, moved, span, output.axis))
            self.graph.output(rows, output.name)

    def _read(self, var: Var, span: Span | None, axis: int = ROWS) -> Var:
        if span is None:
            return self.whole[var]
        held, start = self.held[var] if var in self.held else (self.whole[var], 0)
        return self._slice(held, start, span, axis)

    def _slice(self, var: Var, start: int, span: Span, axis: int) -> Var:
        """Returns rows of a var that has the rows from `start` on; itself where these are all."""
        first, last = span[0] - start, span[1] - start
        if (first, last) == (0, var.shape[axis]):
            return var
        attrs = {"starts": (first,), "ends": (last,), "axes": (axis,)}
        taken = self.striped.graph.vars.keys() | self.graph.vars.keys()
        name = next(n for n in (f"{var.name}/rows{i}" for i in count()) if n not in taken)
        return self.graph.add(SLICE, [var], attrs, name=name)[0]

    def _add(self, operator: Operator, inputs: Sequence[Var], attrs: Attrs) -> Var:
        names = [v.name for v in operator.outputs]
        return self.graph.add(operator.schema, inputs, attrs, name=operator.name, output_names=names)[0]


def _moving(mover: Operator, output: Var, span: Span, axis: int = ROWS) -> Attrs:
    """Returns the attributes of an operator that moves axes, for some rows of its output."""
    if "shape" not in mover.attrs:
        return mover.attrs
    return {**mover.attrs, "shape": (*output.shape[:axis], span[1] - span[0], *output.shape[axis + 1 :])}
