"""Tasks that flow through a place: results as they come or in the order of tasks, with a limit to what is under way."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Generic, TypeVar

from attrs import define, evolve, field, frozen

from engine.workers.place import Place

Task = TypeVar("Task")
Result = TypeVar("Result")


@frozen(eq=False)
class Outcome(Generic[Task, Result]):
    """The end of a task, the `number`th from 0 on: its value, or the error with which it ended."""

    number: int
    task: Task
    value: Result | None = None
    error: BaseException | None = None


@frozen(eq=False)
class _Sent(Generic[Task]):
    number: int
    task: Task
    deaths: int = 0


def as_they_come(
    place: Place,
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    most: Callable[[], int] | None = None,
) -> Iterator[Outcome[Task, Result]]:
    """Yields the outcome of each task as soon as there is one.

    At most `most()` tasks are under way, by default as many as the place has room for; `tasks` are read no earlier. A
    task whose worker died is tried again; an error that it raises is its outcome. Raises WorkerError where the place
    is lost.
    """
    return _Flow(place, function, enumerate(tasks), most or (lambda: place.room)).outcomes()


def in_order(
    place: Place, function: Callable[[Task], Result], tasks: Iterable[Task], *, ahead: int = 0
) -> Iterator[Outcome[Task, Result]]:
    """Yields the outcomes in the order of the tasks.

    At most `ahead` tasks (by default as many as the place has room for) have been read from `tasks` and not been
    yielded: those that run, that wait to run, and that wait for earlier ones. Raises WorkerError.
    """
    early = dict[int, Outcome[Task, Result]]()
    most = (lambda: ahead - len(early)) if ahead else (lambda: place.room - len(early))
    turn = 0
    for outcome in as_they_come(place, function, tasks, most=most):
        early[outcome.number] = outcome
        while turn in early:
            yield early.pop(turn)
            turn += 1


@define(eq=False)
class _Flow(Generic[Task, Result]):
    """Tasks that are under way, by their futures."""

    place: Place
    function: Callable[[Task], Result]
    left: Iterator[tuple[int, Task]]
    most: Callable[[], int]
    sent: dict["Future[Any]", _Sent[Task]] = field(factory=dict, init=False)
    is_read: bool = field(default=False, init=False)

    def outcomes(self) -> Iterator[Outcome[Task, Result]]:
        """Yields outcomes until no task is left."""
        while self._fill():
            done, _ = wait(self.sent, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda one: self.sent[one].number):
                outcome = self._end(future)
                if outcome is not None:
                    yield outcome

    def _fill(self) -> bool:
        """Sends tasks up to the limit; returns whether some are under way. One always may be."""
        while not self.is_read and len(self.sent) < max(1, self.most()):
            entry = next(self.left, None)
            if entry is None:
                self.is_read = True
            else:
                self._send(_Sent(*entry))
        return bool(self.sent)

    def _send(self, sent: _Sent[Task]) -> None:
        self.sent[self.place.submit(self.function, sent.task)] = sent

    def _end(self, future: "Future[Any]") -> Outcome[Task, Result] | None:
        """Returns the outcome of a task; None where it was sent again."""
        sent = self.sent.pop(future)
        if not future.cancelled() and future.exception() is None:
            return Outcome(sent.number, sent.task, value=future.result())
        if not self.place.is_blameless(future):
            sent = evolve(sent, deaths=sent.deaths + 1)
        error = self.place.verdict(future, sent.deaths)
        if error is not None:
            return Outcome(sent.number, sent.task, error=error)
        self._send(sent)
        return None
