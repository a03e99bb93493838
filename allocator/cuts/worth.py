"""What a partition costs: the bytes that its parts receive, the time that they take, and what they keep."""

from collections.abc import Sequence

from attrs import frozen

from allocator.cuts.problem import CutProblem


@frozen
class PartWorth:
    """A part: bytes that it receives from other parts, its seconds of computing, bytes of its weights."""

    received: int
    seconds: float
    weights: int


def worths(problem: CutProblem, part_of: Sequence[int]) -> tuple[PartWorth, ...]:
    """Returns what each part costs. A value counts once for each other part that reads it."""
    parts = range(problem.parts)
    sent: list[dict[int, int]] = [{} for _ in parts]
    kept: list[dict[int, int]] = [{} for _ in parts]
    values, weights = problem.values.rows(len(problem)), problem.weights.rows(len(problem))
    for operator, part in enumerate(part_of):
        sent[part] |= {thing: nbytes for thing, maker, nbytes in values[operator] if part_of[maker] != part}
        kept[part] |= {thing: nbytes for thing, _, nbytes in weights[operator]}
    seconds = [0.0] * problem.parts
    for operator, part in enumerate(part_of):
        seconds[part] += problem.seconds[operator]
    return tuple(PartWorth(sum(sent[p].values()), seconds[p], sum(kept[p].values())) for p in parts)


def objective_of(problem: CutProblem, part_of: Sequence[int]) -> float:
    """Returns the objective of a partition."""
    return problem.total(problem.worth(each.received, each.seconds) for each in worths(problem, part_of))
