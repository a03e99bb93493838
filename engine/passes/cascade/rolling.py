"""The needs and costs of cascades that keep rows for the next stripe.

They are those of a stripe from the middle: the first ones are no higher, as a stripe has some new rows of the first
operator's output, and of each tensor behind it only those that these are enough for. Which tensors keep their rows is
chosen from the last operator to the first. Where the rows of a tensor are wider than those that it is computed from,
as inside an inverted residual block, it may need fewer bytes to keep the narrow rows and compute the wide ones again;
that is chosen where it costs at most a price for each byte.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from attrs import define, evolve, field, frozen

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cascade.choices import BYTE, CALL, Choice, pareto, stripe_counts, weights
from engine.passes.cascade.rows import Stripe, is_image, part_of, row_bytes
from engine.planning.placed import Cascade
from ops.common.tiling import ROWS

PRICES = (0, 300, 3000)
"""The operations for each byte that rows may cost that are computed again. 0: all rows are kept."""
_PIECE_CALLS = 3
"""The calls for each piece: copies out of the image, and out of rows and pieces to those of a stripe."""
_STRIPES = 28
"""The stripes of a cascade, where they are not known yet."""


@frozen(eq=False)
class _Member:
    """An operator of a cascade: the rows of its output that the next stripe needs, too, and whether they are kept.

    `again` says how often the whole output is computed on top, for each stripe.
    """

    output: Var
    overlap: int
    rolls: bool
    again: float
    calls: int
    copied: int
    """Bytes that are read or copied once more for each stripe."""
    axis: int

    @property
    def row_bytes(self) -> int:
        return row_bytes(self.output, self.axis)

    @property
    def is_placed(self) -> bool:
        """Returns whether the output is copied behind the columns that were kept: few kernels write it there."""
        return self.rolls and self.axis != ROWS


@frozen(eq=False)
class Around:
    """The bytes of what stands around a cascade: its result, and what is held from in front of it.

    Of the latter, `taken` are those of the image that may be taken in pieces; 0 where none may.
    """

    result: int
    held: int
    taken: int

    @property
    def whole(self) -> int:
        """The bytes that are alive during the whole cascade."""
        return self.result + self.held

    @property
    def least(self) -> int:
        """Bytes that there are at least around what lies inside."""
        return self.whole - self.taken

    def in_pieces(self, inner: npt.NDArray[np.int64], shares: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Returns the most bytes alive at once where the image is taken in pieces, by the shares of rows of stripes.

        The image is there twice in front of the cascade. As its pieces die, those of the result come, which are put
        together at the end.
        """
        if not self.taken:
            return self.whole + inner
        between = np.maximum(self.taken, np.ceil(shares * self.taken).astype(np.int64) + self.result)
        ends = max(self.held + self.taken, self.held - self.taken + 2 * self.result)
        return np.maximum(self.held - self.taken + between + inner, ends)


