"""The bytes that calls read and write of what lies in memories: chunks of the arena, and constants.

A call reads each of its operands once and writes each of its outputs once; it writes its workspace and reads it. An
operator whose cost says that it touches fewer bytes than its operands have, such as one that gathers rows of a table,
reads no more of any than that. The feed writes the inputs and the fetch reads the outputs. Arrays of the caller lie in
no memory of the plan.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from attrs import field, frozen

from allocator.problem import Column, column
from engine.lower.calls import Call, Lowered
from ops.schema.schema import elementwise_cost


@frozen(eq=False)
class Traffic:
    """What one run moves, a row for each chunk or constant: bytes read and written, and the calls that touch it."""

    read: Column = field(converter=column)
    written: Column = field(converter=column)
    calls: Column = field(converter=column)


@frozen
class Access:
    """What one tick reads and writes: pairs of a value and its bytes. A value may be both read and written."""

    tick: int
    read: tuple[tuple[int, int], ...]
    written: tuple[tuple[int, int], ...]

    def by_row(self, row_of: Mapping[int, int]) -> Mapping[int, list[int]]:
        """Returns the bytes read and written of each row that is touched; `row_of` has the row of a value."""
        moved: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for kind, pairs in enumerate((self.read, self.written)):
            for value, nbytes in pairs:
                if value in row_of:
                    moved[row_of[value]][kind] += nbytes
        return moved


def accesses(lowered: Lowered) -> Iterator[Access]:
    """Yields what the feed, each call and the fetch read and write, in the order of ticks."""

    def whole(values: Iterable[int]) -> tuple[tuple[int, int], ...]:
        return tuple((v, lowered.values[v].spec.nbytes) for v in dict.fromkeys(values))

    yield Access(0, (), whole(lowered.inputs.values()))
    for call in lowered.calls:
        most = _most_read(call)
        read = tuple((v, min(nbytes, most)) for v, nbytes in whole(call.inputs))
        yield Access(call.tick, read + whole(call.workspace), whole(call.outputs + call.workspace))
    yield Access(len(lowered.instructions) + 1, whole(lowered.outputs.values()), ())


def traffic_of(lowered: Lowered, row_of: Mapping[int, int], count: int) -> Traffic:
    """Returns the traffic of `count` rows; `row_of` has the row of each value that lies in some memory.

    Copies that a copy engine can make are no part of it: they have a time of their own.
    """
    moved: Any = np.zeros((3, count), np.int64)
    copies = {call.tick for call in lowered.calls if not lowered.engine_copies.keys().isdisjoint(call.outputs)}
    for access in accesses(lowered):
        for row, (read, written) in access.by_row(row_of).items() if access.tick not in copies else ():
            moved[:, row] += read, written, 1
    return Traffic(*moved)


def _most_read(call: Call) -> int:
    """Returns the most bytes that a call reads of one operand, by the cost that its schema declares."""
    costs = [op.schema.cost(op.signature) for op in call.operators] or [elementwise_cost(call.signature)]
    return max(sum(cost.bytes for cost in costs) - sum(spec.nbytes for spec in call.signature.outputs), 0)
