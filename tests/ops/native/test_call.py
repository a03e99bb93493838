"""Compiled calls as data: arguments, steps, programs, and threads that run them in parts."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.machine_code.door import address
from engine.executor.team import ALONE, Runner, Team, team
from engine.system.threads import cpus
from ops.common.thunks import in_turn, nothing
from ops.native.barrier import CLOSED, JOINED, LEFT, OVER, new_state
from ops.native.call import Native, Step, as_words, joined, native_call, table_of
from ops.native.records import pack_args, record
from ops.native.runners import CHECK, FOREIGN, run_alone, run_part
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.interrupts import python_handles_interrupts

STEPS = "tests.helpers.ops.native_steps"


def _scale(x: Array, y: Array, factor: float) -> Native:
    words = (x.ctypes.data, y.ctypes.data, x.size, factor)
    return Native((Step(address(STEPS, "scale"), words),), (x, y))


def _chain(length: int, count: int) -> tuple[Array, Native]:
    buffers = np.zeros((2, count), np.int64)
    function = address(STEPS, "prefix")
    steps = [Step(function, (buffers[i % 2].ctypes.data, buffers[1 - i % 2].ctypes.data, count)) for i in range(length)]
    return buffers, Native(tuple(steps), (buffers,))


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(width=64)), max_size=8))
def test_native_arguments_keep_integers_and_the_bits_of_floats(numbers: list[int | float]) -> None:
    words = as_words(numbers)
    for word, number in zip(words, numbers, strict=True):
        if isinstance(number, float):
            assert word.tobytes() == np.float64(number).tobytes()
        else:
            assert int(word) == number


def test_a_native_call_runs_as_a_thunk() -> None:
    x, y = np.arange(5, dtype=np.float32), np.full(5, np.nan, np.float32)
    _scale(x, y, 2.5)()
    np.testing.assert_array_equal(y, x * np.float32(2.5))


def test_a_native_call_of_a_record_passes_addresses_and_keeps_its_arrays() -> None:
    layout, x = record("x bias: int64", "factor: float64", "shape[2]: int64"), np.ones(3, np.float32)
    call = native_call(0, layout, x=x, bias=None, factor=2.5, shape=(4, 5))
    expected = pack_args(layout, x=x.ctypes.data, bias=0, factor=2.5, shape=(4, 5))
    np.testing.assert_array_equal(call.steps[0].args, expected)
    assert len(call.keep) == 1 and call.keep[0] is x


def test_native_calls_in_turn_are_one() -> None:
    x = np.ones(3, np.float32)
    joined = in_turn(_scale(x, x, 2.0), _scale(x, x, 3.0))
    assert isinstance(joined, Native)
    assert len(joined.steps) == 2
    joined()
    np.testing.assert_array_equal(x, np.full(3, 6, np.float32))
    assert not isinstance(in_turn(_scale(x, x, 2.0), nothing), Native)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(0, 30), st.integers(0, 200), st.booleans())
def test_native_steps_begin_after_all_parts_of_the_last_ended(
    threads: int, length: int, count: int, busy: bool
) -> None:
    buffers, native = _chain(length, count)
    helpers = [threading.Thread(target=time.sleep, args=(0.001,)) for _ in range(3 * busy)]
    for helper in helpers:
        helper.start()
    assert team(threads).run(native.table, False) == (-1, 0)
    np.testing.assert_array_equal(buffers[length % 2], np.full(count, length))
    for helper in helpers:
        helper.join()


def test_a_team_serves_again_and_again() -> None:
    team = Team(3)
    buffers, native = _chain(7, 1000)
    for _ in range(300):
        buffers.fill(0)
        team.run(native.table, False)
        assert (buffers[1] == 7).all()


def test_parts_are_numbered_without_gaps() -> None:
    places = np.zeros(64, np.int64)
    Team(4).run(Native((Step(address(STEPS, "tell"), (places.ctypes.data,)),), (places,)).table, False)
    parts = int(places[0])
    assert 1 <= parts <= 4
    assert places.tolist() == [parts] * parts + [0] * (64 - parts)


def test_a_helper_too_late_for_a_native_program_does_nothing() -> None:
    buffers, native = _chain(3, 10)
    state = new_state()
    state[JOINED // 8] = CLOSED
    run_part(native.table, state, 0)
    assert not buffers.any()


def test_a_helper_waiting_at_the_barrier_leaves_when_the_program_is_over() -> None:
    buffers, native = _chain(3, 10)
    state = new_state()
    waiting = threading.Thread(target=run_part, args=(native.table, state, 0))
    waiting.start()
    state[OVER // 8] = 1
    waiting.join(20)
    assert not waiting.is_alive()
    assert not buffers.any()


def test_an_empty_native_program_ends() -> None:
    empty = table_of(())
    assert ALONE.run(empty, False) == Team(2).run(empty, False) == (-1, 0)


def test_a_foreign_call_that_fails_stops_the_rest_and_is_reported() -> None:
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    absolute = _function_of_c("labs")
    good, bad = Step(absolute, (0, 0, 0, 0), FOREIGN), Step(absolute, (-7, 0, 0, 0), FOREIGN)
    Native((good,))()
    failing = joined((Native((good, bad)), _scale(x, y, 1.0)))
    with pytest.raises(OpError, match="returned status 7"):
        failing()
    assert not y.any()


@pytest.mark.parametrize("kind", [FOREIGN, CHECK])
def test_a_program_leaves_steps_for_later_when_its_time_is_up(kind: int) -> None:
    x, y, z = np.ones(3, np.float32), np.zeros(3, np.float32), np.zeros(3, np.float32)
    nap = Native((Step(_function_of_c("usleep"), (60_000, 0, 0, 0), kind),))
    program = joined((_scale(x, y, 2.0), nap, _scale(y, z, 2.0), nap))
    assert run_alone(program.table) == (2, 0)
    assert (y == 2).all() and not z.any()
    state = new_state()
    for left in (2, 4, 0):
        run_part(program.table, state, 1)
        assert (state[LEFT // 8], z[0]) == (left, 0 if left == 2 else 4)
    z.fill(0)
    program()
    assert (z == 4).all()


@pytest.mark.parametrize("runner", [ALONE, Team(2)])
def test_what_fails_after_a_slice_is_found_by_its_row(runner: Runner) -> None:
    nap, absolute = _function_of_c("usleep"), _function_of_c("labs")
    steps = [Step(nap, (60_000, 0, 0, 0), CHECK)] * 2 + [Step(absolute, (-7, 0, 0, 0), CHECK)]
    assert runner.run(table_of(steps), False) == (2, 7)


def test_an_interrupt_ends_a_program_between_two_steps() -> None:
    nap, count = Native((Step(_function_of_c("usleep"), (10_000, 0, 0, 0), FOREIGN),)), 100
    done = np.zeros((count, 1), np.float32)
    program = joined(native for row in done for native in (nap, _scale(np.ones(1, np.float32), row, 1.0)))
    with python_handles_interrupts():
        sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            program()
            time.sleep(60)
    assert 0 < done.sum() < count


def _function_of_c(name: str) -> int:
    function = getattr(ctypes.CDLL(None), name)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def test_after_an_interrupt_helpers_are_called_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    team = Team(3)
    buffers, native = _chain(5, 100)
    plain = team._helpers.submit

    def interrupted(job: Callable[[int], None], thread: int) -> None:
        if thread == 2:
            raise KeyboardInterrupt
        plain(job, thread)

    monkeypatch.setattr(team._helpers, "submit", interrupted)
    for _ in range(10):
        with pytest.raises(KeyboardInterrupt):
            team.run(native.table, False)
    monkeypatch.undo()
    for _ in range(20):
        buffers.fill(0)
        assert team.run(native.table, False) == (-1, 0)
        assert (buffers[1] == 5).all()
    until = time.monotonic() + 60
    while any(turn.awaited for turn in team._turns) and time.monotonic() < until:
        time.sleep(0.001)
    assert not any(turn.awaited for turn in team._turns)


def test_concurrent_callers_of_a_team_take_turns() -> None:
    team = Team(2)
    buffers = [_chain(9, 500) for _ in range(4)]

    def work(number: int) -> None:
        for _ in range(50):
            buffers[number][0].fill(0)
            assert team.run(buffers[number][1].table, False) == (-1, 0)
            assert (buffers[number][0][1] == 9).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_a_native_program_runs_on_one_thread_where_the_team_is_busy() -> None:
    team = Team(3)
    for turn in team._turns:
        turn.awaited = [1]
    buffers, native = _chain(5, 100)
    assert team.run(native.table, False) == (-1, 0)
    assert (buffers[1] == 5).all()


LATE = """
import sys
from engine.executor.team import Team
from ops.native.call import table_of

team, files = Team(2), []
team.run(table_of(()), False)
for turn in team._turns:
    turn.awaited = [1]
sys.addaudithook(lambda event, args: files.append(args) if event == "open" else None)
team.run(table_of(()), False)
print(files)
"""


def test_no_run_but_the_first_loads_code_also_where_helpers_are_late() -> None:
    run = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_a_team_has_no_more_threads_than_processors() -> None:
    assert team(1) is team(0) is ALONE
    many = team(1000)
    assert many is ALONE or (isinstance(many, Team) and many.threads <= cpus())
