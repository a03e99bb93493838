"""What the judge of data flow knows of values: where they lie, and what their bytes must hold for them to be there.

Each method raises DataFlowError where something is wrong; `where` names the call.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from attrs import define, field

from engine.check.pieces import Pieces, cut, runs_of, united, written
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
    """The values of a replayed plan: the span, owner and tensor of each.

    `joined` has those that were put together, with the bytes that each part was written to.
    """

    plan: PlanLike
    spans: tuple[Span, ...]
    owners: dict[int, int] = field(factory=dict)
    sources: dict[int, str] = field(factory=dict)
    joined: dict[int, Pieces] = field(factory=dict)

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
        self.joined.pop(value, None)
        if layout.is_dense:
            span.held.write(span.low, span.high, value)
        else:
            span.held.write_all(span.runs, value)

    def inside(self, where: str, value: int) -> Span:
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

    def put_together(self, value: int, parts: Sequence[int], source: str) -> None:
        """Makes a value of the parts that were written to its bytes, under the names of those parts."""
        pieces = np.hstack([np.empty((3, 0), np.int64), *map(self._wanted, parts)])
        self.joined[value] = pieces[:, np.argsort(pieces[0], kind="stable")]
        self.owners[value], self.sources[value] = value, source

    def _wanted(self, value: int) -> Pieces:
        """Returns what the bytes of a value held when it was computed."""
        owner = self.owners[value]
        pieces = self.joined[owner] if owner in self.joined else written(self.spans[owner].runs, owner)
        return pieces if value == owner else cut(pieces, self.spans[value].runs)

    def read(self, where: str, value: int) -> None:
        """Checks that all bytes of a value hold what they held when it was computed."""
        if value not in self.owners:
            raise DataFlowError(f"{where}: reads {self.name(value)} before anything computed it")
        span, owner = self.inside(where, value), self.owners[value]
        if owner not in self.joined and not span.held.stranger(span.low, span.high, owner):
            return
        wanted, held = self._wanted(value), span.held.pieces_in(span.runs)
        if not np.array_equal(held, wanted) and not np.array_equal(united(held), united(wanted)):
            self._explain(where, value, wanted)

    def _explain(self, where: str, value: int, wanted: Pieces) -> NoReturn:
        """Raises the error of a value of which some bytes hold something else, or were never computed."""
        for low, high, name in wanted.T.tolist():
            mismatch = self.spans[value].held.stranger(low, high, name)
            if mismatch:
                byte, held = mismatch
                holds = "nothing" if held == NOTHING else self.name(held)
                raise DataFlowError(f"{where}: reads {self.name(value)}, but byte {byte} of its place holds {holds}")
        raise DataFlowError(f"{where}: reads {self.name(value)}, of which some bytes were never computed")

    def means(self, where: str, value: int, source: str) -> None:
        """Checks that a value is the tensor of that name."""
        if self.sources.get(value) != source:
            raise DataFlowError(f"{where}: reads {self.name(value)} where {source!r} is meant")


def _is_written(layout: Layout, spec: TensorSpec, kernel: Kernel) -> bool:
    """Returns whether a layout has each element of a tensor once, and the kernel can write there."""
    if (layout.shape, layout.itemsize) != (spec.shape, spec.dtype.itemsize) or not kernel.writes(layout):
        return False
    lows, highs = runs_of(layout)
    return int((highs - lows).sum()) == spec.nbytes
