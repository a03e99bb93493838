"""One deadline for all searches of a plan: several ways to plan share the time that the options give."""

import math
import time

from attrs import evolve, frozen

from engine.planning.options import Options


@frozen
class Deadline:
    """The moment of `time.monotonic` at which the time of the options is over."""

    until: float

    @classmethod
    def of(cls, options: Options) -> "Deadline":
        """Returns the deadline of what begins now."""
        return cls(time.monotonic() + options.timeout)

    def within(self, options: Options, ways: int = 1) -> Options:
        """Returns the options of the next of so many ways: each has an equal part of the time that is left.

        So what a way leaves of its part is shared by those behind it.
        """
        if math.isinf(self.until):
            return options
        return evolve(options, timeout=max(self.until - time.monotonic(), 0.0) / ways)
