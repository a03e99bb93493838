"""Which rows of its inputs each stripe of a graph's outputs needs, and which stripes are computed alike.

Inside, images have their channels last, as passes leave them. An operator at an input or output that only moves axes
says which axis of it has the rows.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property
from itertools import count

from attrs import field, frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cascade.rows import Span, Stripe
from engine.planning.options import HIGHEST_LEVEL
from engine.streams.kept import NOTHING, Kept
from engine.text.errors import GraphError, OptionError
from ops.common.tiling import ROWS
from ops.movement.reshape import RESHAPE
from ops.movement.views import TRANSPOSE
from ops.tensor.spec import Shape


def axis_before(operator: Operator, axis: int) -> int | None:
    """Returns the axis of its input that becomes an axis of the output of an operator; None if it moves no axes."""
    if operator.schema is TRANSPOSE:
        perm: tuple[int, ...] = operator.attrs["perm"] or tuple(reversed(range(operator.inputs[0].ndim)))
        return perm[axis]
    if operator.schema is not RESHAPE:
        return None
    before, after = _long(operator.inputs[0].shape), _long(operator.outputs[0].shape)
    if list(before.values()) != list(after.values()) or axis not in after:
        return None
    return list(before)[list(after).index(axis)]


def _long(shape: Shape) -> dict[int, int]:
    """Returns the lengths that are not 1, by axis."""
    return {axis: length for axis, length in enumerate(shape) if length != 1}


@frozen(eq=False)
class Output:
    """An output of the graph: `image` has its rows, and `mover`, where there is one, moves the axes of that.

    `axis` is the axis of the output that has the rows.
    """

    name: str
    image: Var
    axis: int
    mover: Operator | None = None


@frozen(eq=False)
class Rows:
    """Rows [first, last) of all outputs: what computes them, and `reads`, the rows that are read of inputs, by name.

    `whole` has the inputs that are read whole, and `constants` the rows that are read of constants along an axis: other
    stripes read others, so the plan of a stripe takes them as inputs. `kept` has rows of inner tensors that the stripe
    in front has kept for this one or later ones, `keeps` those that this one keeps.
    """

    first: int
    last: int
    source: "StripedGraph"
    stripe: Stripe
    reads: Mapping[str, Span]
    whole: Collection[str]
    constants: Mapping[tuple[Var, int], Span]
    kept: Mapping[Var, Span]
    keeps: Mapping[Var, Span]

    @cached_property
    def _starts(self) -> Mapping[tuple[Var, int], int]:
        """By tensor and axis, the first row that a stripe has; of other tensors it has all rows."""
        needed, source = self.stripe.needed, self.source
        starts = {(source.graph.inputs[name], source.axes[name]): span[0] for name, span in self.reads.items()}
        starts |= {(v, ROWS): needed[v][0] for mover in source.movers for v in mover.outputs if v in needed}
        starts |= {(v, ROWS): part.written[0] for part in self.stripe.parts for v in part.operator.outputs}
        starts |= {(v, ROWS): min(span[0], starts.get((v, ROWS), span[0])) for v, span in self.kept.items()}
        return starts | {read: span[0] for read, span in self.constants.items()}

    def place(self, var: Var, span: Span, axis: int = ROWS) -> Span:
        """Returns where rows of a tensor are among those that the stripe has of it."""
        start = self._starts.get((var, axis), 0)
        return span[0] - start, span[1] - start

    @cached_property
    def kind(self) -> Hashable:
        """What is equal for stripes that one plan computes: all numbers that the graph of a stripe is written with."""
        needed, source = self.stripe.needed, self.source
        moved = ((mover.inputs[0], needed[v]) for mover in source.movers for v in mover.outputs if v in needed)
        parts = (
            (
                part.operator.name,
                self.place(part.operator.outputs[0], part.written),
                tuple(
                    span and self.place(v, span, axis)
                    for v, span, axis in zip(part.operator.inputs, part.read, part.axes, strict=True)
                ),
                tuple(item for item in part.attrs.items() if part.operator.attrs.get(item[0]) != item[1]),
            )
            for part in self.stripe.parts
        )
        return (
            tuple((name, last - first) for name, (first, last) in self.reads.items()),
            tuple(last - first for first, last in self.constants.values()),
            tuple(self.place(x, span, source.axes[x.name]) for x, span in moved),
            tuple(parts),
            tuple(self.place(output.image, (self.first, self.last)) for output in source.outputs),
            tuple((v.name, self.place(v, span)) for rows in (self.kept, self.keeps) for v, span in rows.items()),
        )


@frozen(eq=False)
class StripedGraph:
    """A graph after passes whose outputs are computed in stripes of rows. `axes` has the axis of rows of inputs.

    `movers` are the operators that read an input and move its axes; `inner` all other operators but those of `outputs`.
    `rolling` are the tensors whose rows are kept for the next stripe, as far as it needs them.
    """

    graph: Graph
    level: int
    outputs: tuple[Output, ...]
    movers: tuple[Operator, ...]
    inner: tuple[Operator, ...]
    axes: Mapping[str, int]
    rolling: Sequence[Var] = ()
    _kept: dict[int, Kept] = field(factory=dict, init=False)

    @property
    def rows(self) -> int:
        """The rows of the outputs."""
        return int(self.outputs[0].image.shape[ROWS])

    @cached_property
    def period(self) -> int:
        """The rows of the outputs that come from one row of the lowest image: stripes of multiples are alike."""
        whole = self.stripe(0, self.rows)
        lowest = min(v.shape[ROWS] for v in whole.stripe.needed)
        return max(round(self.rows / lowest), 1)

    def cut(self, needed: Mapping[Var, Span], before: Kept = NOTHING, after: Kept = NOTHING) -> Stripe:
        """Returns what computes rows of tensors, from what is kept before to what is kept after.

        Raises GraphError where an operator needs whole images.
        """
        stripe = Stripe(dict(needed), dict(before.done), after.done)
        for operator in reversed(self.inner):
            if self._is_beside(operator, stripe):
                stripe.whole.update(operator.inputs)
            elif any(v in stripe.needed or v in stripe.whole for v in operator.outputs) and not stripe.take(operator):
                raise GraphError(
                    f"operator {operator.name!r} ({operator.schema.name}) cannot be computed in stripes of rows, so "
                    f"{self.graph.name!r} cannot be streamed{self._advice}"
                )
        return stripe

    @property
    def _advice(self) -> str:
        """What lets more operators be cut, behind an error."""
        is_highest = self.level == HIGHEST_LEVEL
        return (
            "" if is_highest else f"; without --optimise {self.level}, passes put channels last, as stripes want them"
        )

    def _is_beside(self, operator: Operator, stripe: Stripe) -> bool:
        """Returns whether an operator computes what a stripe reads whole, from inputs and constants alone."""
        sources = self.graph.constants.keys() | set(self.graph.inputs.values())
        (output,) = operator.outputs if len(operator.outputs) == 1 else (None,)
        return output in stripe.whole and output not in stripe.needed and sources.issuperset(operator.inputs)

    def kept(self, row: int) -> Kept:
        """Returns what is kept where a stripe ends in front of a row of the outputs: what all later rows need."""
        if not self.rolling or not 0 < row < self.rows:
            return NOTHING
        if row not in self._kept:
            while len(self._kept) > 1:  # the stripes in front and behind ask for it, one after the other
                del self._kept[next(iter(self._kept))]
            needed = self.cut(self._rows_of_outputs(0, row)).needed
            kept = Kept({v: needed[v][1] for v in self.rolling if v in needed})
            later = self.cut(self._rows_of_outputs(row, self.rows), kept).needed
            spans = {v: (later[v][0], done) for v, done in kept.done.items() if v in later}
            rows = {v: span for v, span in spans.items() if span[0] < span[1]}
            self._kept[row] = Kept(kept.done, rows)
        return self._kept[row]

    def _rows_of_outputs(self, first: int, last: int) -> dict[Var, Span]:
        return {output.image: (first, last) for output in self.outputs}

    def stripe(self, first: int, last: int) -> Rows:
        """Returns what some rows of the outputs need. Raises GraphError where an operator needs whole images."""
        before, after = self.kept(first), self.kept(last)
        stripe = self.cut(self._rows_of_outputs(first, last), before, after)
        moved = {v: operator.inputs[0] for operator in self.movers for v in operator.outputs}
        names = {var: name for name, var in self.graph.inputs.items()}
        reads: dict[str, Span] = {}
        for var, span in stripe.needed.items():
            name = names.get(moved.get(var, var))
            if name:
                low, high = reads.get(name, span)
                reads[name] = min(low, span[0]), max(high, span[1])
        whole = {names[moved.get(v, v)] for v in stripe.whole if moved.get(v, v) in names}
        if twice := sorted(whole & reads.keys()):
            raise GraphError(f"input {twice[0]!r} of {self.graph.name!r} is read whole, so it cannot be streamed")
        read = {name: reads[name] for name in sorted(reads)}
        constants = self._constants(stripe)
        return Rows(first, last, self, stripe, read, frozenset(whole), constants, before.rows, after.rows)

    def _constants(self, stripe: Stripe) -> dict[tuple[Var, int], Span]:
        """Returns the rows that a stripe reads of constants, by constant and axis."""
        constants: dict[tuple[Var, int], Span] = {}
        for part in reversed(stripe.parts):
            for var, span, axis in zip(part.operator.inputs, part.read, part.axes, strict=True):
                if span is not None and var in self.graph.constants:
                    low, high = constants.get((var, axis), span)
                    constants[var, axis] = min(low, span[0]), max(high, span[1])
        return constants

    def input_name(self, constant: Var, axis: int) -> str:
        """Returns the name of the input that has the rows of a constant in the graphs of stripes."""
        return self._free_name(f"{constant.name}/axis{axis}")

    def kept_name(self, var: Var) -> str:
        """Returns the name of the input that has kept rows of a tensor in the graphs of stripes, and of the output."""
        return self._free_name(f"{var.name}/kept")

    def _free_name(self, name: str) -> str:
        names = (f"{name}{'_' * i}" for i in count())
        return next(name for name in names if name not in self.graph.vars)


def striped_graph(graph: Graph, level: int) -> StripedGraph:
    """Returns a graph after passes of a level as one whose outputs are computed in stripes; all lengths are known.

    Raises GraphError for a graph with parameters or with outputs that are no images, OptionError for outputs of
    different heights.
    """
    if graph.parameters:
        raise GraphError(f"graph {graph.name!r} has parameters; streams are for networks that are not trained")
    readers: dict[Var, list[Operator]] = {}
    for operator in graph.operators:
        for var in operator.inputs:
            readers.setdefault(var, []).append(operator)
    makers = {v: operator for operator in graph.operators for v in operator.outputs}
    outputs = tuple(_output(name, var, makers, readers) for name, var in graph.outputs.items())
    for output in outputs:
        if output.image.ndim <= ROWS + 1 or output.image in graph.constants:
            raise GraphError(f"output {output.name!r} of {graph.name!r} is no image, so it has no rows to stream")
        if output.image.shape[0] > 1:
            raise GraphError(f"{graph.name!r} computes {output.image.shape[0]} images at once; a stream takes one")
    at_outputs = {id(output.mover) for output in outputs if output.mover}
    inputs = set(graph.inputs.values())
    movers = tuple(
        operator
        for operator in graph.operators
        if id(operator) not in at_outputs
        and operator.inputs
        and operator.inputs[0] in inputs
        and operator.outputs[0].ndim > ROWS
        and axis_before(operator, ROWS) is not None
    )
    taken = at_outputs | {id(operator) for operator in movers}
    inner = tuple(operator for operator in graph.operators if id(operator) not in taken)
    striped = StripedGraph(graph, level, outputs, movers, inner, _axes(graph, movers, readers))
    _check_heights(striped)
    return striped


def _check_heights(striped: StripedGraph) -> None:
    """Raises OptionError for outputs of different heights; GraphError where some have no rows, as they stay as they
    were, with channels in front.
    """
    heights = {output.image.shape[ROWS]: output for output in striped.outputs}
    if len(heights) > 1:
        striped.cut({output.image: (0, output.image.shape[ROWS]) for output in striped.outputs})
        (high, one), (low, other) = sorted(heights.items())[-1], sorted(heights.items())[0]
        raise OptionError(
            f"outputs {one.name!r} and {other.name!r} of {striped.graph.name!r} have {high} and {low} rows, in axes "
            f"{one.axis} and {other.axis}; a stream has stripes of one height"
        )


def _axes(graph: Graph, movers: Collection[Operator], readers: Mapping[Var, Collection[Operator]]) -> dict[str, int]:
    """Returns the axis of rows of each input. Raises GraphError where its readers want rows of several axes."""
    axes: dict[str, int] = {}
    for name, var in graph.inputs.items():
        wanted = {axis_before(o, ROWS) if o in movers else ROWS for o in readers.get(var, ())} - {None}
        if len(wanted) > 1:
            raise GraphError(f"input {name!r} of {graph.name!r} has its rows in several axes, so it cannot be streamed")
        axes[name] = next((axis for axis in wanted if axis is not None), ROWS)
    return axes


def _output(name: str, var: Var, makers: Mapping[Var, Operator], readers: Mapping[Var, Collection[Operator]]) -> Output:
    mover = makers.get(var)
    if mover is not None and var not in readers:
        axes = [axis for axis in range(var.ndim) if axis_before(mover, axis) == ROWS]
        if axes:
            return Output(name, mover.inputs[0], axes[0], mover)
    return Output(name, var, ROWS)
