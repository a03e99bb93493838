"""The rows that operators on images with channels last read for rows of their outputs, or columns for columns.

A stripe of output rows needs, of each tensor before it, the rows in its receptive field. Where windows overlap, stripes
that follow each other need some rows both (the halo), and compute them both:

    rows of y             [0   2) [2   4) [4   6)
    3 x 3 window: of x    [0    3)                   pads above
                             [1         5)
                                   [3      6)        pads below

Or they are kept (rolling): a stripe computes only the rows of x that no stripe in front of it has, and copies those
that it needs once more from the stripe in front. Then a stripe has some new rows of the first operator's output, and of
each tensor behind it all rows that these are enough for:

    rows of x             [0    3) [3   5) [5 6)        computed
                             [1 3)   [3 5)              kept for the next stripe

The images of a batch are computed one after the other, each in such stripes: rows of a tensor are those of one image.
Stripes may be of columns as well: `axis` says which of both what is called rows here lies along.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from attrs import define, field, frozen

from engine.graph.operator import Operator
from engine.graph.var import Var
from ops.common.tiling import ROWS, elementwise_rows
from ops.schema.schema import Attrs, Index

Span = tuple[int, int]
"""Rows [first, last) of a tensor."""


@frozen(eq=False)
class Part:
    """An operator on some rows: `written` of its output, and of each input those of `read`; None reads it whole.

    The rows of each input are along one of `axes`, and `attrs` are those of the operator with the pads of these rows.
    All are those of one image; of the inputs in `batched`, each image of a batch reads its own.
    """

    operator: Operator
    written: Span
    read: tuple[Span | None, ...]
    axes: tuple[int, ...]
    batched: tuple[bool, ...]
    attrs: Attrs


def is_image(var: Var, axis: int = ROWS) -> bool:
    """Returns whether a tensor has rows: one image, or a batch of images, with more than one row."""
    return var.ndim > axis + 1 and var.shape[0] > 0 and var.shape[axis] > 1


def row_bytes(var: Var, axis: int = ROWS) -> int:
    """Returns the bytes of a row of one image."""
    return var.spec.nbytes // (var.shape[0] * var.shape[axis])


def part_of(operator: Operator, first: int, last: int, axis: int = ROWS) -> Part | None:
    """Returns the part of an operator that computes rows [first, last) of its output; None where it has none.

    It may write some rows more. Rows that read nothing but pads have none. Of a batch, it computes one image.
    """
    if len(operator.outputs) != 1 or not is_image(operator.outputs[0], axis):
        return None
    rows = elementwise_rows if operator.schema.elementwise else operator.schema.rows
    stripe = rows(operator.signature, first, last, axis)
    if stripe is None:
        return None
    read, axes = tuple(map(_span, stripe.inputs)), tuple(map(_axis, stripe.inputs))
    inputs = zip(operator.inputs, read, axes, strict=True)
    if any(span and along == axis and not is_image(v, axis) for v, span, along in inputs):
        return None
    images = operator.outputs[0].shape[0]
    pairs = zip(operator.inputs, stripe.inputs, strict=True)
    batched = tuple(index[:1] == (slice(None),) and 1 < images == v.shape[0] for v, index in pairs)
    written = stripe.output[axis]
    return Part(operator, (written.start, written.stop), read, axes, batched, stripe.attrs)


def _wider_part(operator: Operator, first: int, last: int, axis: int) -> Part | None:
    """Returns the part of an operator that computes rows [first, last) of its output, and the nearest row that reads
    more than pads, where they do not; None where it has none.
    """
    part = part_of(operator, first, last, axis)
    rows = operator.outputs[0].shape[axis] if is_image(operator.outputs[0], axis) else 0
    if part is not None or part_of(operator, 0, rows, axis) is None:
        return part
    wider = (*((first, end) for end in range(last + 1, rows + 1)), *((begin, last) for begin in reversed(range(first))))
    return next(filter(None, (part_of(operator, *span, axis) for span in wider)), None)


@define(eq=False)
class Stripe:
    """The parts of operators that compute some rows of a result, found from the last operator to the first.

    `needed` has the rows that are needed of each tensor, and `whole` the tensors that must exist whole: those that are
    read whole, or in parts along another axis. `done` has the tensors whose rows are kept: the stripes in front have
    computed the rows [0, done). `ready` has the rows [0, ready) up to which they are computed, needed or not. Of a
    tensor in `read`, no row may be needed.
    """

    needed: dict[Var, Span]
    done: dict[Var, int] = field(factory=dict)
    ready: Mapping[Var, int] = field(factory=dict)
    parts: list[Part] = field(factory=list)
    whole: set[Var] = field(factory=set)
    read: set[Var] = field(factory=set)
    axis: int = ROWS

    def take(self, operator: Operator) -> bool:
        """Takes in the operator in front of those that are in; returns False where it has no part in the stripe.

        Nothing but what is in may read its output.
        """
        (output,) = operator.outputs if len(operator.outputs) == 1 else (None,)
        if output is None or output in self.whole or not (output in self.needed or output in self.read):
            return False
        first, last = self.new(output)
        find = part_of if output in self.done else _wider_part
        part = find(operator, *((first, last) if first < last else (0, output.shape[self.axis])), self.axis)
        if part is None:
            return False
        if first < last:
            self.parts.append(part)
            low, high = self.needed.get(output, part.written) if output in self.done else part.written
            self.needed[output] = low, max(high, part.written[1])
        for var, span, axis, batched in zip(operator.inputs, part.read, part.axes, part.batched, strict=True):
            if span is None or axis != self.axis or (not batched and max(output.shape[0], var.shape[0]) > 1):
                self.whole.add(var)
            elif first < last:
                low, high = self.needed.get(var, span)
                self.needed[var] = (min(low, span[0]), max(high, span[1]))
            else:
                self.read.add(var)
        return True

    def outside(self) -> dict[Var, int]:
        """Returns the bytes of the rows of one image that are needed of each tensor that no part computes."""
        inner = {v for part in self.parts for v in part.operator.outputs}
        needed = {v: last - first for v, (first, last) in self.needed.items() if v not in inner}
        return {v: row_bytes(v, self.axis) * rows for v, rows in needed.items()}

    def new(self, output: Var) -> Span:
        """Returns the rows of an output that this stripe computes; an empty span where it computes none."""
        low, high = self.needed.get(output, (0, 0))
        if output not in self.done:
            return low, high
        return self.done[output], max(high, self.ready.get(output, 0))


@frozen(eq=False)
class Stripes:
    """The stripes of a cascade, of one image, and which rows are kept from one to the next.

    `wanted` has the rows of the result that each of them is for; in some stripes these are none. `first` has, by tensor
    whose rows are kept, for each stripe the first row that it or a later one needs. `pieces` has, by tensor from
    outside that is taken in pieces, for each stripe the rows that no stripe in front of it has needed.
    """

    stripes: Sequence[Stripe]
    wanted: Sequence[Span]
    first: Mapping[Var, Sequence[int]]
    pieces: Mapping[Var, Sequence[Span]]


def in_stripes(
    operators: Sequence[Operator],
    height: int,
    rolling: Collection[Var] = (),
    pieces: Collection[Var] = (),
    axis: int = ROWS,
) -> Stripes | None:
    """Returns the stripes of operators; None where they cannot be computed in stripes.

    They are `height` rows of the last output high. Where the rows of tensors are kept (`rolling`), a stripe has so many
    new rows of the first output, and all rows behind that these are enough for; the last output must depend on it.
    The images of `pieces`, which stand outside, are taken in pieces, and their rows are kept, too.
    """
    if not all(len(operator.outputs) == 1 and is_image(operator.outputs[0], axis) for operator in operators):
        return None
    (result,) = operators[-1].outputs
    ends = _ends(operators, height, axis) if rolling else {}
    if rolling and result not in ends:
        return None
    wanted = list(pairwise((0, *ends[result]))) if rolling else list(spans(result.shape[axis], height))
    done = dict.fromkeys((*rolling, *pieces), 0)
    stripes: list[Stripe] = []
    taken: dict[Var, list[Span]] = {v: [] for v in pieces}
    for number, span in enumerate(wanted):
        stripe = Stripe({result: span} if span[0] < span[1] else {}, dict(done), read={result}, axis=axis)
        stripe.ready = {v: ends[v][number] for v in rolling if v in ends}
        if not all(stripe.take(operator) for operator in reversed(operators)):
            return None
        if not all(is_image(v, axis) and v not in stripe.whole for v in pieces):
            return None
        before, done = done, {v: max(rows, stripe.new(v)[1]) for v, rows in done.items()}
        for v, each in taken.items():
            each.append((before[v], done[v]))
        stripes.append(stripe)
    return Stripes(stripes, wanted, {v: _first(v, stripes) for v in done}, taken)


def _first(var: Var, stripes: Sequence[Stripe]) -> list[int]:
    """Returns, for each stripe and for what comes behind them, the first row that it or a later one needs."""
    rows = var.shape[stripes[0].axis]
    lows = [stripe.needed.get(var, (rows, rows))[0] for stripe in reversed(stripes)]
    return list(accumulate(lows, min, initial=rows))[::-1]


def _ends(operators: Sequence[Operator], step: int, axis: int) -> dict[Var, list[int]]:
    """Returns, by output, for each stripe the rows [0, end) that can be computed when it ends.

    Each stripe has `step` new rows of the first output. What does not depend on it is left out.
    """
    (first,) = operators[0].outputs
    ends = {first: [last for _, last in spans(first.shape[axis], step)]}
    for operator in operators[1:]:
        inputs = [(position, ends[v]) for position, v in enumerate(operator.inputs) if v in ends]
        (output,) = operator.outputs
        if inputs:
            ends[output] = _computable(operator, axis, inputs)
    return ends


def _computable(operator: Operator, axis: int, inputs: Sequence[tuple[int, Sequence[int]]]) -> list[int]:
    """Returns how many rows of an output can be computed when so many rows of some of its inputs are there."""
    ends, end, rows = list[int](), 0, operator.outputs[0].shape[axis]
    wanted = _reach(operator, end, axis)
    for there in zip(*(rows for _, rows in inputs), strict=True):
        limits = {position: limit for (position, _), limit in zip(inputs, there, strict=True)}
        while end < rows and all(wanted[i] <= limit for i, limit in limits.items()):
            end += 1
            wanted = _reach(operator, end, axis)
        ends.append(end)
    return ends


def _reach(operator: Operator, row: int, axis: int) -> tuple[int, ...]:
    """Returns, by input, the end of the rows that one row of an output reads; 0 of what is read whole.

    A row that reads nothing but pads is computed together with the next one that reads more, or with the one in front.
    """
    rows = range(row, operator.outputs[0].shape[axis])
    part = next(filter(None, (part_of(operator, first, first + 1, axis) for first in rows)), None)
    return tuple(span[1] if span else 0 for span in part.read) if part else (0,) * len(operator.inputs)


def spans(rows: int, height: int) -> Iterator[Span]:
    """Yields the rows of the stripes of an image; the last stripe may be lower than `height`."""
    for first in range(0, rows, height):
        yield first, min(first + height, rows)


def _axis(index: Index) -> int:
    return ROWS if _span(index) is None else len(index) - 1


def _span(index: Index) -> Span | None:
    """Returns the rows of a part; None of one that has all of them."""
    return None if index in ((), (slice(None),)) else (index[-1].start, index[-1].stop)
