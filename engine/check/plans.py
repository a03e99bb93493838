"""What the judges look at: no more of a plan than they need, whoever made it."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.lower.calls import Lowered, Storage
from ops.tensor.layout import Layout

BARRIER = -1
"""The tick of a node at which nothing runs."""


class PlaceLike(Protocol):
    """Where a value lies."""

    @property
    def storage(self) -> Storage:
        """Whose bytes."""

    @property
    def owner(self) -> int:
        """The value that stands for the constant or the caller's array."""

    @property
    def layout(self) -> Layout:
        """Which bytes, from the start of the storage."""


class PlanLike(Protocol):
    """Calls, and where their values lie."""

    @property
    def lowered(self) -> Lowered:
        """The calls."""

    @property
    def places(self) -> tuple[PlaceLike, ...]:
        """The place of each value."""

    @property
    def arena_bytes(self) -> int:
        """Size of the arena."""


class ScheduleLike(Protocol):
    """What waits for what. Node i stands for the call of tick `tick[i]`, or for a barrier."""

    @property
    def tick(self) -> npt.NDArray[np.int64]:
        """Of each node; BARRIER where nothing runs."""

    @property
    def before(self) -> npt.NDArray[np.int64]:
        """The node that must be done, edge by edge."""

    @property
    def after(self) -> npt.NDArray[np.int64]:
        """The node that waits for it."""


class ScheduledPlanLike(PlanLike, Protocol):
    """A plan that tells which calls may run at once."""

    @property
    def schedule(self) -> ScheduleLike:
        """Nothing else orders calls."""
