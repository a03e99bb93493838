"""What can be wrong with a problem, a plan, or a file that holds one."""


class AllocatorError(Exception):
    """Base of all errors that this folder raises."""


class ProblemError(AllocatorError, ValueError):
    """A problem that makes no sense: an empty lifetime, a negative size, an overwrite of what does not exist."""


class FormatError(AllocatorError, ValueError):
    """A file that is not in the format that it should be in."""


class UnsupportedProblemError(AllocatorError, ValueError):
    """A problem that asks for what the chosen strategy has declared that it cannot do."""


class UnknownStrategyError(AllocatorError, LookupError):
    """No strategy of that name."""


class PlanError(AllocatorError, RuntimeError):
    """A plan that the judge refused: an error in this program, never of the caller."""


class BoundError(PlanError):
    """A lower bound whose witness does not add up to it: an error in this program, never of the caller."""


class TooManyError(AllocatorError, ValueError):
    """More than a method can take whose memory grows with the square of it."""


class UnknownPolicyError(AllocatorError, LookupError):
    """No policy of that name."""


class UnknownHeapError(AllocatorError, LookupError):
    """No heap of that name."""


class UnknownHeuristicError(AllocatorError, LookupError):
    """No heuristic of eviction of that name."""


class TooMuchWorkError(AllocatorError, RuntimeError):
    """A run that computes what it has evicted again and again, so that it was given up."""


class OutOfMemoryError(AllocatorError, MemoryError):
    """A heap that may not grow any further, at the event of this number. All other numbers are bytes.

    `largest_free` is its largest free block.
    """

    def __init__(
        self, heap: str, requested: int, *, event: int, in_use: int, reserved: int, largest_free: int, capacity: int
    ) -> None:
        super().__init__(
            f"{heap} has no {requested} bytes: {in_use} of {reserved} reserved bytes are in use, "
            f"the largest free block has {largest_free}, and it may reserve {capacity}"
        )
        self.heap = heap
        self.event = event
        self.requested = requested
        self.in_use = in_use
        self.reserved = reserved
        self.largest_free = largest_free
        self.capacity = capacity


_MOST_SHOWN = 40


def shown(value: object) -> str:
    """Returns a value as a message has it, cut where it is long."""
    if isinstance(value, str):
        return repr(value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}...")
    try:
        text = repr(value)
    except ValueError:  # Python writes no integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
