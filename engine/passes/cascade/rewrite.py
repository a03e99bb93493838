"""Writes a graph whose cascades are computed stripe after stripe.

Each stripe is a copy of the operators on fewer rows: of slices of what stands outside, with pads at the borders of the
images alone. A concatenation puts the stripes together. Slices of rows are views, and the last operator of a stripe
writes into the concatenation, so that nothing is copied; what lies between is as high as its stripe needs it.

Rows that are kept are copied twice: out of the stripe in front, as soon as that has read them, and to the front of the
same tensor in the next stripe, where the new rows are computed behind them. Between stripes only these rows are alive.

What stands outside is alive until the last stripe has read it. An image that is taken in pieces is copied before the
first stripe: rows that no stripe in front has needed are a tensor of their own, which dies in its stripe. Its rows are
kept as those of tensors inside are.

Of a batch, all stripes of one image are computed before those of the next one; no rows are kept in between.

Stripes of columns are written alike. Columns do not lie in one run of bytes, so what a stripe computes of the result is
copied into the concatenation, as most kernels cannot write there.
"""

from collections.abc import Sequence
from itertools import chain, count, product

from attrs import define, field, frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.vanished import FED, vanished
from engine.graph.var import Var
from engine.passes.cascade.choices import overwritable
from engine.passes.cascade.rows import Part, Span, Stripes, in_stripes
from engine.passes.verify import verify
from engine.planning.placed import Cascade, CascadeStripe
from engine.text.errors import PassError
from ops.common.tiling import ROWS
from ops.movement.concat import CONCAT
from ops.movement.copy import COPY
from ops.movement.slicing import SLICE
from ops.schema.schema import Attrs, OpSchema, Signature
from ops.tensor.spec import TensorSpec


def with_cascades(graph: Graph, cascades: Sequence[Cascade]) -> Graph:
    """Returns the graph with cascades, as `write_cascades` does."""
    return write_cascades(graph, cascades)[0]


def write_cascades(graph: Graph, cascades: Sequence[Cascade]) -> tuple[Graph, tuple[CascadeStripe, ...]]:
    """Returns the graph with cascades, which are in order and have no operator in common, and what is in each stripe.

    Inputs and outputs stay. Raises PassError for operators that are no cascade.
    """
    writer = _Writer(graph, Graph(graph.name))
    done = 0
    stripes = list[CascadeStripe]()
    for number, cascade in enumerate(cascades):
        writer.copy(graph.operators[done : cascade.first])
        stripes += writer.cascade(graph.operators[cascade.first : cascade.last], cascade, number)
        done = cascade.last
    writer.copy(graph.operators[done:])
    result = writer.finished()
    verify(graph, result)
    return result, tuple(stripes)


