"""How an Einsum is computed: sums, elementwise products and matrix products, two operands at a time.

Operands that are alone in a label which the result does not have are summed over it first. Then the pair whose product
is smallest is multiplied, by BLAS where a label is summed over, until one is left. All tensors are dense.

The order is not that of `numpy.einsum_path`: its greedy order takes the pair that shrinks tensors most, and so computes
ij,jk,kl->il of 100, 1000, 100 and 2 from the left, with 25 times the operations; its optimal one is exponential.
"""

from collections.abc import Sequence
from itertools import combinations
from math import prod

from attrs import frozen

from ops.products.einsum_equation import Equation, Labels


@frozen(eq=False)
class Operand:
    """Tensor number `index` (operands first, then what steps make), its axes by label; a label may stand twice."""

    index: int
    labels: Labels

    @property
    def named(self) -> Labels:
        """Returns each label once."""
        return tuple(dict.fromkeys(label for label in self.labels if label))


@frozen(eq=False)
class Sum:
    """result[labels] = sum of the source over its other labels; diagonals where labels stand twice."""

    source: Operand
    result: Labels


@frozen(eq=False)
class Times:
    """result[labels] = left * right, element by element."""

    left: Operand
    right: Operand
    result: Labels


@frozen(eq=False)
class MatMul:
    """result = left (batch, rows, depth) @ right (batch, depth, columns), labels in these groups."""

    left: Operand
    right: Operand
    batch: Labels
    rows: Labels
    depth: Labels
    columns: Labels
    result: Labels


Step = Sum | Times | MatMul


class _Planner:
    """Collects steps; the result of step i is tensor number `count + i`."""

    def __init__(self, equation: Equation) -> None:
        self.equation, self.count = equation, len(equation.operands)
        self.steps: list[Step] = []

    def size(self, labels: Sequence[str]) -> int:
        return prod(self.equation.sizes[label] for label in labels)

    def add(self, step: Step) -> Operand:
        self.steps.append(step)
        return Operand(self.count + len(self.steps) - 1, step.result)

    def summed(self, operand: Operand, wanted: set[str]) -> Operand:
        """Returns the operand without diagonals, axes without labels, and labels that are not wanted."""
        kept = tuple(label for label in operand.named if label in wanted)
        return operand if kept == tuple(label for label in operand.labels if label) else self.add(Sum(operand, kept))

    def multiply(self, a: Operand, b: Operand, wanted: set[str]) -> Operand:
        """Returns the product of two operands, summed over the labels that are not wanted."""
        a, b = self.summed(a, wanted | set(b.named)), self.summed(b, wanted | set(a.named))
        both = [label for label in a.named if label in b.named]
        if all(label in wanted for label in both):
            order = tuple(n for n in self.equation.result if n in a.named or n in b.named)
            rest = (n for n in dict.fromkeys(a.named + b.named) if n not in order)
            return self.add(Times(a, b, (*order, *rest)))
        return self.matmul(a, b, wanted, both)

    def matmul(self, a: Operand, b: Operand, wanted: set[str], both: Sequence[str]) -> Operand:
        """Returns the product of two operands, computed by BLAS.

        The operand that holds the last label of the result gives the columns.
        """
        if self.equation.result and self.equation.result[-1] in a.named and self.equation.result[-1] not in both:
            a, b = b, a
        batch = tuple(n for n in self.equation.result if n in both)
        batch += tuple(n for n in both if n in wanted and n not in batch)
        depth = tuple(n for n in a.named if n in both and n not in batch)
        rows = tuple(n for n in a.named if n not in both)
        columns = tuple(n for n in b.named if n not in both)
        left = self.matrices(a, (batch, rows, depth))
        right = self.matrices(b, (batch, depth, columns))
        result = (*batch, *rows, *columns)
        if is_matrices(self.equation.result, rows, columns) and set(result) == set(self.equation.result):
            result = self.equation.result
        return self.add(MatMul(left, right, batch, rows, depth, columns, result))

    def matrices(self, operand: Operand, groups: tuple[Labels, Labels, Labels]) -> Operand:
        """Returns the operand, or a copy of it, such that BLAS reads its matrices where they lie."""
        labels = tuple(label for label in operand.labels if label)
        if is_matrices(labels, *groups[1:]):
            return operand
        return self.add(Sum(operand, (*groups[0], *groups[1], *groups[2])))


def is_matrices(labels: Labels, rows: Labels, columns: Labels) -> bool:
    """Returns whether the labels hold both groups as neighbours in this order, and a group comes last.

    Empty groups do not count.
    """
    text = "/".join(labels)
    runs = all(f"/{'/'.join(group)}/" in f"/{text}/" for group in (rows, columns) if group)
    last = [group[-1] for group in (rows, columns) if group]
    return runs and (not last or labels[-1] in last)


def plan(equation: Equation) -> tuple[Step, ...]:
    """Returns steps of which the last one makes the result, its axes as the equation has them."""
    planner = _Planner(equation)
    left = [Operand(i, labels) for i, labels in enumerate(equation.operands)]
    while len(left) > 1:
        i, j = _cheapest(planner, left)
        rest = [o for k, o in enumerate(left) if k not in (i, j)]
        wanted = set(equation.result).union(*(o.named for o in rest))
        left = [*rest, planner.multiply(left[i], left[j], wanted)]
    (last,) = left
    if last.index < planner.count or last.labels != equation.result:
        planner.add(Sum(last, equation.result))
    return tuple(planner.steps)


def _cheapest(planner: _Planner, left: Sequence[Operand]) -> tuple[int, int]:
    """Returns the pair whose product has the fewest elements; of equals the first."""

    def elements(pair: tuple[int, int]) -> int:
        rest = {n for k, o in enumerate(left) if k not in pair for n in o.named} | set(planner.equation.result)
        return planner.size([n for n in {*left[pair[0]].named, *left[pair[1]].named} if n in rest])

    return min(combinations(range(len(left)), 2), key=elements)
