"""Costs as integers, so that sums in kernels are exact and the same in any order."""

import numpy as np
from attrs import frozen

from allocator.kernels.memory_search import MOST_COST, PENALTY
from allocator.memories.problem import Seconds
from allocator.problem import Column, column


@frozen(eq=False)
class IntegerCosts:
    """The regret of each unit in each memory (see `Relaxation`); all units together have less than MOST_COST.

    `scale`: how many parts of the integers are a second. `regret` has a row for each unit, with 0 where it may not lie.
    """

    regret: Seconds
    scale: float

    @classmethod
    def of(cls, regret: Seconds) -> "IntegerCosts":
        """Returns the costs of regrets in seconds, infinity where a unit may not lie."""
        finite = np.where(np.isfinite(regret), regret, 0.0)
        total = float(finite.max(axis=1, initial=0.0).sum())
        scale = (MOST_COST - len(regret)) / total if total > 0 else 1.0
        return cls(np.rint(finite * scale), scale)

    @property
    def rows(self) -> Column:
        """Returns the numbers, in rows that end with the penalty of a unit that lies nowhere."""
        penalty = np.full((len(self.regret), 1), PENALTY)
        return column(np.hstack((self.regret.astype(np.int64), penalty)).reshape(-1))

    def total(self, memory: Column) -> int:
        """Returns the cost of an assignment: the memory of each unit, or how many there are for none."""
        width = self.regret.shape[1] + 1
        return int(self.rows[np.arange(len(memory)) * width + memory].sum())
