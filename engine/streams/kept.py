"""Which tensors of a stream keep rows for the next stripe, and which rows these are."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field, frozen

from engine.executor.rows import with_rows
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cascade.choices import BYTE
from engine.passes.cascade.rows import Span, is_image, row_bytes
from ops.common.tiling import ROWS
from ops.tensor.spec import TensorSpec

_COPIES = 4
"""The copies of a row that is kept: to the outputs of a stripe, out of the arena, into it, and in front of new rows."""


@frozen(eq=False)
class Kept:
    """What is kept where one stripe ends and the next one begins: rows [0, done) are computed of tensors, and of these
    `rows` are needed once more.
    """

    done: Mapping[Var, int] = field(factory=dict)
    rows: Mapping[Var, Span] = field(factory=dict)


NOTHING = Kept()
"""What is kept in front of the first stripe, and where all rows are computed for each stripe."""


def worth_keeping(operators: Iterable[Operator]) -> Sequence[Var]:
    """Returns the tensors of which a row takes more operations to compute than the copies of a kept one.

    A row takes those of its operator, and of the rows that it reads, where these are not kept themselves.
    """
    again: dict[Var, float] = {}
    kept = list[Var]()
    for operator in operators:
        if len(operator.outputs) != 1 or not is_image(operator.outputs[0]):
            continue
        (output,) = operator.outputs
        work = float(operator.schema.cost(operator.signature).flops)
        work += sum(again[v] * v.shape[ROWS] for v in operator.inputs if v in again)
        again[output] = work / output.shape[ROWS]
        if again[output] > _COPIES * BYTE * row_bytes(output):
            kept.append(output)
            del again[output]
    return kept


@define(eq=False)
class KeptRows:
    """The most rows that are kept of each tensor, between any two stripes."""

    most: dict[Var, int] = field(factory=dict)

    def add(self, rows: Mapping[Var, Span]) -> None:
        """Adds what one stripe keeps."""
        self.most |= {v: max(self.most.get(v, 0), last - first) for v, (first, last) in rows.items()}

    @property
    def specs(self) -> dict[Var, TensorSpec]:
        """The tensors, with so many rows."""
        return {v: with_rows(v.spec, ROWS, rows) for v, rows in self.most.items()}

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
        return sum(spec.nbytes for spec in self.specs.values())
