"""What is known of a part only when it is planned: the bytes that it needs."""

from collections.abc import Callable, Sequence
from enum import Enum

from attrs import frozen

from allocator.cuts.problem import CutProblem


@frozen
class Need:
    """Bytes of a part: those of a plan that was found, and those that no plan goes below."""

    nbytes: int
    least: int


Measure = Callable[[tuple[int, ...], int], Need]
"""Returns what operators need, in a part of that capacity."""


class Verdict(Enum):
    """Whether parts fit: a plan was found, none exists, or neither is known."""

    FITS = "fits"
    TOO_LARGE = "too large"
    UNKNOWN = "unknown"


def verdict(problem: CutProblem, part_of: Sequence[int], measure: Measure) -> Verdict:
    """Returns whether all parts fit their capacities."""
    answer = Verdict.FITS
    for part, capacity in enumerate(problem.capacities):
        need = measure(tuple(i for i, p in enumerate(part_of) if p == part), capacity)
        if need.least > capacity:
            return Verdict.TOO_LARGE
        if need.nbytes > capacity:
            answer = Verdict.UNKNOWN
    return answer
