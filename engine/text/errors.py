"""What can go wrong when a network is built, imported, planned or run.

Faults of a caller derive from EngineError. Faults of ours derive from JudgeError where a judge found them; others are
an InternalError.
"""


class EngineError(Exception):
    """Base of all errors that this folder raises."""


class GraphError(EngineError, ValueError):
    """A graph that makes no sense: a name given twice, a var of another graph, a graph without outputs."""


class NoValueError(EngineError, TypeError):
    """A var whose elements Python wants to know while the graph is built; only a run computes them."""


class CycleError(GraphError):
    """Operators that wait for each other; the message names them."""


class ModelError(EngineError, ValueError):
    """A model file that cannot be read: not ONNX, truncated, or inconsistent."""


class UnsupportedError(ModelError):
    """A model that uses what this engine does not have: an operator, an opset, an element type."""


class ConstantNeededError(UnsupportedError):
    """A tensor that decides a shape, but is known only at run time.

    `tensor` is its name; `inputs` are the graph inputs that it is computed from.
    """

    def __init__(self, message: str, tensor: str, inputs: tuple[str, ...]) -> None:
        super().__init__(message)
        self.tensor = tensor
        self.inputs = inputs


class FeedError(EngineError, ValueError):
    """An input or an output array that is missing, unknown, of a wrong shape or of a wrong dtype."""


class BudgetError(EngineError, MemoryError):
    """The plan needs more bytes than it may use. `required`, `available` and `excess` are bytes.

    In several memories, `excess` is 0 or below where they have as many bytes together, but cannot hold these tensors.

    No plan of the calls as they are needs less than `lower_bound`. `least` is the smallest arena that was reached by
    computing values again, with that `share` of operations more than before: `required` and 0 where that was of no use.
    """

    def __init__(
        self, message: str, required: int, available: int, lower_bound: int, *, least: int = 0, share: float = 0.0
    ) -> None:
        super().__init__(message)
        self.required = required
        self.available = available
        self.excess = required - available
        self.lower_bound = lower_bound
        self.least = least or required
        self.share = share


class UndecidedError(EngineError, RuntimeError):
    """No plan within the capacity was found, and none was proved to be impossible."""


class PlanRefusedError(EngineError, ValueError):
    """A plan from elsewhere that breaks a rule of its problem."""


class OtherPlanError(EngineError, ValueError):
    """A plan from elsewhere that is one of other calls, or asks for more bytes than there are."""


class TraceFormatError(EngineError, ValueError):
    """A saved trace that cannot be read; the message has file, line and field."""


class KernelError(EngineError, RuntimeError):
    """A kernel failed while the network ran; the message names its operator."""


class OptionError(EngineError, ValueError):
    """An option of a value that it cannot have."""


class TargetError(OptionError):
    """A plan for a target that is to run on this processor, or a network that cannot be planned for a target."""


class UnknownOptionError(OptionError, TypeError):
    """An option that does not exist; the message has the one that was probably meant."""


class NoMemoryError(EngineError, MemoryError):
    """Memory that this machine does not have; the message says for what."""


class ArenaInUseError(EngineError, RuntimeError):
    """A run of an executable while another one runs in bytes of the same arena."""


class InternalError(EngineError, RuntimeError):
    """A fault of this program: an exception that nothing foresaw, which is the cause. Please report it."""


class JudgeError(EngineError, RuntimeError):
    """A judge refused a result: a fault of ours, never of the caller."""


class PassError(JudgeError):
    """A pass that changed a graph into one that cannot be run, or is no replacement for it."""


class DataFlowError(JudgeError):
    """An execution plan in which a call would read other bytes than the ones meant."""


class ScheduleError(JudgeError):
    """An execution plan whose schedule names other calls than the plan has, or in another order."""


class HandoverError(JudgeError):
    """A stage that takes a tensor to be where the stage before it did not leave it."""


class RaceError(JudgeError):
    """An execution plan in which two calls that may run at once touch the same bytes, and one of them writes."""


class PlacementError(JudgeError):
    """An execution plan in which a tensor does not lie as was asked: alignment, padding, pins, reserved bytes."""


class SharingError(JudgeError):
    """An arena of several networks in which one has bytes that another one keeps, or needs at the same time."""


class PoisonError(JudgeError):
    """A kernel wrote where it must not, left a part of an output unwritten, or read bytes that it had not written."""
