"""The rows that operators on images with channels last read for rows of their outputs.

A stripe of output rows needs, of each tensor before it, the rows in its receptive field. Where windows overlap, stripes
that follow each other need some rows both (the halo), and compute them both:

    rows of y             [0   2) [2   4) [4   6)
    3 x 3 window: of x    [0    3)                   pads above
                             [1         5)
                                   [3      6)        pads below
"""

from collections.abc import Iterator

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
    """

    operator: Operator
    written: Span
    read: tuple[Span | None, ...]
    axes: tuple[int, ...]
    attrs: Attrs


def is_image(var: Var) -> bool:
    """Returns whether rows of a tensor lie in one run: of one image, with more than one row."""
    return var.ndim >= 3 and var.shape[0] == 1 and var.shape[ROWS] > 1


def part_of(operator: Operator, first: int, last: int) -> Part | None:
    """Returns the part of an operator that computes rows [first, last) of its output; None where it has none.

    It may write some rows more.
    """
    if len(operator.outputs) != 1 or not is_image(operator.outputs[0]):
        return None
    rows = elementwise_rows if operator.schema.elementwise else operator.schema.rows
    stripe = rows(operator.signature, first, last)
    if stripe is None:
        return None
    read, axes = tuple(map(_span, stripe.inputs)), tuple(map(_axis, stripe.inputs))
    inputs = zip(operator.inputs, read, axes, strict=True)
    if any(span and axis == ROWS and not is_image(v) for v, span, axis in inputs):
        return None
    written = stripe.output[ROWS]
    return Part(operator, (written.start, written.stop), read, axes, stripe.attrs)


@define(eq=False)
class Stripe:
    """The parts of operators that compute some rows of a result, found from the last operator to the first.

    `needed` has the rows that are needed of each tensor, and `whole` the tensors that must exist whole: those that are
    read whole, or in parts along another axis.
    """

    needed: dict[Var, Span]
    parts: list[Part] = field(factory=list)
    whole: set[Var] = field(factory=set)

    def take(self, operator: Operator) -> bool:
        """Takes in the operator in front of those that are in; returns False where it has no part in the stripe.

        Nothing but what is in may read its output.
        """
        (output,) = operator.outputs if len(operator.outputs) == 1 else (None,)
        if output not in self.needed or output in self.whole:
            return False
        part = part_of(operator, *self.needed[output])
        if part is None:
            return False
        self.parts.append(part)
        self.needed[output] = part.written
        for var, span, axis in zip(operator.inputs, part.read, part.axes, strict=True):
            if span is None or axis != ROWS:
                self.whole.add(var)
            else:
                low, high = self.needed.get(var, span)
                self.needed[var] = (min(low, span[0]), max(high, span[1]))
        return True


def spans(rows: int, height: int) -> Iterator[Span]:
    """Yields the rows of the stripes of an image; the last stripe may be lower than `height`."""
    for first in range(0, rows, height):
        yield first, min(first + height, rows)


def _axis(index: Index) -> int:
    return len(index) - 1 if index else ROWS


def _span(index: Index) -> Span | None:
    return (index[-1].start, index[-1].stop) if index else None