@frozen(eq=False)
class RollingSearch:
    """The cascades of a graph that keep rows.

    `flops` has the operations of each operator, `overwritable` the inputs that it may write all of its output over, and
    `alone` the bytes of each that is computed whole; `last_reader` has the last position that reads a tensor. `around`
    returns the bytes around a cascade by its first position, the one behind it, and what one of its stripes reads.
    """

    operators: Sequence[Operator]
    flops: Mapping[Operator, int]
    overwritable: Mapping[Operator, Sequence[Var]]
    last_reader: Mapping[Var, int]
    alone: Sequence[int]
    around: Callable[[int, int, Stripe], Around]

    def segments(self, least: int, end: int, axis: int) -> Iterator[Choice]:
        """Yields the cascades that end in front of a position, from `least` or a later one on.

        Of each, those numbers of stripes of which none is better in bytes and cost. Those that need no less than the
        same operators one by one are left out.
        """
        seen: set[tuple[int, tuple[int, ...]]] = set()
        for price in PRICES if least < end else ():
            for chain, first, apart in self._chains(least, end, price, axis):
                rolling = tuple(end - 1 - number for number, member in enumerate(chain.members) if member.rolls)[::-1]
                around = self.around(first, end, chain.stripe)
                if rolling and around.least + chain.kept_bytes < apart and (first, rolling) not in seen:
                    seen.add((first, rolling))
                    choices = self._choices(chain, Cascade(first, end, 1, rolling, axis=axis), around)
                    yield from pareto([choice for choice in choices if choice.nbytes < apart])

    def _chains(self, least: int, end: int, price: int, axis: int) -> Iterator[tuple["_Chain", int, int]]:
        """Yields the chain as it grows, with its first position, and what its operators need one by one."""
        fewest = min(operator.outputs[0].shape[axis] for operator in self.operators[least:end])
        chain = _Chain.of(self.operators[end - 1], fewest, self.flops, price, axis)
        apart = 0
        for first in range(end - 1, least - 1, -1):
            if not chain.take(self.operators[first]):
                return
            apart = max(apart, self.alone[first])
            if first < end - 1:
                yield chain, first, apart

    def _choices(self, chain: "_Chain", cascade: Cascade, around: Around) -> Iterator[Choice]:
        """Yields a cascade in all numbers of stripes, with the image that it reads whole and in pieces."""
        members = chain.members[::-1]
        output = members[0].output
        images, rows = output.shape[0], output.shape[cascade.axis]
        steps = sorted({-(-rows // count) for count in (*stripe_counts(output), rows)})
        shares = np.array(steps) / rows
        inner = self._inner(members, cascade.first, shares)
        whole, pieces = around.whole + inner, around.in_pieces(inner, shares / images)
        for step, need, need_in_pieces in zip(steps, whole.tolist(), pieces.tolist(), strict=True):
            extra = -(-rows // step) * chain.again
            count = images * -(-rows // step)
            cost = extra + (count - 1) * (chain.calls * CALL + chain.copied * BYTE) + chain.placed * BYTE
            yield Choice(need, cost, extra, (evolve(cascade, height=step),))
            if need_in_pieces < need:
                cost += count * _PIECE_CALLS * CALL + (2 * around.taken + around.result) * BYTE
                yield Choice(need_in_pieces, cost, extra, (evolve(cascade, height=step, in_pieces=True),))

    def _inner(self, members: Sequence[_Member], first: int, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Returns the most bytes of inner tensors alive at once, by the share of rows that a stripe computes."""
        kept = {m.output: m.row_bytes * m.overlap for m in members if m.rolls}
        sizes: dict[Var, npt.NDArray[np.int64]] = {}
        total = np.full(len(shares), sum(kept.values()), np.int64)
        most = np.zeros_like(total)
        for number, member in enumerate(members):
            operator, output = self.operators[first + number], member.output
            dying = {v for v in operator.inputs if v in sizes and self.last_reader[v] == first + number}
            saved: np.ndarray | int = 0
            if number < len(members) - 1:
                rows = output.shape[member.axis]
                new = np.ceil(shares * rows).astype(np.int64)
                sizes[output] = np.minimum(new + member.overlap, rows) * member.row_bytes
                total = total + sizes[output] - kept.get(output, 0)
                if member.is_placed:
                    most = np.maximum(most, total + new * member.row_bytes)
            if not member.rolls:
                over = next((v for v in self.overwritable[operator] if v in dying), None)
                saved = 0 if over is None else np.maximum(sizes[over] - kept.get(over, 0), 0)
            most = np.maximum(most, total - saved)
            for var in dying:
                most = np.maximum(most, total + kept.get(var, 0))  # what is kept is copied while all is there
                total = total + kept.get(var, 0) - sizes[var]
        return most


@define(eq=False)
class _Chain:
    """The operators of a cascade, taken in from the last one to the first, with the sums of their costs."""

    result: Var
    flops: Mapping[Operator, int]
    price: int
    stripe: Stripe
    ends: dict[Var, int]
    """The rows [0, end) of each tensor that the stripe in front has seen."""
    members: list[_Member] = field(factory=list)
    kept_bytes: int = 0
    again: float = 0.0
    calls: int = 0
    copied: int = 0
    placed: int = 0
    """Bytes of columns that are copied once in all stripes."""

    @classmethod
    def of(cls, operator: Operator, fewest: int, flops: Mapping[Operator, int], price: int, axis: int) -> "_Chain":
        """Returns the chain that ends with an operator, and has nothing yet.

        Its stripe has a new row of each tensor, so many rows of the result where a tensor has `fewest` rows.
        """
        (result,) = operator.outputs
        rows = result.shape[axis]
        step = -(-rows // fewest)
        middle = max(rows // 2 // step, 1) * step
        stripe = Stripe({result: (middle, min(middle + step, rows))}, axis=axis)
        placed = result.spec.nbytes if axis != ROWS else 0
        return cls(result, flops, price, stripe, {result: middle}, placed=placed)

    def take(self, operator: Operator) -> bool:
        """Takes in an operator; returns False where it cannot be in the cascade."""
        (output,) = operator.outputs if len(operator.outputs) == 1 else (self.result,)
        end = self.ends.get(output, 0)
        overlap = max(end - self.stripe.needed.get(output, (end, end))[0], 0)
        rolls = overlap > 0 and not self._is_cheap(operator, overlap)
        if rolls:
            self.stripe.done[output] = end
        if not self.stripe.take(operator):
            return False
        self._see(operator, end)
        member = self._member(operator, output, overlap, rolls)
        self.members.append(member)
        self.kept_bytes += member.row_bytes * overlap if rolls else 0
        self.again += member.again
        self.calls += member.calls
        self.copied += member.copied
        self.placed += output.spec.nbytes if member.is_placed else 0
        return True

    def _member(self, operator: Operator, output: Var, overlap: int, rolls: bool) -> _Member:
        axis = self.stripe.axis
        share = overlap / output.shape[axis]
        again = 0.0 if rolls else share * self.flops[operator]
        copied = 2 * overlap * row_bytes(output, axis) if rolls else 0
        return _Member(output, overlap, rolls, again, 3 if rolls else 1, copied + weights(operator), axis)

    def _see(self, operator: Operator, end: int) -> None:
        """Notes the rows of the inputs that the stripe in front has read."""
        part = part_of(operator, end - 1, end, self.stripe.axis) if end > 0 else None
        for var, span in zip(operator.inputs, part.read if part else (), strict=False):
            if span is not None:  # along another axis, too: then nothing inside the cascade may write it
                self.ends[var] = max(self.ends.get(var, 0), span[1])

    def _is_cheap(self, operator: Operator, overlap: int) -> bool:
        """Returns whether rows are computed again: bytes are saved, at no more than the price."""
        (output,) = operator.outputs
        share = overlap / output.shape[self.stripe.axis]
        inputs: Collection[Var] = {v for v in operator.inputs if is_image(v, self.stripe.axis)}
        saved = share * (output.spec.nbytes - sum(v.spec.nbytes for v in inputs)) / output.shape[0]
        return saved > 0 and _STRIPES * share * self.flops[operator] <= self.price * saved
