"""Runs a plan on several threads: a call starts when all that it waits for are done, the most urgent first."""

from typing import NoReturn

from engine.executor.agenda import make_agenda
from engine.executor.arenas import Arena, GivenArena
from engine.executor.binding import kernel_error, run_in_turn
from engine.executor.dispatch import Dispatch
from engine.executor.helpers import Helpers
from engine.executor.static import StaticExecutor
from engine.lower.costs import call_cost
from engine.lower.schedule import BARRIER
from engine.planning.placed import PlacedPlan
from engine.system.threads import BlasLimit, check_threads, cpus
from engine.text.errors import JudgeError
from ops.common.thunks import nothing
from ops.schema.schema import Thunk

_NO_CALL = -1


class ParallelExecutor(StaticExecutor):
    """Runs calls on the caller's thread and `threads - 1` more, made at first use and ended with the executor.

    With more than one thread, a run limits BLAS to `cpus() // threads` threads (at least one, and never more than it
    has), for the whole process while it lasts; that needs threadpoolctl. Outputs have the bits of a sequential run in
    which BLAS has as many threads: with another number OpenBLAS splits its products elsewhere, and sums of float32
    differ in the last places. A sequential plan runs in sequence.

    Raises OptionError, EngineError where threadpoolctl is needed and missing.
    """

    def __init__(self, plan: PlacedPlan, arena: Arena | GivenArena, threads: int) -> None:
        check_threads(threads, 1)
        super().__init__(plan, arena)
        self.threads = threads
        self._indices = _call_indices(plan)
        costs = [0 if i == _NO_CALL else call_cost(self.calls[i]) for i in self._indices]
        self._agenda = make_agenda(costs, plan.schedule.before, plan.schedule.after)
        if threads > 1:
            self._blas = BlasLimit(max(1, cpus() // threads))
            self._helpers = Helpers(threads - 1)

    def execute(self) -> None:
        """Calls the kernels.

        After a failure nothing new starts; running calls end first. Raises KernelError naming the operator, the first
        one where several failed. What is no Exception, such as KeyboardInterrupt, is raised as it is.
        """
        if self.threads == 1:
            order = [i for i in self._indices if i != _NO_CALL]
            run_in_turn([self.calls[i] for i in order], [self.thunks[i] for i in order])
        else:
            by_node = (self._indices[node] for node in self._agenda.nodes)
            self._at_once([nothing if i == _NO_CALL else self.thunks[i] for i in by_node])

    def _execute_each(self) -> None:
        """Calls the kernels: here no call is joined to another."""
        self.execute()

    def _at_once(self, thunks: list[Thunk]) -> None:
        self._helpers.start()
        run = Dispatch(self._agenda, thunks, self.threads, self._helpers.submit)
        try:
            self._blas.hold()
            run.run()
        finally:
            self._blas.release()
        if run.failures:
            self._raise(*self._first(run.failures))

    def _first(self, failures: list[tuple[int, BaseException]]) -> tuple[int, BaseException]:
        """Returns the error to raise and the index of its call:

        what is no Exception comes first, then the earliest tick.
        """
        indexed = [(self._indices[self._agenda.nodes[rank]] if rank >= 0 else _NO_CALL, e) for rank, e in failures]
        failures.clear()  # an error refers to its frames, and they refer to this list: a reference cycle
        return min(indexed, key=lambda failure: (isinstance(failure[1], Exception), failure[0]))

    def _raise(self, index: int, error: BaseException) -> NoReturn:
        try:
            if index == _NO_CALL or not isinstance(error, Exception):
                raise error
            raise kernel_error(self.calls[index], error) from error
        finally:
            del error


def _call_indices(plan: PlacedPlan) -> tuple[int, ...]:
    """Returns, for each node, the index of its call. Raises JudgeError where a call has not exactly one node."""
    index_of = {call.tick: i for i, call in enumerate(plan.lowered.calls)} | {BARRIER: _NO_CALL}
    ticks = plan.schedule.tick.tolist()
    indices = tuple(index_of.get(tick, len(index_of)) for tick in ticks)
    if sorted(i for i in indices if i != _NO_CALL) != list(range(len(plan.lowered.calls))):
        raise JudgeError(f"schedule {plan.schedule.policy!r} does not run each call once")
    return indices
