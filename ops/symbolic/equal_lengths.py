"""Which names must mean the same length, or a certain number, so that an operator can be: where nobody said so."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from attrs import frozen

from ops.symbolic.infer import Attempt
from ops.tensor.dims import Dim, dims_in
from ops.tensor.spec import Shape

_MOST_PAIRS = 24
"""Up to so many, any two equations are tried together."""

Pair = tuple[Dim, Dim | int]
"""Two lengths that may have to be the same, the first of them a name."""
Equations = Mapping[str, Dim | int]
"""The dimension or number that replaces each name."""


def same_lengths(attempt: Attempt) -> Equations:
    """Returns the first few equations with which the operator fits; none where there are no such.

    It tries, in this order: any two names, or a name and a number; any two such pairs; all dimensions of two operands,
    and then of all operands, that stand in the same place, counted from the back. Pairs that stand in the same place of
    two operands come first. A number counts only where no other one fits.
    """
    search = _Search(attempt)
    return next((equations for equations in search.candidates() if search.fits(equations)), {})


@frozen(eq=False)
class _Search:
    attempt: Attempt

    @property
    def names(self) -> list[Dim]:
        """Returns the names among the dimensions of the operator."""
        attrs = tuple(self.attempt.attrs.values())
        return self._named(dims_in((*(s.shape for s in self.attempt.inputs), *attrs)))

    def candidates(self) -> Iterator[Equations]:
        """Yields equations that may help."""
        pairs: list[Pair] = list(combinations(self.names, 2))
        pairs += [(name, n) for name in self.names for n in self._numbers()]
        facing = [{*map(str, pair)} for pair in self._facing()]
        pairs.sort(key=lambda pair: {*map(str, pair)} not in facing)
        yield from (_solved([pair]) for pair in pairs)
        if len(pairs) <= _MOST_PAIRS:
            yield from (_solved(two) for two in combinations(pairs, 2))
        every: list[Pair] = []
        for one, other in self._operands():
            aligned = self._pairs(reversed(one), reversed(other))
            every += aligned
            yield _solved(aligned)
        yield _solved(every)

    def fits(self, equations: Equations) -> bool:
        """Returns whether the operator fits in the first sample and in another one, and with no other number.

        Windows fit any length that is long enough, so the numbers with which they fit are not those of the model.
        """
        if not equations or not self._fits_first(equations):
            return False
        numbers = {name: to for name, to in equations.items() if isinstance(to, int)}
        others = ({**equations, name: other} for name, n in numbers.items() for other in (n + 1, n * 2, n * 16))
        return not any(self._fits_first(changed) for changed in others)

    def _fits_first(self, equations: Equations) -> bool:
        table = self.attempt.table
        replaced = {n: equations[n.text] for n in table.named if n.text in equations}

        def number(sample: int, dim: Dim) -> int:
            equal: Dim | int = next((to for name, to in replaced.items() if self._same(name, dim)), dim)
            return equal.samples[sample] if isinstance(equal, Dim) else equal

        signatures, _ = self.attempt.sign(number)
        return len(signatures) > 1 and table.alive[0] in signatures

    def _facing(self) -> list[Pair]:
        """Returns pairs of lengths in the same place of two operands, counted from the front or from the back."""
        sides = [(one, other) for one, other in self._operands()]
        sides += [(one[::-1], other[::-1]) for one, other in sides]
        return [pair for one, other in sides for pair in self._pairs(one, other)]

    def _operands(self) -> list[tuple[Shape, Shape]]:
        return list(combinations([s.shape for s in self.attempt.inputs], 2))

    def _pairs(self, one: Iterable[Dim | int], other: Iterable[Dim | int]) -> list[Pair]:
        return [pair for m, n in zip(one, other, strict=False) for pair in self._pair(m, n)]

    def _numbers(self) -> list[int]:
        """Returns the lengths in the shapes of the operands that are numbers; 1 comes last."""
        return [*sorted({n for s in self.attempt.inputs for n in s.shape if isinstance(n, int) and n > 1}), 1]

    def _pair(self, one: Dim | int, other: Dim | int) -> Iterator[Pair]:
        (left, right) = (self._named([d]) if isinstance(d, Dim) else [] for d in (one, other))
        if left and right and left[0] is not right[0]:
            yield left[0], right[0]
        elif left and isinstance(other, int) and other > 1:
            yield left[0], other
        elif right and isinstance(one, int) and one > 1:
            yield right[0], one

    def _named(self, dims: Sequence[Dim]) -> list[Dim]:
        return [name for name in self.attempt.table.named if any(self._same(name, d) for d in dims)]

    def _same(self, name: Dim, dim: Dim) -> bool:
        return all(name.samples[j] == dim.samples[j] for j in self.attempt.table.alive)


def _solved(pairs: Sequence[Pair]) -> Equations:
    """Returns equations of names, solved: which name is replaced by which dimension.

    An equation that contradicts an earlier one is left out.
    """
    replaced: dict[str, Dim | int] = {}

    def now(length: Dim | int) -> Dim | int:
        return now(replaced[length.text]) if isinstance(length, Dim) and length.text in replaced else length

    for one, other in pairs:
        left, right = now(one), now(other)
        if isinstance(right, Dim) and right is not left:
            replaced[right.text] = left
        elif isinstance(left, Dim) and left is not right:
            replaced[left.text] = right
    return {name: now(to) for name, to in replaced.items()}
