"""Processes of this machine: deaths lose nothing, and a task that kills its workers harms no other."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.workers.flow import as_they_come, in_order
from engine.workers.place import WorkerError
from engine.workers.places import opened, opened_seats
from tests.helpers.workers.ends import PATIENCE, ends, environment
from tests.helpers.workers.tasks import count_calls, die_on_seven, die_once, square, wait_for


def test_results_of_two_processes_come_in_order() -> None:
    with opened("processes", 2) as place:
        assert [end.value for end in in_order(place, square, range(50), ahead=5)] == [n * n for n in range(50)]


def test_a_task_that_ends_its_workers_is_given_up_and_no_other() -> None:
    with opened("processes", 2) as place:
        outcomes = {end.task: end for end in as_they_come(place, die_on_seven, range(20))}
    error = outcomes.pop(7).error
    assert isinstance(error, WorkerError) and "ended 3 times" in str(error)
    assert {task: end.value for task, end in outcomes.items()} == {n: n * n for n in range(20) if n != 7}


def test_tasks_whose_workers_die_once_are_all_done(tmp_path: Path) -> None:
    marks = [tmp_path / str(number) for number in range(6)]
    with opened("processes", 2) as place:
        assert [end.value for end in in_order(place, die_once, marks)] == [mark.name for mark in marks]


def test_a_worker_that_is_killed_between_tasks_is_replaced(tmp_path: Path) -> None:
    with opened("processes", 1) as place:
        first, *_ = (end.value for end in in_order(place, count_calls, [tmp_path / "marks"]))
        assert first is not None
        os.kill(first, signal.SIGKILL)
        second, *_ = (end.value for end in in_order(place, count_calls, [tmp_path / "marks"]))
    assert second != first and (tmp_path / "marks").stat().st_size == 2


def test_workers_end_where_the_block_raises(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), opened("processes", 1) as place:
        (end,) = in_order(place, count_calls, [tmp_path / "marks"])
        place.submit(wait_for, tmp_path / "never")
        raise KeyboardInterrupt
    assert end.value is not None and ends(end.value)


_KILLED = """
import os, signal, sys
from pathlib import Path
from engine.workers.flow import in_order
from engine.workers.places import opened, opened_seats
from tests.helpers.workers.tasks import count_calls, wait_for

if __name__ == "__main__":
    with opened("processes", 1) as place:
        (end,) = in_order(place, count_calls, [Path(sys.argv[1])])
        place.submit(wait_for, Path(sys.argv[1] + ".never"))
        print(end.value, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_a_maker_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_KILLED)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "marks")],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=environment(),
        timeout=PATIENCE,
    )
    assert done.returncode == -signal.SIGKILL
    assert ends(int(done.stdout))


def test_a_seat_sends_its_tasks_to_one_process(tmp_path: Path) -> None:
    with opened_seats("processes", 2) as seats:
        pids = [[seat.submit(count_calls, tmp_path / "marks").result() for _ in range(2)] for seat in seats]
    assert all(first == second for first, second in pids)
    assert pids[0] != pids[1]
