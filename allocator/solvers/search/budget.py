"""How long a search may still go on: in nodes, in seconds, or both."""

import math
import time
from typing import Self

from attrs import define, field

from allocator.progress import Activity, current
from allocator.solvers.base import NO_NODES, SolverOptions

SLICE = 2_000
"""Nodes between two looks at the clock."""


@define(eq=False)
class Budget:
    """Nodes that are left, and the moment of `time.monotonic` at which the time is over.

    What is spent is reported to the activity that the search is part of.
    """

    nodes: int
    until: float
    seen: Activity = field(factory=lambda: Activity(""))

    @classmethod
    def of(cls, options: SolverOptions, nodes: int) -> Self:
        """Returns the budget of the options; `nodes` where they name no limit at all."""
        is_free = options.nodes == NO_NODES and options.seconds == math.inf
        seen, most = current(), nodes if is_free else options.nodes
        seen.done, seen.total, seen.unit = 0, 0 if most == NO_NODES else most, "steps"
        return cls(most, time.monotonic() + options.seconds, seen)

    @property
    def is_over(self) -> bool:
        """Returns whether nothing is left."""
        return self.nodes <= 0 or (self.until < math.inf and time.monotonic() >= self.until)

    def spend(self, nodes: int) -> None:
        """Takes nodes from the budget."""
        self.nodes -= nodes
        self.seen.done += nodes

    def portion(self, wanted: int) -> int:
        """Returns nodes to go on with before the clock is looked at again; 0 where the budget is over."""
        return 0 if self.is_over else min(wanted, self.nodes, SLICE)
