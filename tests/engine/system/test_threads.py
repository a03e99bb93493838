"""BLAS has one number of threads for the whole process: limits that overlap, and what is left behind."""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from threadpoolctl import ThreadpoolController

import engine
from engine import Graph
from engine.executor.arenas import new_arena
from engine.executor.parallel import ParallelExecutor
from engine.system.threads import BlasLimit, cpus, limit_threads
from engine.text.errors import EngineError


def _now() -> list[int]:
    libraries: list[dict[str, Any]] = ThreadpoolController().select(user_api="blas").info()
    return [library["num_threads"] for library in libraries]


def test_the_least_blas_limit_counts_and_the_last_restores() -> None:
    with limit_threads(4):
        before = _now()
        one, three = BlasLimit(1), BlasLimit(3)
        three.hold()
        assert _now() == [min(n, 3) for n in before]
        one.hold()
        assert _now() == [1] * len(before)
        three.release()
        assert _now() == [1] * len(before)
        one.release()
        assert _now() == before
        one.release()
        assert _now() == before


def test_blas_limits_are_set_and_restored_from_any_thread() -> None:
    with limit_threads(4), ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        before, limits = _now(), (BlasLimit(3), BlasLimit(1))
        first.submit(limits[0].hold).result()
        assert _now() == [min(n, 3) for n in before]
        second.submit(limits[1].hold).result()
        assert _now() == [1] * len(before)
        first.submit(limits[0].release).result()
        second.submit(limits[1].release).result()
        assert _now() == before


def test_a_limit_leaves_control_of_blas_to_others() -> None:
    before, limit = _now(), BlasLimit(1)
    with ThreadPoolExecutor(1) as other:
        other.submit(limit.hold).result()
        other.submit(limit.release).result()
        with limit_threads(1):
            assert _now() == [1] * len(before)
    assert _now() == before


def test_a_blas_limit_never_raises_the_number_of_threads() -> None:
    with limit_threads(1):
        limit = BlasLimit(8)
        limit.hold()
        assert set(_now()) <= {1}
        limit.release()


def test_without_threadpoolctl_more_threads_than_one_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    graph.output(graph.input("x", (3,)), "y")
    plan = engine.make_plan(graph, optimise=0, parallel="levels")
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    ParallelExecutor(plan, new_arena(plan), 1)
    with pytest.raises(EngineError, match=r"pip install -e '\.\[parallel\]'"):
        ParallelExecutor(plan, new_arena(plan), 2)


def test_cpus_is_at_least_one() -> None:
    assert cpus() >= 1
