"""Writes a graph whose cascades are computed stripe after stripe.

Each stripe is a copy of the operators on fewer rows: of slices of what stands outside, with pads at the borders of the
images alone. A concatenation puts the stripes together. Slices of rows are views, and the last operator of a stripe
writes into the concatenation, so that nothing is copied; what lies between is as high as its stripe needs it.
"""

from collections.abc import Sequence
from itertools import chain, count

from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.vanished import FED, vanished
from engine.graph.var import Var
from engine.passes.cascade.rows import Part, Span, Stripe, spans
from engine.passes.verify import verify
from engine.planning.placed import Cascade
from engine.text.errors import PassError
from ops.common.tiling import ROWS
from ops.movement.concat import CONCAT
from ops.movement.slicing import SLICE
from ops.schema.schema import Attrs, OpSchema


def with_cascades(graph: Graph, cascades: Sequence[Cascade]) -> Graph:
    """Returns the graph with cascades, which are in order and have no operator in common; inputs and outputs stay.

    Raises PassError for operators that are no cascade.
    """
    writer = _Writer(graph, Graph(graph.name))
    done = 0
    for cascade in cascades:
        writer.copy(graph.operators[done : cascade.first])
        writer.cascade(graph.operators[cascade.first : cascade.last], cascade.height)
        done = cascade.last
    writer.copy(graph.operators[done:])
    result = writer.finished()
    verify(graph, result)
    return result


@define(eq=False)
class _Writer:
    source: Graph
    graph: Graph
    written: dict[Var, Var] = field(factory=dict)
    """By var of the source, the var that has all of it."""
    names: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.names.update(self.source.vars, (operator.name for operator in self.source.operators))
        for name, var in self.source.inputs.items():
            self.written[var] = self.graph.input(name, var.shape, var.dtype)
        for var in self.source.constants:
            entry = self.source.constants.entries[var]
            self.written[var] = self.graph.add_constant(var.name, var.spec, entry)

    def copy(self, operators: Sequence[Operator]) -> None:
        """Adds operators as they are."""
        for operator in operators:
            inputs = [self.written[v] for v in operator.inputs]
            names = tuple(v.name for v in operator.outputs)
            outputs = self.graph.add_signed(operator.schema, inputs, operator.signature, operator.name, names)
            self.written.update(zip(operator.outputs, outputs, strict=True))

    def cascade(self, operators: Sequence[Operator], height: int) -> None:
        """Adds the stripes of operators, and what puts them together under the name of the last one's output."""
        (result,) = operators[-1].outputs
        joined = []
        for number, span in enumerate(spans(result.shape[ROWS], height)):
            stripe = Stripe({result: span})
            if not all(stripe.take(operator) for operator in reversed(operators)):
                raise PassError(f"{operators[0].name!r} to {operators[-1].name!r} cannot be computed in stripes")
            joined.append(self._stripe(stripe, number, result, span))
        name = self._free(f"{operators[-1].name}/joined")
        self.written[result] = self._add(CONCAT, joined, {"axis": ROWS}, name, result.name)

    def _stripe(self, stripe: Stripe, number: int, result: Var, wanted: Span) -> Var:
        """Adds the parts of one stripe; returns the wanted rows of the result."""
        rows: dict[Var, tuple[Var, int]] = {}  # by var of the source, rows of it and which one the first of them is
        views: dict[tuple[Var, Span, int], Var] = {}

        def read(var: Var, span: Span | None, axis: int) -> Var:
            if span is None:
                return self.written[var]
            key = var, span, axis
            if key not in views:
                held, start = rows[var] if var in rows else (self.written[var], 0)
                views[key] = self._slice(held, (span[0] - start, span[1] - start), axis, f"{var.name}/{number}")
            return views[key]

        for part in reversed(stripe.parts):
            (output,) = part.operator.outputs
            inputs = list(map(read, part.operator.inputs, part.read, part.axes))
            rows[output] = self._part(part, inputs, number), part.written[0]
        return read(result, wanted, ROWS)

    def _part(self, part: Part, inputs: Sequence[Var], number: int) -> Var:
        operator = part.operator
        name, output = self._free(f"{operator.name}/{number}"), self._free(f"{operator.outputs[0].name}/{number}")
        return self._add(operator.schema, inputs, part.attrs, name, output)

    def _slice(self, var: Var, span: Span, axis: int, name: str) -> Var:
        if span == (0, var.shape[axis]):
            return var
        attrs = {"starts": (span[0],), "ends": (span[1],), "axes": (axis,)}
        name = self._free(f"{name}/rows")
        return self._add(SLICE, [var], attrs, name, name)

    def _add(self, schema: OpSchema, inputs: Sequence[Var], attrs: Attrs, name: str, output: str) -> Var:
        constants = frozenset(i for i, v in enumerate(inputs) if v in self.graph.constants)
        signature = schema.sign([v.spec for v in inputs], attrs, constants)
        return self.graph.add_signed(schema, inputs, signature, name, (output,))[0]

    def _free(self, name: str) -> str:
        """Returns a name that neither graph has: this one, or the same with a number."""
        free = next(n for n in chain((name,), (f"{name}_{i}" for i in count(1))) if n not in self.names)
        self.names.add(free)
        return free

    def finished(self) -> Graph:
        """Returns the graph with its outputs."""
        for name, var in self.source.outputs.items():
            self.graph.output(self.written[var], name)
        writers = dict.fromkeys(self.graph.vars, FED) | dict.fromkeys((v.name for v in self.graph.constants), "")
        writers |= {v.name: operator.name for operator in self.graph.operators for v in operator.outputs}
        source = self.source
        self.graph.vanished = vanished(source.operators, source.constants, source.vanished, writers, {})
        return self.graph
