"""Threads that share an agenda: nothing starts too early, everything runs once, failures and interrupts end it."""

import gc
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np
import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.executor.agenda import Agenda, make_agenda
from engine.executor.dispatch import Dispatch
from engine.executor.helpers import Helpers
from engine.text.errors import JudgeError
from ops.schema.schema import Thunk
from tests.helpers.interrupts import python_handles_interrupts

Edges = list[tuple[int, int]]


def _agenda(costs: list[int], edges: Edges) -> Agenda:
    rows = np.array(edges, np.int64).reshape(-1, 2)
    return make_agenda(costs, rows[:, 0], rows[:, 1])


@st.composite
def _dags(draw: st.DrawFn) -> tuple[list[int], Edges]:
    costs = draw(st.lists(st.integers(0, 9), max_size=14))
    pairs = [(b, a) for a in range(len(costs)) for b in range(a)]
    return costs, [pair for pair in pairs if draw(st.integers(0, 3)) == 0]


def _random_dag(rng: random.Random, most: int = 40) -> tuple[list[int], Edges]:
    costs = [rng.randrange(10) for _ in range(rng.randrange(1, most))]
    likely = rng.choice([0.03, 0.1, 0.4])
    return costs, [(b, a) for a in range(len(costs)) for b in range(a) if rng.random() < likely]


@define(eq=False)
class _Recorder:
    """Thunks that write down when they begin and end, with random delays; those of `failing` nodes fail."""

    agenda: Agenda
    rng: random.Random
    failing: dict[int, BaseException] = field(factory=dict)
    events: list[tuple[str, int]] = field(factory=list)

    def thunks(self) -> list[Callable[[], None]]:
        return [partial(self._run, node, self._delay(), self._delay()) for node in self.agenda.nodes]

    def _delay(self) -> float:
        return self.rng.choice([0, 0, 1e-6, 1e-4])

    def _run(self, node: int, before: float, after: float) -> None:
        time.sleep(before)
        self.events.append(("begin", node))
        time.sleep(after)
        if node in self.failing:
            self.events.append(("fail", node))
            raise self.failing[node]
        self.events.append(("end", node))

    def check(self, edges: Edges, cut_short: int = 0) -> None:
        """Checks the order; an interrupt may leave `cut_short` nodes that have begun and not ended."""
        at = {event: i for i, event in enumerate(self.events)}
        assert len(at) == len(self.events)
        begun = {node for what, node in self.events if what == "begin"}
        assert len(begun - {node for what, node in self.events if what != "begin"}) <= cut_short
        for before, after in edges:
            assert after not in begun or at["end", before] < at["begin", after]


@settings(max_examples=20, deadline=None)
@given(_dags(), st.integers(1, 4), st.integers(1, 3), st.randoms(use_true_random=False))
def test_copies_run_on_the_thread_behind_those_that_compute(
    dag: tuple[list[int], Edges], threads: int, every: int, rng: random.Random
) -> None:
    costs, edges = dag
    agenda, pool, ran_by = _agenda(costs, edges), Helpers(threads), dict[int, int]()
    pool.start()
    recorder = _Recorder(agenda, rng)
    thunks = [partial(_noted, ran_by, node, thunk) for node, thunk in zip(agenda.nodes, recorder.thunks(), strict=True)]
    copies = frozenset(rank for rank, node in enumerate(agenda.nodes) if node % (every + 1) == 0)
    run = Dispatch(agenda, thunks, threads, pool.submit, copies)
    run.run()
    assert not run.failures and len(recorder.events) == 2 * len(costs)
    recorder.check(edges)
    computing = {ran_by[node] for rank, node in enumerate(agenda.nodes) if rank not in copies}
    copying = {ran_by[agenda.nodes[rank]] for rank in copies} - {threading.get_ident()}
    assert len(copying - computing) <= 1 and (threads > 1 or computing <= {threading.get_ident()})


def _noted(ran_by: dict[int, int], node: int, thunk: Thunk) -> None:
    ran_by[node] = threading.get_ident()
    thunk()