@define(eq=False)
class _Writer:
    source: Graph
    graph: Graph
    written: dict[Var, Var] = field(factory=dict)
    """By var of the source, the var that has all of it."""
    images: dict[tuple[Var, int], Var] = field(factory=dict)
    """By var of the source and number, the var that has one image of a batch."""
    names: set[str] = field(factory=set)
    signed: dict[Operator, list[tuple[list[TensorSpec], Attrs, Signature]]] = field(factory=dict)
    """By operator of the source, the specs of inputs and the attributes of its parts, with their signatures."""

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

    def cascade(self, operators: Sequence[Operator], cascade: Cascade, at: int) -> list[CascadeStripe]:
        """Adds the stripes of operators, and what puts them together under the name of the last one's output.

        Returns what is in each of them; `at` is the number of the cascade.
        """
        rolling = [self.source.operators[position].outputs[0] for position in cascade.rolling]
        pieces = operators[0].inputs[:1] if cascade.in_pieces else ()
        stripes = in_stripes(operators, cascade.height, rolling, pieces, cascade.axis)
        behind = {v for operator in self.source.operators[cascade.last :] for v in operator.inputs}
        inner = {v for operator in operators[:-1] for v in operator.outputs}
        if stripes is None or inner & (behind | set(self.source.outputs.values())):
            raise PassError(f"{operators[0].name!r} to {operators[-1].name!r} cannot be computed in stripes")
        (result,) = operators[-1].outputs
        joined: list[list[Var]] = [[] for _ in range(result.shape[0])]
        places = list(product(range(len(joined)), range(len(stripes.stripes))))
        taken = [self._pieces(stripes, *place) for place in places]
        kept: dict[Var, _Rows] = {}
        done = list[CascadeStripe]()
        for (image, number), new in zip(places, taken, strict=True):
            writer = _StripeWriter(self, stripes, image, number, kept if number else {}, new, cascade.axis)
            written = len(self.graph.operators)
            writer.write()
            kept = writer.later
            wanted = stripes.wanted[number]
            if wanted[0] < wanted[1]:
                joined[image].append(writer.result(result, wanted))
            names = tuple(operator.name for operator in self.graph.operators[written:])
            done.append(CascadeStripe(at, len(done), wanted, names, cascade.axis))
        self._join(operators[-1], joined, cascade.axis)
        return done

    def _join(self, operator: Operator, joined: Sequence[Sequence[Var]], axis: int) -> None:
        """Puts the rows of each image of the last output together, and the images of a batch."""
        (result,) = operator.outputs
        name = self.free(f"{operator.name}/joined")
        parts = joined[0]
        if len(joined) > 1:
            names = [self.free(f"{name}/{image}") for image in range(len(joined))]
            parts = [self.add(CONCAT, rows, {"axis": axis}, n, n) for rows, n in zip(joined, names, strict=True)]
            axis = 0
        self.written[result] = self.add(CONCAT, parts, {"axis": axis}, name, result.name)

    def _pieces(self, stripes: Stripes, image: int, number: int) -> dict[Var, "_Rows"]:
        """Returns copies of the rows that a stripe is the first to need, of images that are taken in pieces."""
        pieces, axis = {}, stripes.stripes[number].axis
        for var, spans in stripes.pieces.items():
            first, last = spans[number]
            if first < last:
                name = f"{var.name}/{image * len(spans) + number}"
                rows = self.slice(self.image(var, image), (first, last), axis, name)
                pieces[var] = _Rows(self.copied(rows, f"{name}/piece"), first)
        return pieces

    def image(self, var: Var, image: int) -> Var:
        """Returns one image of a batch that is written."""
        key = var, image
        if key not in self.images:
            self.images[key] = self.slice(self.written[var], (image, image + 1), 0, f"{var.name}/image{image}")
        return self.images[key]

    def copied(self, rows: Var, name: str) -> Var:
        name = self.free(name)
        return self.add(COPY, [rows], {}, name, name)

    def slice(self, var: Var, span: Span, axis: int, name: str) -> Var:
        if span == (0, var.shape[axis]):
            return var
        attrs = {"starts": (span[0],), "ends": (span[1],), "axes": (axis,)}
        name = self.free(f"{name}/rows")
        return self.add(SLICE, [var], attrs, name, name)

    def add(self, schema: OpSchema, inputs: Sequence[Var], attrs: Attrs, name: str, output: str) -> Var:
        signature = self._signature(schema, inputs, attrs)
        return self.graph.add_signed(schema, inputs, signature, name, (output,))[0]

    def add_part(self, operator: Operator, inputs: Sequence[Var], attrs: Attrs, name: str, output: str) -> Var:
        """Adds an operator on some rows; most stripes of a cascade share a signature."""
        specs, signed = [v.spec for v in inputs], self.signed.setdefault(operator, [])
        signature = next((s for ins, own, s in signed if ins == specs and own == attrs), None)
        if signature is None:
            signature = self._signature(operator.schema, inputs, attrs)
            signed.append((specs, attrs, signature))
        return self.graph.add_signed(operator.schema, inputs, signature, name, (output,))[0]

    def _signature(self, schema: OpSchema, inputs: Sequence[Var], attrs: Attrs) -> Signature:
        constants = frozenset(i for i, v in enumerate(inputs) if v in self.graph.constants)
        return schema.sign([v.spec for v in inputs], attrs, constants)

    def free(self, name: str) -> str:
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


@frozen(eq=False)
class _Rows:
    """Some rows of a tensor of the source: a var that has them, and which one the first of them is."""

    var: Var
    first: int


