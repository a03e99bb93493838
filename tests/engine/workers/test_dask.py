"""A Dask scheduler and its workers, real processes on the loopback address."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from engine.text.errors import EngineError
from engine.workers import dask
from engine.workers.dask import connect
from engine.workers.flow import as_they_come, in_order
from engine.workers.place import WorkerError
from engine.workers.places import opened, opened_seats
from tests.helpers.workers.cluster import Cluster, cluster
from tests.helpers.workers.ends import free_port
from tests.helpers.workers.tasks import count_calls, die_on_seven, die_once, fail_on_odd, square, wait_for


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as started:
        yield started


def test_a_scheduler_that_is_not_there_is_told_in_one_line() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(WorkerError, match=f"no Dask scheduler answers at '{address}'") as raised:
        connect(address, patience=1)
    assert "\n" not in str(raised.value)


def test_where_dask_is_not_installed_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(dask, "import_module", missing)
    with pytest.raises(EngineError, match=r"pip install 'arenaplan\[dask\]'"):
        connect("127.0.0.1:1")


@pytest.mark.slow
def test_a_scheduler_without_workers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "FIRST_WORKER", 0.5)
    with cluster(tmp_path, 0) as started, pytest.raises(WorkerError, match="has no worker; `dask worker"):
        connect(started.address)


@pytest.mark.slow
def test_results_come_in_order(two_workers: Cluster) -> None:
    with opened(two_workers.on) as place:
        assert [end.value for end in in_order(place, square, range(100), ahead=7)] == [n * n for n in range(100)]
        errors = {end.task: str(end.error) for end in as_they_come(place, fail_on_odd, range(4)) if end.error}
        assert errors == {1: "1 is odd", 3: "3 is odd"}


@pytest.mark.slow
def test_tasks_whose_workers_die_are_done_by_others(tmp_path: Path) -> None:
    with cluster(tmp_path, 4) as started, opened(started.on) as place:
        marks = [tmp_path / f"mark{number}" for number in range(2)]
        assert [end.value for end in in_order(place, die_once, marks)] == ["mark0", "mark1"]
        assert [end.value for end in in_order(place, square, range(20))] == [n * n for n in range(20)]


@pytest.mark.slow
def test_a_task_that_ends_all_its_workers_is_given_up(tmp_path: Path) -> None:
    with cluster(tmp_path, 6) as started, opened(started.on) as place:
        outcomes = {end.task: end for end in as_they_come(place, die_on_seven, [1, 7, 2])}
    assert "workers that were given it ended" in str(outcomes[7].error)
    assert (outcomes[1].value, outcomes[2].value) == (1, 4)


@pytest.mark.slow
def test_a_scheduler_that_dies_is_told(tmp_path: Path) -> None:
    with cluster(tmp_path, 1) as started, opened(started.on) as place:
        (end,) = in_order(place, count_calls, [tmp_path / "marks"])
        assert end.value == started.workers[0].pid
        flow = as_they_come(place, wait_for, [tmp_path / "never"] * 3)
        os.kill(started.scheduler.pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match=f"the Dask scheduler at {started.address} is gone"):
            list(flow)


@pytest.mark.slow
def test_seats_are_workers_of_their_own_as_long_as_they_live(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as started:
        started.wait_for_workers()
        with opened_seats(started.on, 2) as seats:
            pids = [[seat.submit(count_calls, tmp_path / "marks").result() for _ in range(3)] for seat in seats]
            assert sorted(map(set, pids), key=min) == sorted(({w.pid} for w in started.workers), key=min)
            os.kill(pids[0][0], signal.SIGKILL)
            assert seats[0].submit(count_calls, tmp_path / "marks").result() == pids[1][0]
