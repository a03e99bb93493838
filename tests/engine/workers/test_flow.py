"""Tasks flow through a place: all end once, in order where asked, and never more than so many at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.workers.board import Board, NoBoard
from engine.workers.flow import Outcome, as_they_come, in_order
from engine.workers.place import WorkerError
from tests.helpers.workers.tasks import fail_on_odd, square


@define(eq=False)
class Chosen:
    """A place with one thread, which takes of the waiting tasks the one that a list of numbers chooses.

    Before a task ends, its worker dies as often as `deaths` says.
    """

    choices: list[int]
    deaths: dict[int, int] = field(factory=dict)
    blameless: bool = False
    workers: int = 3
    room: int = 3
    most: int = 0
    waiting: list[tuple[Future[Any], Callable[..., Any], int]] = field(factory=list)
    thread: ThreadPoolExecutor = field(factory=lambda: ThreadPoolExecutor(1))

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        future = Future[Any]()
        self.waiting.append((future, function, arguments[0]))
        self.most = max(self.most, len(self.waiting))
        self.thread.submit(self._finish)
        return future

    def _finish(self) -> None:
        choice = self.choices.pop() if self.choices else 0
        future, function, number = self.waiting.pop(choice % len(self.waiting))
        if self.deaths.get(number, 0):
            self.deaths[number] -= 1
            future.set_exception(ConnectionError("died"))
            return
        try:
            future.set_result(function(number))
        except ValueError as error:
            future.set_exception(error)

    def verdict(self, future: "Future[Any]", tries: int) -> BaseException | None:
        error = future.exception()
        return (WorkerError("dead") if tries >= 3 else None) if isinstance(error, ConnectionError) else error

    def is_blameless(self, future: "Future[Any]") -> bool:
        return self.blameless and isinstance(future.exception(), ConnectionError)

    def board(self) -> AbstractContextManager[Board]:
        return nullcontext(NoBoard())

    def close(self, *, now: bool = False) -> None:  # noqa: ARG002
        self.thread.shutdown()


CHOICES = st.lists(st.integers(0, 10), max_size=40)


@settings(max_examples=20)
@given(CHOICES, st.integers(0, 20))
def test_each_task_ends_once(choices: list[int], count: int) -> None:
    ends = list(as_they_come(Chosen(choices), fail_on_odd, range(count)))
    assert sorted(end.number for end in ends) == list(range(count))
    assert all(end.task == end.number and (end.value == end.task) == (end.error is None) for end in ends)
    assert {end.task for end in ends if end.error} == {number for number in range(count) if number % 2}


@settings(max_examples=20)
@given(CHOICES, st.dictionaries(st.integers(0, 9), st.integers(1, 5), max_size=4))
def test_deaths_are_counted_for_each_task(choices: list[int], deaths: dict[int, int]) -> None:
    ends = {end.task: end for end in as_they_come(Chosen(choices, dict(deaths)), square, range(10))}
    given_up = {number for number, count in deaths.items() if count >= 3}
    assert {task for task, end in ends.items() if end.error} == given_up
    assert all(end.value == task * task for task, end in ends.items() if task not in given_up)


@settings(max_examples=20)
@given(CHOICES, st.dictionaries(st.integers(0, 9), st.integers(1, 9), max_size=4))
def test_a_task_that_only_waited_is_never_given_up(choices: list[int], deaths: dict[int, int]) -> None:
    place = Chosen(choices, dict(deaths), blameless=True)
    assert {end.task: end.value for end in as_they_come(place, square, range(10))} == {n: n * n for n in range(10)}


@settings(max_examples=20)
@given(CHOICES, st.integers(0, 20), st.integers(1, 8), st.integers(1, 5))
def test_order_is_kept_and_no_more_tasks_are_read_than_may_be_ahead(
    choices: list[int], count: int, ahead: int, room: int
) -> None:
    read, taken = 0, 0

    def tasks() -> Iterator[int]:
        nonlocal read
        for number in range(count):
            read += 1
            assert read - taken <= ahead
            yield number

    place = Chosen(choices, room=min(room, ahead))
    for end in in_order(place, square, tasks(), ahead=ahead):
        assert (end.number, end.value) == (taken, taken * taken)
        taken += 1
    assert taken == count and place.most <= ahead


def test_a_lost_place_ends_the_flow() -> None:
    class Lost(Chosen):
        def verdict(self, future: "Future[Any]", tries: int) -> BaseException | None:  # noqa: ARG002
            raise WorkerError("the place is gone")

    with pytest.raises(WorkerError, match="the place is gone"):
        list(as_they_come(Lost([], {0: 1}), square, range(3)))


def test_an_outcome_has_its_task() -> None:
    (end,) = as_they_come(Chosen([]), square, [5])
    assert isinstance(end, Outcome) and (end.number, end.task, end.value, end.error) == (0, 5, 25, None)