@define(eq=False)
class _StripeWriter:
    """Writes the parts of one stripe of one image.

    `kept` has the rows that the stripe in front has kept, `later` those for the next one, and `rows` those that this
    stripe reads. `pieces` has the new rows of the images that are taken in pieces.
    """

    writer: _Writer
    stripes: Stripes
    image: int
    number: int
    kept: dict[Var, _Rows]
    pieces: dict[Var, _Rows]
    axis: int
    later: dict[Var, _Rows] = field(factory=dict)
    rows: dict[Var, _Rows] = field(factory=dict)
    views: dict[tuple[Var, Span, int], Var] = field(factory=dict)

    @property
    def at(self) -> int:
        """The number of the stripe among those of all images, which ends the names of what it writes."""
        return self.image * len(self.stripes.stripes) + self.number

    def write(self) -> None:
        """Adds the parts, in order, and copies of the rows that the next stripe needs once more."""
        parts = self.stripes.stripes[self.number].parts[::-1]
        self.rows |= self.kept  # of which nothing new is computed
        self.later |= self.kept
        for var, piece in self.pieces.items():
            self._take(var, piece)
        reads = {
            v: n
            for n, part in enumerate(parts)
            for v, span in zip(part.operator.inputs, part.read, strict=True)
            if span
        }
        for number, part in enumerate(parts):
            (output,) = part.operator.outputs
            last = [v for v in self.stripes.first if v in self.rows and reads.get(v) == number]
            inputs = list(map(self.read, part.operator.inputs, part.read, part.axes, part.batched))
            overwritten = set(overwritable(part.operator))
            for var in last:
                if var in overwritten:  # before that happens
                    self._keep(var)
            self._part(part, inputs)
            for var in last:
                if var not in overwritten:
                    self._keep(var)
            if output in self.stripes.first and output not in reads:
                self._keep(output)

    def result(self, var: Var, span: Span) -> Var:
        """Returns those rows of the last output; a copy of columns, which may lie in their place among all."""
        rows = self.read(var, span, self.axis)
        return rows if self.axis == ROWS else self._copy(rows, var, "placed")

    def read(self, var: Var, span: Span | None, axis: int, batched: bool = False) -> Var:
        """Returns those rows of a tensor of the source that are asked for; all where there is no span.

        Of a `batched` one, they are those of the stripe's image.
        """
        if span is None:
            return self._whole(var, batched)
        key = var, span, axis
        if key not in self.views:
            held = self.rows.get(var) or _Rows(self._whole(var, batched), 0)
            self.views[key] = self._slice(held, span, var, axis)
        return self.views[key]

    def _whole(self, var: Var, batched: bool) -> Var:
        return self.writer.image(var, self.image) if batched else self.writer.written[var]

    def _slice(self, held: _Rows, span: Span, var: Var, axis: int) -> Var:
        first, last = (row - held.first for row in span)
        return self.writer.slice(held.var, (first, last), axis, f"{var.name}/{self.at}")

    def _part(self, part: Part, inputs: Sequence[Var]) -> None:
        """Adds a part, behind the rows of its output that were kept."""
        operator, writer = part.operator, self.writer
        (output,) = operator.outputs
        ahead = self._again(output, part.written[0])
        name, output_name = (writer.free(f"{n}/{self.at}") for n in (operator.name, output.name))
        new = writer.add_part(operator, inputs, part.attrs, name, output_name)
        self._behind(ahead, output, _Rows(new, part.written[0]))

    def _take(self, var: Var, piece: _Rows) -> None:
        """Adds a copy of a piece behind the rows of its image that were kept: the piece alone, where there are none.

        If the piece itself became a part of these rows, they would be alive from before the first stripe on.
        """
        ahead = self._again(var, piece.first)
        new = self._copy(piece.var, var, "taken") if ahead else piece.var
        self._behind(ahead, var, _Rows(new, piece.first))

    def _again(self, var: Var, end: int) -> list[_Rows]:
        """Returns a copy of the rows in front of `end` that were kept and this stripe needs; nothing without any."""
        if var not in self.kept or self.stripes.first[var][self.number] >= end:
            return []
        span = self.stripes.first[var][self.number], end
        return [_Rows(self._copy(self._slice(self.kept[var], span, var, self.axis), var, "again"), span[0])]

    def _behind(self, ahead: Sequence[_Rows], var: Var, new: _Rows) -> None:
        """Notes the rows of a tensor in this stripe: new ones behind those that were kept."""
        if ahead:
            name = self.writer.free(f"{var.name}/{self.at}/rows")
            joined = self.writer.add(CONCAT, [*(rows.var for rows in ahead), new.var], {"axis": self.axis}, name, name)
            new = _Rows(joined, ahead[0].first)
        self.rows[var] = new

    def _keep(self, var: Var) -> None:
        """Copies the rows that the next stripe needs once more; what it copies from can die."""
        first, held = self.stripes.first[var][self.number + 1], self.rows[var]
        end = held.first + held.var.shape[self.axis]
        if first >= end:
            self.later.pop(var, None)
        elif held is not self.kept.get(var):
            first = max(first, held.first)
            self.later[var] = _Rows(self._copy(self._slice(held, (first, end), var, self.axis), var, "kept"), first)

    def _copy(self, rows: Var, var: Var, suffix: str) -> Var:
        return self.writer.copied(rows, f"{var.name}/{self.at}/{suffix}")
