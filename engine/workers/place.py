"""Places where tasks run, and what they have in common.

A place takes a function and its arguments, and gives a future of `concurrent.futures`. What differs is who runs it, and
what can be done when that one dies.
"""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from attrs import define, field

from engine.text.errors import EngineError
from engine.workers.board import Board, NoBoard


class WorkerError(EngineError, RuntimeError):
    """A task whose workers died each time that it was tried, or a place that is lost."""


class Place(Protocol):
    """Workers that run tasks."""

    @property
    def workers(self) -> int:
        """Returns how many tasks run at once."""

    @property
    def room(self) -> int:
        """Returns how many tasks should be there, running or waiting, so that no worker is without one."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Sends a task. Raises WorkerError where the place is lost."""

    def verdict(self, future: "Future[Any]", tries: int) -> BaseException | None:
        """Returns the error with which a task ended; None where it is to be tried again, after `tries` deaths.

        Raises WorkerError where the place is lost.
        """

    def is_blameless(self, future: "Future[Any]") -> bool:
        """Returns whether a worker died over another task, so that this one has not really been tried."""

    def board(self) -> AbstractContextManager[Board]:
        """Returns a context with a board for the tasks that are sent in it, closed at the end."""

    def close(self, *, now: bool = False) -> None:
        """Ends the workers that are the place's own; `now`: also those that still run a task."""


@define(eq=False)
class Here:
    """This process, without any worker: a task has run when it is submitted."""

    workers: int = field(default=1, init=False)
    room: int = field(default=1, init=False)

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Runs a task."""
        future = Future[Any]()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def verdict(self, future: "Future[Any]", tries: int) -> BaseException | None:  # noqa: ARG002
        """Returns the task's error."""
        return future.exception()

    def is_blameless(self, future: "Future[Any]") -> bool:  # noqa: ARG002
        """Returns False: nobody dies here but the caller."""
        return False

    def board(self) -> AbstractContextManager[Board]:
        """Returns a board that keeps nothing."""
        return nullcontext(NoBoard())

    def close(self, *, now: bool = False) -> None:
        """Does nothing."""


@define(eq=False)
class Borrowed:
    """An Executor of the caller, such as MPI's; it stays open. When it breaks, it cannot be made anew here."""

    executor: Executor
    workers: int

    @property
    def room(self) -> int:
        """Returns twice the workers: each has a task waiting."""
        return 2 * self.workers

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Sends a task. Raises WorkerError where the executor is broken."""
        try:
            return self.executor.submit(function, *arguments)
        except BrokenExecutor as error:
            raise self._lost(error) from error

    def verdict(self, future: "Future[Any]", tries: int) -> BaseException | None:  # noqa: ARG002
        """Returns the task's error. Raises WorkerError where the executor is broken."""
        error = future.exception()
        if isinstance(error, BrokenExecutor):
            raise self._lost(error) from error
        return error

    def is_blameless(self, future: "Future[Any]") -> bool:  # noqa: ARG002
        """Returns False: an executor does not tell."""
        return False

    def board(self) -> AbstractContextManager[Board]:
        """Returns a board that keeps nothing."""
        return nullcontext(NoBoard())

    def close(self, *, now: bool = False) -> None:
        """Does nothing: the executor is the caller's."""

    def _lost(self, error: BaseException) -> WorkerError:
        return WorkerError(f"the {type(self.executor).__name__} that was given is broken: {error}")
