"""A placed plan that can tell about itself."""

from attrs import frozen

from engine.placed import PlacedPlan
from engine.report import Report, report
from engine.trace import Event, trace


@frozen(eq=False)
class ExecutionPlan(PlacedPlan):
    """Everything that an executor needs but the arrays; see `PlacedPlan` for the fields."""

    def report(self) -> Report:
        """What the plan costs, and what is alive at its peak."""
        return report(self)

    def trace(self, mode: str = "static") -> tuple[Event, ...]:
        """Every allocation, overwrite and free of a "static" or "dynamic" run. Raises OptionError."""
        return trace(self, mode)
