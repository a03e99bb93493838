"""What the judge of data flow knows of values: where they lie, and what their bytes must hold for them to be there.

Each method raises DataFlowError where something is wrong; `where` names the call.
"""

from collections.abc import Iterable
from itertools import chain

from attrs import define, field

from engine.check.pieces import Piece, Run, cut, cut_all, runs_of
from engine.check.plans import PlanLike
from engine.check.spans import Span
from engine.text.errors import DataFlowError
from ops.schema.schema import Kernel
from ops.tensor.layout import Layout
from ops.tensor.spec import TensorSpec

NOTHING = -1
"""The content of a byte to which no value was written."""


@define(eq=False)
class Contents:
    """The values of a replayed plan: the span, owner and tensor of each, and who wrote which bytes of an owner."""

    plan: PlanLike
    spans: tuple[Span[int], ...]
    owners: dict[int, int] = field(factory=dict)
    sources: dict[int, str] = field(factory=dict)
    pieces: dict[int, list[Piece]] = field(factory=dict)

    def name(self, value: int) -> str:
        """Returns the name of a value, for messages."""
        return repr(self.plan.lowered.values[value].name)

    def write(self, where: str, value: int, source: str, kernel: Kernel | None = None) -> None:
        """Writes a value to bytes of its own inside its storage: dense ones, or ones that the kernel can write."""
        layout, spec = self.plan.places[value].layout, self.plan.lowered.values[value].spec
        if not layout.is_all_of(spec) and not (kernel and _is_written(layout, spec, kernel)):
            raise DataFlowError(f"{where}: {self.name(value)} is written but not dense")
        span = self.inside(where, value)
        self.owners[value] = value
        self.sources[value] = source
        self.pieces[value] = [(low, high, value) for low, high in span.runs]
        for low, high in span.runs:
            span.held.write(low, high, value)

    def inside(self, where: str, value: int) -> Span[int]:
        """Returns the span of a value, which must lie inside its storage."""
        span = self.spans[value]
        if span.low < 0 or span.high > span.size:
            raise DataFlowError(
                f"{where}: {self.name(value)} lies at [{span.low}, {span.high}), outside of {span.size} bytes"
            )
        return span

    def show(self, value: int, source: int, name: str) -> None:
        """Makes a value a view of another."""
        self.owners[value], self.sources[value] = self.owners[source], name

    def put_together(self, value: int, parts: Iterable[int], source: str) -> None:
        """Makes a value of the parts that were written to its bytes, under the names of those parts."""
        self.owners[value], self.sources[value] = value, source
        pieces = (cut_all(self.pieces[self.owners[part]], self.spans[part].runs) for part in parts)
        self.pieces[value] = sorted(chain.from_iterable(pieces))

    def read(self, where: str, value: int) -> None:
        """Checks that all bytes of a value hold what they held when it was computed."""
        if value not in self.owners:
            raise DataFlowError(f"{where}: reads {self.name(value)} before anything computed it")
        span, owner = self.inside(where, value), self.owners[value]
        if len(self.pieces[owner]) == 1 and not span.held.stranger(span.low, span.high, owner):
            return
        wanted = self.pieces[owner] if value == owner else cut_all(self.pieces[owner], span.runs)
        if span.held.pieces_in(span.runs) != wanted:
            for low, high in span.runs:
                self._compare(where, value, (low, high), cut(self.pieces[owner], low, high))

    def _compare(self, where: str, value: int, run: Run, wanted: list[Piece]) -> None:
        """Compares piece by piece, as two lists of pieces with the same bytes may be cut at different bytes."""
        for low, high, name in wanted:
            mismatch = self.spans[value].held.stranger(low, high, name)
            if mismatch:
                byte, held = mismatch
                holds = "nothing" if held == NOTHING else self.name(held)
                raise DataFlowError(f"{where}: reads {self.name(value)}, but byte {byte} of its place holds {holds}")
        if sum(high - low for low, high, _ in wanted) != run[1] - run[0]:
            raise DataFlowError(f"{where}: reads {self.name(value)}, of which some bytes were never computed")

    def means(self, where: str, value: int, source: str) -> None:
        """Checks that a value is the tensor of that name."""
        if self.sources.get(value) != source:
            raise DataFlowError(f"{where}: reads {self.name(value)} where {source!r} is meant")


def _is_written(layout: Layout, spec: TensorSpec, kernel: Kernel) -> bool:
    """Returns whether a layout has each element of a tensor once, and the kernel can write there."""
    if (layout.shape, layout.itemsize) != (spec.shape, spec.dtype.itemsize) or not kernel.writes(layout):
        return False
    return sum(high - low for low, high in runs_of(layout)) == spec.nbytes