def test_the_caller_makes_copies_as_long_as_their_thread_has_not_begun() -> None:
    agenda = _agenda([1, 1, 1, 1], [(0, 1), (0, 2), (1, 3), (2, 3)])
    ran, late = list[int](), list[object]()
    copies = frozenset({agenda.nodes.index(1)})
    run = Dispatch(agenda, [partial(ran.append, n) for n in agenda.nodes], 1, lambda *job: late.append(job), copies)
    run.run()
    assert ran == [0, 2, 1, 3] and len(late) == 1
    run.help(1)
    assert ran == [0, 2, 1, 3]


def _run(agenda: Agenda, recorder: _Recorder, threads: int, pool: Helpers) -> Dispatch:
    run = Dispatch(agenda, recorder.thunks(), threads, pool.submit)
    run.run()
    return run


@contextmanager
def _helpers(count: int) -> Iterator[Helpers]:
    """Yields helpers that all still answer in the end."""
    helpers = Helpers(count)
    helpers.start()
    yield helpers
    together = threading.Barrier(count + 1)
    for _ in range(count):
        helpers.submit(lambda _: _meet(together), 0)
    together.wait(60)


def _meet(together: threading.Barrier) -> None:
    together.wait(60)


@settings(max_examples=30, deadline=None)
@given(_dags(), st.integers(1, 8), st.randoms(use_true_random=False))
def test_dispatch_runs_each_node_once_and_after_its_predecessors(
    dag: tuple[list[int], Edges], threads: int, rng: random.Random
) -> None:
    costs, edges = dag
    agenda = _agenda(costs, edges)
    recorder = _Recorder(agenda, rng)
    with _helpers(8) as pool:
        assert _run(agenda, recorder, threads, pool).failures == []
    assert len(recorder.events) == 2 * len(costs)
    recorder.check(edges)


@settings(max_examples=30, deadline=None)
@given(_dags(), st.sets(st.integers(0, 13), min_size=1), st.integers(1, 8), st.randoms(use_true_random=False))
def test_after_a_failure_nothing_new_starts_and_nothing_runs_on(
    dag: tuple[list[int], Edges], failing: set[int], threads: int, rng: random.Random
) -> None:
    costs, edges = dag
    agenda = _agenda(costs, edges)
    recorder = _Recorder(agenda, rng, {node: RuntimeError(str(node)) for node in failing})
    with _helpers(8) as pool:
        run = _run(agenda, recorder, threads, pool)
        recorder.check(edges)
    failed = {node for what, node in recorder.events if what == "fail"}
    assert {str(error) for _, error in run.failures} == {str(node) for node in failed}
    assert all(run.agenda.nodes[rank] == int(str(error)) for rank, error in run.failures)
    assert bool(failed) == any(node < len(costs) for node in failing)


@given(_dags())
def test_dispatch_on_one_thread_runs_the_most_urgent_ready_node_first(dag: tuple[list[int], Edges]) -> None:
    costs, edges = dag
    ways = [max(_lengths(node, costs, edges)) for node in range(len(costs))]
    done: list[int] = []
    while len(done) < len(costs):
        ready = [n for n in range(len(costs)) if n not in done and all(b in done for b, a in edges if a == n)]
        done.append(max(ready, key=lambda n: (ways[n], -n)))
    agenda, ran = _agenda(costs, edges), list[int]()
    Dispatch(agenda, [partial(ran.append, n) for n in agenda.nodes], 1, _nobody).run()
    assert ran == done


def _lengths(node: int, costs: list[int], edges: Edges) -> list[int]:
    """Returns the lengths of all ways from a node to an end."""
    following = [a for b, a in edges if b == node]
    return [costs[node] + length for a in following for length in _lengths(a, costs, edges)] or [costs[node]]


def _nobody(_: Callable[[int], None], __: int) -> None:
    """Starts nothing: a pool whose threads never come."""


def test_the_caller_does_everything_where_no_helper_comes() -> None:
    agenda, ran = _agenda([1] * 9, []), list[int]()
    Dispatch(agenda, [partial(ran.append, n) for n in agenda.nodes], 4, _nobody).run()
    assert ran == list(range(9))


