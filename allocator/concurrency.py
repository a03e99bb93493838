"""Concurrency: which steps may run at once. Steps wait for each other, and nothing else orders them.

A program says which step is written down before which; its dependences say which must be done before which. All that is
decided here comes from the latter.
"""

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.errors import ProblemError, TooManyError
from allocator.kernels.dependences import follow, hand_on
from allocator.kernels.mode import KernelMode
from allocator.problem import Column, column
from allocator.ragged import row_starts

NO_COLOUR = -1
"""Colour of a step that is on no path."""
MOST_STEPS = 2**16
"""The most steps for which happens-before is computed: its table has the square of it in bits, 512 MiB."""


@frozen(eq=False)
class Dependences:
    """Step after[k] begins when step before[k] is done; `count` steps stand in a runnable order: before < after."""

    count: int
    before: Column = field(converter=column)
    after: Column = field(converter=column)

    def __attrs_post_init__(self) -> None:
        if len(self.before) != len(self.after):
            raise ProblemError("the columns of dependences differ in length")
        good = (self.before >= 0) & (self.before < self.after) & (self.after < self.count)
        if not good.all():
            k = int(np.argmin(good))
            raise ProblemError(f"step {self.after[k]} cannot wait for step {self.before[k]} of {self.count}")

    def reversed(self) -> "Dependences":
        """Returns the dependences in reverse: step i becomes step count - 1 - i."""
        return Dependences(self.count, self.count - 1 - self.after, self.count - 1 - self.before)

    def sources(self) -> tuple[Column, Column]:
        """Returns (start, near): step i waits for near[start[i] : start[i + 1]]."""
        near = self.before[np.argsort(self.after, kind="stable")]
        start = row_starts(self.after, self.count)
        return column(start), column(near)


@frozen(eq=False)
class HappensBefore:
    """Exact, as bits: bit j of row i says that step i is done before step j begins. Bytes count from the lowest bit."""

    later: npt.NDArray[np.uint8]

    def holds(self, before: Column, after: int) -> bool:
        """Returns whether all these steps are done before that one begins."""
        return bool(self.pairs(before, np.full(len(before), after)).all())

    def pairs(self, before: Column, after: Column) -> npt.NDArray[np.bool_]:
        """Returns for each pair whether the one step is done before the other begins."""
        is_ordered: npt.NDArray[np.bool_] = (self.later[before, after >> 3] >> (after & 7) & 1).astype(bool)
        return is_ordered

    def after_all(self, steps: Column) -> npt.NDArray[np.bool_]:
        """Returns the mask of the steps that begin when all these are done."""
        common: npt.NDArray[np.uint8] = np.bitwise_and.reduce(self.later[steps], axis=0)
        return np.unpackbits(common, count=len(self.later), bitorder="little").view(bool)


def happens_before(dependences: Dependences) -> HappensBefore:
    """Returns the transitive closure. O(n) operations on rows of n bits. Raises TooManyError above MOST_STEPS steps."""
    count = dependences.count
    if count > MOST_STEPS:
        raise TooManyError(f"{count} steps are too many to say of each two which is first; the most is {MOST_STEPS}")
    later = np.zeros((count, -(-count // 64) * 8), np.uint8)
    np.bitwise_or.at(
        later, (dependences.before, dependences.after >> 3), (1 << (dependences.after & 7)).astype(np.uint8)
    )
    start, near = dependences.reversed().sources()
    words, bounds = later.view(np.uint64), start.tolist()
    near = count - 1 - near
    for step in range(count - 1, -1, -1):
        at = count - 1 - step
        if bounds[at] < bounds[at + 1]:
            words[step] |= np.bitwise_or.reduce(words[near[bounds[at] : bounds[at + 1]]], axis=0)
    later.flags.writeable = False
    return HappensBefore(later)


def heaviest_paths(dependences: Dependences, weight: Column) -> tuple[Column, Column]:
    """Returns the weight of the heaviest path that ends in each step, and the step before it there (-1: none). O(n)."""
    mode = KernelMode.of(dependences.count)
    start, near, weights = mode.numbers(*dependences.sources(), weight)
    reach, via = mode.zeros(dependences.count, dependences.count)
    mode.kernel(follow)(start, near, weights, reach, via)
    return column(reach), column(via)


def levels(dependences: Dependences) -> Column:
    """Returns the most steps that wait for each other in front of each step: 0 for those that wait for none."""
    reach, _ = heaviest_paths(dependences, np.ones(dependences.count, np.int64))
    return column(reach - 1)


def colours(dependences: Dependences, weight: Column, most: int) -> Column:
    """Returns colours of steps, such that steps of one colour wait for each other (MXNet's path colouring).

    The heaviest path has colour 0, and what has a colour weighs no more: `most` times, or until nothing has weight. The
    rest has NO_COLOUR. O(most * n).
    """
    colour, left = np.full(dependences.count, NO_COLOUR), np.array(weight)
    for number in range(most):
        reach, via = heaviest_paths(dependences, left)
        if not reach.any():
            break
        step = int(reach.argmax())
        while step >= 0:
            if left[step]:
                colour[step] = number
            left[step] = 0
            step = int(via[step])
    return column(colour)


@frozen(eq=False)
class Clock:
    """Instants for each step: one step is done before another begins if its end is not later than the other's begin.

    The reverse need not hold: a clock may know less than happens-before.
    """

    begin: Column = field(converter=column)
    end: Column = field(converter=column)

    def holds(self, before: Column, after: int) -> bool:
        """Returns whether all these steps are known to be done before that one begins."""
        return bool((self.end[before] <= self.begin[after]).all())


def path_clock(dependences: Dependences, path: Column) -> Clock:
    """Returns the clock on which step path[p] begins at instant 2p + 2 and ends at 2p + 3.

    Any other step begins when the last of the path that is done before it ends, and ends when the first that waits for
    it begins. Instants are at least 1.
    """
    last = _last_seen(dependences, path)
    first = len(path) - 1 - _last_seen(dependences.reversed(), (dependences.count - 1 - path)[::-1])[::-1]
    begin, end = 2 * last + 3, 2 * first + 2
    begin[path] = 2 * np.arange(len(path)) + 2
    end[path] = begin[path] + 1
    return Clock(begin, end)


def _last_seen(dependences: Dependences, path: Column) -> Column:
    """Returns for each step the last place on the path that is the step or done before it; -1 for none."""
    mode = KernelMode.of(dependences.count)
    place = np.full(dependences.count, -1)
    place[path] = np.arange(len(path))
    start, near = mode.numbers(*dependences.sources())
    seen = place.tolist() if mode.is_plain else place
    mode.kernel(hand_on)(start, near, seen)
    return np.array(seen, np.int64)
