"""Runs a plan on several threads: a call starts when all that it waits for are done, the most urgent first."""

from collections.abc import Collection, Sequence
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
from engine.system.threads import AS_THEY_ARE, BlasLimit, check_threads, cpus
from engine.text.errors import JudgeError
from ops.common.thunks import nothing
from ops.schema.schema import Thunk

_NO_CALL = -1


class ParallelExecutor(StaticExecutor):
    """Runs calls on the caller's thread and `threads - 1` more, made at first use and ended with the executor.

    Copies that a copy engine makes run on a thread of their own. Where all other calls run one after the other, they do
    so on the caller's thread, and each of them on `threads`, as in a StaticExecutor.

    With more than one thread, a run limits BLAS to `cpus() // threads` threads (at least one, and never more than it
    has), for the whole process while it lasts; that needs threadpoolctl. Outputs have the bits of a sequential run in
    which BLAS has as many threads: with another number OpenBLAS splits its products elsewhere, and sums of float32
    differ in the last places. A sequential plan runs in sequence.

    Raises OptionError, EngineError where threadpoolctl is needed and missing.
    """

    def __init__(self, plan: PlacedPlan, arena: Arena | GivenArena, threads: int, blas: int = AS_THEY_ARE) -> None:
        check_threads(threads, 1)
        self._is_at_once = bool(plan.schedule.policy)
        self._copies: Collection[int] = ()
        super().__init__(plan, arena, 1 if self._is_at_once else threads, blas)
        self.threads = threads
        self._indices = _call_indices(plan)
        costs = [0 if i == _NO_CALL else call_cost(self.calls[i]) for i in self._indices]
        self._agenda = make_agenda(costs, plan.schedule.before, plan.schedule.after)
        copies = {copied.tick for copied in plan.copy_times.copies if copied.is_beside}
        ticks = plan.schedule.tick.tolist()
        self._copies = frozenset(rank for rank, node in enumerate(self._agenda.nodes) if ticks[node] in copies)
        self._is_in_turn = not self._is_at_once and (threads == 1 or not self._copies)
        if threads > 1:
            self._blas = BlasLimit(max(1, cpus() // threads)) if self._is_at_once else self._limit
            self._workers = threads if self._is_at_once else 1
            self._helpers = Helpers(self._workers - 1 + bool(self._copies))

    def execute(self) -> None:
        """Calls the kernels.

        After a failure nothing new starts; running calls end first. Raises KernelError naming the operator, the first
        one where several failed. What is no Exception, such as KeyboardInterrupt, is raised as it is.
        """
        if self._is_in_turn:
            super().execute()
        elif self._is_at_once:
            self._by_agenda(self.thunks)
        else:
            self._renew()
            self._by_agenda(self._singles)

    def _execute_each(self) -> None:
        """Calls the thunks: here no call is joined to another."""
        if self._is_in_turn:
            super()._execute_each()
        else:
            self._by_agenda(self.thunks)

    def _renew(self) -> None:
        super()._renew()
        for rank in self._copies:  # a team runs one program at a time
            i = self._indices[self._agenda.nodes[rank]]
            self._singles[i] = self.thunks[i]

    def _by_agenda(self, thunks: Sequence[Thunk]) -> None:
        if self.threads == 1:
            order = [i for i in self._indices if i != _NO_CALL]
            run_in_turn([self.calls[i] for i in order], [thunks[i] for i in order])
        else:
            by_node = (self._indices[node] for node in self._agenda.nodes)
            self._at_once([nothing if i == _NO_CALL else thunks[i] for i in by_node])

    def _at_once(self, thunks: list[Thunk]) -> None:
        self._helpers.start()
        run = Dispatch(self._agenda, thunks, self._workers, self._helpers.submit, self._copies)
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
