"""The problem of cutting operators into parts, in numbers: what each operator takes, reads and keeps.

Parts are in order: no operator reads what an operator of a later part computes. Operators are numbered so that none
reads what a later one computes, so every cut of that order is allowed.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import field, frozen

from allocator.problem import Column, column

TRAFFIC, THROUGHPUT = "traffic", "throughput"
OBJECTIVES = (TRAFFIC, THROUGHPUT)
OUTSIDE = -1
"""The maker of a value that no operator computes."""


@frozen(eq=False)
class Reads:
    """Uses of things (values, weights) by operators, in the order of the operators; each use once.

    `before` is the operator that used the same thing last, OUTSIDE where there is none; `maker` the operator that made
    it, and `nbytes` its size. A use counts in parts that begin at `begin` or before: that is its `reader`, unless a
    part has to have two operators to have the use.
    """

    reader: Column
    thing: Column
    before: Column
    maker: Column
    nbytes: Column
    begin: Column

    @classmethod
    def of(cls, uses: Iterable[tuple[int, int]], maker: Sequence[int], nbytes: Sequence[int]) -> "Reads":
        """Returns uses (operator, thing), with the maker and the bytes of each thing."""
        reader, thing, before, last = [], [], [], dict[int, int]()
        for operator, used in sorted(set(uses)):
            reader.append(operator)
            thing.append(used)
            before.append(last.get(used, OUTSIDE))
            last[used] = operator
        makers, sizes = ([many[t] for t in thing] for many in (maker, nbytes))
        return cls(*map(column, (reader, thing, before, makers, sizes, reader)))

    def new_since(self, start: int, operators: int) -> Column:
        """Returns, for each operator, the bytes of what a part that begins at `start` did not have before.

        What is made inside the part is not counted. Operators before `start` have 0.
        """
        counted = (self.begin >= start) & (self.before < start) & (self.maker < start)
        sums = np.bincount(self.reader[counted], weights=self.nbytes[counted], minlength=operators)
        return sums.astype(np.int64)

    def with_uses(self, rows: Iterable[tuple[int, int, int]]) -> "Reads":
        """Returns these uses with others, of things that nobody else uses: (begin, reader, bytes)."""
        begin, reader, nbytes = (column(many) for many in zip(*rows, strict=True))
        things = column(int(self.thing.max(initial=-1)) + 1 + np.arange(len(reader)))
        outside = column(np.full(len(reader), OUTSIDE))
        more = (reader, things, outside, outside, nbytes, begin)
        ours = (self.reader, self.thing, self.before, self.maker, self.nbytes, self.begin)
        return Reads(*(column(np.concatenate(both)) for both in zip(ours, more, strict=True)))

    def rows(self, operators: int) -> tuple[tuple[tuple[int, int, int], ...], ...]:
        """Returns (thing, maker, bytes) of what each operator uses."""
        rows: list[list[tuple[int, int, int]]] = [[] for _ in range(operators)]
        for reader, *row in zip(
            self.reader.tolist(), self.thing.tolist(), self.maker.tolist(), self.nbytes.tolist(), strict=True
        ):
            rows[reader].append((row[0], row[1], row[2]))
        return tuple(map(tuple, rows))


@frozen(eq=False)
class CutProblem:
    """Operators to be cut into as many parts as there are `capacities`, in bytes.

    `seconds`: the time that each operator takes. `values`: what operators compute, and who reads it; what a caller
    feeds is not sent between parts, and not among them. `weights`: what stays in memory of a part that reads it, from
    run to run. `least`: bytes that a part with the operator needs at least, beside its weights. `together`: operators
    that have to be in one part. `seconds_a_byte`: the time to send a byte.
    """

    seconds: Sequence[float]
    values: Reads
    weights: Reads
    least: Column
    capacities: tuple[int, ...]
    objective: str = TRAFFIC
    together: tuple[tuple[int, ...], ...] = ()
    seconds_a_byte: float = 0.0
    is_whole: bool = field(default=True)
    """Whether each part has to have an operator."""

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def parts(self) -> int:
        """Returns the number of parts."""
        return len(self.capacities)

    def worth(self, received: int, seconds: float) -> float:
        """Returns what a part adds to the objective: its bytes, or its time in a pipeline."""
        return float(received) if self.objective == TRAFFIC else seconds + received * self.seconds_a_byte

    def total(self, worths: Iterable[float]) -> float:
        """Returns the objective of parts, which is to be small: the sum of bytes, or the longest time."""
        return sum(worths) if self.objective == TRAFFIC else max(worths, default=0.0)

    def induced(self, chosen: Sequence[int]) -> "CutProblem":
        """Returns the problem of some operators alone, whose optimum is never above that of the whole."""
        number = {operator: i for i, operator in enumerate(chosen)}
        return CutProblem(
            seconds=[self.seconds[i] for i in chosen],
            values=_induced(self.values, number),
            weights=_induced(self.weights, number),
            least=self.least[list(chosen)],
            capacities=self.capacities,
            objective=self.objective,
            seconds_a_byte=self.seconds_a_byte,
            is_whole=False,
        )


@frozen
class Cut:
    """Operators by part: `part_of[i]` is the part of operator i; `objective` is what that costs."""

    part_of: tuple[int, ...]
    objective: float

    def operators(self, part: int) -> tuple[int, ...]:
        """Returns the operators of a part, in order."""
        return tuple(i for i, p in enumerate(self.part_of) if p == part)


def _induced(reads: Reads, number: dict[int, int]) -> Reads:
    things = range(int(reads.thing.max(initial=-1)) + 1)
    makers, sizes = dict.fromkeys(things, OUTSIDE), dict.fromkeys(things, 0)
    uses = []
    for reader, thing, maker, nbytes in zip(
        reads.reader.tolist(), reads.thing.tolist(), reads.maker.tolist(), reads.nbytes.tolist(), strict=True
    ):
        outside = maker != OUTSIDE and maker not in number
        if reader in number and not outside:
            uses.append((number[reader], thing))
            makers[thing] = number.get(maker, OUTSIDE)
            sizes[thing] = nbytes
    return Reads.of(uses, [makers[t] for t in things], [sizes[t] for t in things])
