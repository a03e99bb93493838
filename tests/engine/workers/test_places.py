"""Places by their names, in this process and in an Executor that is given."""

from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from engine.text.errors import OptionError
from engine.workers.flow import as_they_come, in_order
from engine.workers.place import WorkerError
from engine.workers.places import opened, opened_seats
from tests.helpers.workers.tasks import fail_on_odd, square


@pytest.mark.parametrize(
    ("on", "says"),
    [
        ("nowhere", "'nowhere' is no place to run tasks; there are processes, here, or dask://HOST:PORT"),
        ("dask://", "no address of a Dask scheduler"),
        ("dask://localhost", "no address of a Dask scheduler"),
        ("dask://localhost:x", "no address of a Dask scheduler"),
    ],
)
def test_what_is_no_place_is_told(on: str, says: str) -> None:
    with pytest.raises(OptionError, match=says), opened(on):
        pass


@pytest.mark.parametrize("workers", [-1, 10**6, True, "2"])
def test_what_is_no_number_of_workers_is_told(workers: Any) -> None:
    with pytest.raises(OptionError, match="is no integer from 0"), opened("processes", workers):
        pass


def test_a_scheduler_has_its_own_number_of_workers() -> None:
    with pytest.raises(OptionError, match="leave out the number 3"), opened("dask://localhost:8786", 3):
        pass


def test_this_process_runs_tasks_in_turn() -> None:
    with opened("here") as place:
        ends = list(as_they_come(place, fail_on_odd, range(4)))
    assert [end.value for end in ends] == [0, None, 2, None]
    assert [str(end.error) for end in ends if end.error] == ["1 is odd", "3 is odd"]


def test_an_executor_of_the_caller_stays_open() -> None:
    with ThreadPoolExecutor(2) as pool:
        with opened(pool, 2) as place:
            assert [end.value for end in in_order(place, square, range(20))] == [n * n for n in range(20)]
        assert pool.submit(square, 3).result() == 9


class Broken(Executor):
    """Breaks when the first task runs, or when it is sent."""

    def __init__(self, at_once: bool) -> None:
        self.at_once = at_once

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":  # noqa: ARG002
        if self.at_once:
            raise BrokenExecutor("all gone")
        future = Future[Any]()
        future.set_exception(BrokenExecutor("all gone"))
        return future


@pytest.mark.parametrize("at_once", [False, True])
def test_an_executor_that_breaks_is_told(at_once: bool) -> None:
    says = "the Broken that was given is broken: all gone"
    with pytest.raises(WorkerError, match=says), opened(Broken(at_once), 1) as place:
        list(as_they_come(place, square, range(3)))


def test_an_executor_has_no_seats() -> None:
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(OptionError, match="cannot go to an Executor"),
        opened_seats(executor, 2),
    ):
        pass


def test_seats_of_this_process_are_as_many_as_asked_for() -> None:
    with opened_seats("here", 3) as seats:
        assert [seat.submit(square, n).result() for n, seat in enumerate(seats)] == [0, 1, 4]