def test_a_dispatch_helper_that_comes_late_does_nothing() -> None:
    late, ran = list[tuple[Callable[[int], None], int]](), list[int]()
    agenda = _agenda([1] * 5, [])
    run = Dispatch(agenda, [partial(ran.append, n) for n in agenda.nodes], 3, lambda *job: late.append(job))
    run.run()
    for help_out, thread in late:
        help_out(thread)
    assert len(late) == 2 and ran == list(range(5))


def test_dispatch_of_a_chain_asks_for_no_helper() -> None:
    agenda = _agenda([1] * 50, [(i, i + 1) for i in range(49)])
    Dispatch(agenda, [lambda: None] * 50, 8, _must_not_be_called).run()


def _must_not_be_called(_: Callable[[int], None], __: int) -> None:
    pytest.fail("a helper was asked for")


def test_dispatch_wakes_helpers_until_all_are_at_work() -> None:
    """Eight calls that wait for each other end only if eight threads run them at once."""
    together = threading.Barrier(8)
    with _helpers(7) as pool:
        for _ in range(20):
            Dispatch(_agenda([1] * 8, []), [lambda: together.wait(60)] * 8, 8, pool.submit).run()


def test_agenda_edges_must_go_forward() -> None:
    for edges in ([(0, 1), (1, 0)], [(1, 1)], [(0, 2)], [(-1, 1)]):
        with pytest.raises(JudgeError, match="does not go forward"):
            _agenda([1, 1], edges)


def _interrupt(signals: int, inside: threading.Event, left: list[str]) -> None:
    """Interrupts the main thread, which soon has nothing to do and waits, and goes on for a while."""
    inside.set()
    for _ in range(signals):
        time.sleep(0.02)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    time.sleep(0.02)
    left.append("the helper is done")


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to a thread")
@pytest.mark.parametrize("signals", [1, 3])
def test_dispatch_lets_helpers_finish_after_an_interrupt_of_the_caller(signals: int) -> None:
    inside, left = threading.Event(), list[str]()
    agenda = _agenda([1, 1, 1], [(0, 2), (1, 2)])
    thunks: list[Thunk] = [partial(inside.wait, 60), partial(_interrupt, signals, inside, left), _too_much]
    with python_handles_interrupts(), _helpers(1) as pool:
        run = Dispatch(agenda, thunks, 2, pool.submit)
        raised = _interrupted(run)
    assert raised and left == ["the helper is done"]


def _too_much() -> None:
    pytest.fail("something started after the interrupt")


def _interrupted(run: Dispatch) -> bool:
    """Returns whether an interrupt came out of it, one way or the other."""
    try:
        run.run()
    except KeyboardInterrupt:
        return True
    return any(isinstance(error, KeyboardInterrupt) for _, error in run.failures)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_dispatch_interrupted_at_any_moment_leaves_no_thread_asleep_or_running() -> None:
    rng, before = random.Random(0), signal.signal(signal.SIGALRM, _raise)
    gc.disable()  # an interrupt inside a callback of the collection would be lost
    try:
        with _helpers(7) as pool:
            for _ in range(3000):
                costs, edges = _random_dag(rng)
                agenda = _agenda(costs, edges)
                recorder = _Recorder(agenda, rng)
                run = Dispatch(agenda, recorder.thunks(), rng.randrange(2, 9), pool.submit)
                with suppress(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, rng.random() * 2e-3 + 1e-6)
                    run.run()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                signal.setitimer(signal.ITIMER_REAL, 0)
                recorder.check(edges, cut_short=1)
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)


def _raise(_: int, __: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("threads", range(2, 9))
def test_dispatch_runs_many_random_agendas(threads: int) -> None:
    rng = random.Random(threads)
    with _helpers(threads - 1) as pool:
        for _ in range(300):
            costs, edges = _random_dag(rng)
            agenda = _agenda(costs, edges)
            recorder = _Recorder(agenda, rng)
            assert _run(agenda, recorder, threads, pool).failures == []
            assert len(recorder.events) == 2 * len(costs)
            recorder.check(edges)
