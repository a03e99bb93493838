"""The data of a plan that the judges need, whatever made it."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.lower.calls import Lowered, Storage
from ops.tensor.layout import Layout

BARRIER = -1
"""The tick of a node at which nothing runs."""


class PlaceLike(Protocol):
    """The place of a value."""

    @property
    def storage(self) -> Storage:
        """Returns the storage in which the value lies."""

    @property
    def owner(self) -> int:
        """Returns the value that stands for the constant or the caller's array."""

    @property
    def layout(self) -> Layout:
        """Returns the bytes of the value, from the start of the storage."""


class PlanLike(Protocol):
    """Calls, and where their values lie."""

    @property
    def lowered(self) -> Lowered:
        """Returns the calls."""

    @property
    def places(self) -> tuple[PlaceLike, ...]:
        """Returns the place of each value."""

    @property
    def arena_bytes(self) -> int:
        """Returns the size of the arena."""


class ScheduleLike(Protocol):
    """The order of calls. Node i stands for the call of tick `tick[i]`, or for a barrier."""

    @property
    def tick(self) -> npt.NDArray[np.int64]:
        """Returns the tick of each node; BARRIER where nothing runs."""

    @property
    def before(self) -> npt.NDArray[np.int64]:
        """Returns the node that must be done, edge by edge."""

    @property
    def after(self) -> npt.NDArray[np.int64]:
        """Returns the node that waits for it."""


class ScheduledPlanLike(PlanLike, Protocol):
    """A plan with a schedule of the calls that may run at once."""

    @property
    def schedule(self) -> ScheduleLike:
        """Returns the schedule; nothing else orders calls."""
