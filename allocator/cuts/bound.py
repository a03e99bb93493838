"""A lower bound for all partitions, in any order of the operators."""

from collections import Counter
from collections.abc import Sequence

from attrs import evolve

from allocator.cuts.in_order import Memory, cut_in_order
from allocator.cuts.problem import OUTSIDE, THROUGHPUT, CutProblem
from allocator.cuts.worth import objective_of


def lower_bound(problem: CutProblem) -> float:
    """Returns what no partition goes below: the best cut of a path, whose operators run in one order only.

    The path is that of most weights. A part that has two of its operators has all operators between them, with their
    weights. Where all operators are on the path, the bound is the optimum. A pipeline is no faster than its longest
    operator, nor than all its parts together. Infinity: no partition fits.
    """
    chosen = heaviest_path(problem)
    path = problem.induced(chosen)
    between = _between(problem, chosen)
    if between:
        path = evolve(path, weights=path.weights.with_uses(between))
    ends = cut_in_order(path, Memory(path.least))
    if ends is None:
        return float("inf")
    bound = objective_of(path, part_of_ends(ends))
    if problem.objective == THROUGHPUT and len(problem):
        bound = max(bound, *problem.seconds, sum(problem.seconds) / problem.parts)
    return bound


def _between(problem: CutProblem, path: Sequence[int]) -> list[tuple[int, int, int]]:
    """Returns (last place on the path before it, first place behind it, bytes of weights) of operators beside a path.

    Only weights of one reader count, as others may be read on the path, too.
    """
    n, place = len(problem), {operator: i for i, operator in enumerate(path)}
    reads, weights = problem.values.rows(n), problem.weights.rows(n)
    readers = Counter(thing for row in weights for thing, _, _ in row)
    before, behind = [OUTSIDE] * n, [n] * n
    for operator in range(n):
        makers = [maker for _, maker, _ in reads[operator]]
        before[operator] = max((place.get(m, before[m]) for m in makers), default=OUTSIDE)
    for operator in reversed(range(n)):
        here = place.get(operator, behind[operator])
        for _, maker, _ in reads[operator]:
            behind[maker] = min(behind[maker], here)
    own = [sum(nbytes for thing, _, nbytes in row if readers[thing] == 1) for row in weights]
    inside = (i for i in range(n) if i not in place and own[i] and before[i] != OUTSIDE and behind[i] < n)
    return [(before[i], behind[i], own[i]) for i in inside]


def heaviest_path(problem: CutProblem) -> tuple[int, ...]:
    """Returns operators, each of which reads what the one before it computes, with the most weights together."""
    own = problem.weights.new_since(0, len(problem)).tolist()
    reads = problem.values.rows(len(problem))
    best, previous = list[int](), list[int]()
    for operator, used in enumerate(reads):
        makers = [maker for _, maker, _ in used if maker != OUTSIDE]
        last = max(makers, key=lambda maker: (best[maker], maker), default=OUTSIDE)
        best.append(own[operator] + 1 + (best[last] if last != OUTSIDE else 0))
        previous.append(last)
    path, at = list[int](), max(range(len(best)), key=best.__getitem__, default=OUTSIDE)
    while at != OUTSIDE:
        path.append(at)
        at = previous[at]
    return tuple(reversed(path))


def part_of_ends(ends: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the part of each operator where parts end so."""
    part_of, first = list[int](), 0
    for part, end in enumerate(ends):
        part_of += [part] * (end - first)
        first = end
    return tuple(part_of)
