"""A placed plan that can tell about itself."""

from attrs import frozen

from engine.placed import PlacedPlan
from engine.report import Report, report
from engine.trace import Trace
from engine.tracing.telling import IN_TICKS, trace


@frozen(eq=False)
class ExecutionPlan(PlacedPlan):
    """Everything that an executor needs but the arrays; see `PlacedPlan` for the fields."""

    def report(self) -> Report:
        """What the plan costs, and what is alive at its peak."""
        return report(self)

    def trace(self, mode: str = "static", *, heap: str = "", threads: int = IN_TICKS) -> Trace:
        """Every allocation, overwrite, view and free of a "static" or "dynamic" run, in ticks; nothing runs.

        `heap` names a model (`allocator.heaps`) that serves a dynamic run. With `threads`, the times at which calls
        would run on so many are estimated. Raises OptionError, UnknownHeapError.
        """
        return trace(self, mode, heap=heap, threads=threads)
