"""How long a search may still go on: in nodes, in seconds, or both."""

import math
import time
from typing import Self

from attrs import define

from allocator.solvers.base import NO_NODES, Task

SLICE = 2_000
"""Nodes between two looks at the clock."""


@define(eq=False)
class Budget:
    """Nodes that are left, and the moment of `time.monotonic` at which the time is over."""

    nodes: int
    until: float

    @classmethod
    def of(cls, task: Task, nodes: int) -> Self:
        """What a task allows; `nodes` where it names no limit at all."""
        is_free = task.nodes == NO_NODES and task.seconds == math.inf
        return cls(nodes if is_free else task.nodes, time.monotonic() + task.seconds)

    @property
    def is_over(self) -> bool:
        """Is there nothing left?"""
        return self.nodes <= 0 or (self.until < math.inf and time.monotonic() >= self.until)

    def portion(self, wanted: int) -> int:
        """Nodes to go on with before the clock is looked at again; 0 where the budget is over."""
        return 0 if self.is_over else min(wanted, self.nodes, SLICE)
