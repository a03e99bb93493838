"""Back-ends: how they are chosen, what the plan says of them, threads."""

import logging

import numpy as np
import pytest

import engine
import ops
from engine.api import Executable
from engine.executor.static import StaticExecutor
from engine.graph.graph import Graph
from engine.lower import backends
from engine.system.threads import BlasLimit, NoLimit
from engine.text.errors import OptionError
from ops.registry import REGISTRY
from ops.schema.backends import BACKENDS, EVERY, NUMBA, NUMPY, ONEDNN, PLAIN
from ops.tensor.spec import Array

Log = pytest.LogCaptureFixture
Patch = pytest.MonkeyPatch


def _network(width: int = 64) -> Graph:
    graph = engine.Graph("small")
    x = graph.input("x", (2, 16, 20, 20))
    rng = np.random.default_rng(0)
    w = graph.constant(rng.standard_normal((width, 16, 3, 3), np.float32), "w")
    b = graph.constant(rng.standard_normal(width, np.float32), "b")
    y = ops.relu(ops.conv2d(x, w, b, pads=(1, 1, 1, 1)))
    graph.output(ops.softmax(ops.reduce_mean(y, axes=(2, 3), keepdims=False)), "y")
    return graph


def _feeds() -> dict[str, Array]:
    return {"x": np.random.default_rng(1).standard_normal((2, 16, 20, 20), np.float32)}


def test_every_operator_has_a_kernel_of_numpy_and_names_that_differ() -> None:
    for schema in REGISTRY.values():
        names = [kernel.name for kernel in schema.kernels]
        assert len(set(names)) == len(names), schema.name
        assert {kernel.backend for kernel in schema.kernels} <= set(BACKENDS), schema.name
        assert any(kernel.backend == NUMPY for kernel in schema.kernels), schema.name


def test_each_choice_asks_back_ends_in_its_order(monkeypatch: Patch) -> None:
    monkeypatch.setattr(backends, "objection", lambda: "")
    assert backends.backends_of("numpy") == (NUMPY,)
    assert backends.backends_of("numba") == PLAIN == (NUMBA, NUMPY)
    assert backends.backends_of("onednn") == backends.backends_of("auto") == EVERY == (ONEDNN, NUMBA, NUMPY)


def test_a_library_that_is_missing_is_an_error_where_it_was_asked_for(monkeypatch: Patch) -> None:
    monkeypatch.setattr(backends, "objection", lambda: "it is on the moon")
    assert backends.backends_of("auto") == PLAIN
    assert {k.backend for k in engine.compile(_network(), backend="auto", optimise=0).report().kernels} <= set(PLAIN)
    with pytest.raises(OptionError, match="backend 'onednn' cannot be used: it is on the moon; 'auto' takes it only"):
        engine.compile(_network(), backend="onednn")


def test_an_unknown_back_end_is_refused() -> None:
    with pytest.raises(OptionError, match="backend 'cuda' is unknown; one of: auto, numpy, numba, onednn"):
        engine.compile(_network(), backend="cuda", optimise=0)


def test_the_report_names_the_back_ends_that_compute() -> None:
    plain = engine.make_plan(_network(), backend="numpy", optimise=0).report()
    assert {k.backend for k in plain.kernels} == {NUMPY}
    assert [(s.backend, s.work) for s in plain.backends] == [(NUMPY, 1.0)]
    assert sum(s.calls for s in plain.backends) == len(plain.kernels)
    assert "computed by numpy (" in plain.text()
    fast = engine.make_plan(_network(), optimise=0).report()
    assert sum(s.work for s in fast.backends) == pytest.approx(1.0)
    assert fast.to_json()["kernels"][0].keys() == {
        *("operator", "kind", "backend", "kernel", "workspace_bytes", "parts"),
    }


@pytest.mark.parametrize("mode", ["static", "dynamic"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_thread_counts_change_no_bit(backend: str, mode: str) -> None:
    graph = engine.optimise(_network(96), 2)
    exes = [engine.compile(graph, backend=backend, mode=mode, threads=t, optimise=0) for t in (1, 2, 3, 5)]
    one, *others = [exe.run(_feeds())["y"].tobytes() for exe in exes]
    assert all(other == one for other in others)


@pytest.mark.slow
def test_back_ends_compute_the_same_numbers() -> None:
    wanted = engine.compile(_network(), backend="numpy", optimise=0).run(_feeds())["y"]
    for level in (0, 1, 2, 3):
        for backend in backends.CHOICES:
            y = engine.compile(engine.optimise(_network(), level), backend=backend, optimise=0).run(_feeds())["y"]
            np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-6)


def _limit(exe: Executable) -> BlasLimit | NoLimit:
    assert isinstance(exe.executor, StaticExecutor)
    return exe.executor._limit


def test_threads_hold_for_blas_where_numpy_computes(monkeypatch: Patch, caplog: Log) -> None:
    pytest.importorskip("threadpoolctl")
    assert isinstance(_limit(engine.compile(_network(), backend="numpy", threads=1, optimise=0)), BlasLimit)
    assert isinstance(_limit(engine.compile(_network(), backend="numpy", optimise=0)), NoLimit)
    monkeypatch.setitem(__import__("sys").modules, "threadpoolctl", None)
    with caplog.at_level(logging.WARNING, "arenaplan"):
        exe = engine.compile(_network(), backend="numpy", threads=1, optimise=0)
    assert isinstance(_limit(exe), NoLimit)
    assert "threads=1 does not hold for BLAS" in caplog.text
    exe.run(_feeds())


@pytest.mark.parametrize("debug", ["", "poison"])
def test_matmul_of_a_transposed_activation_and_packed_weights(debug: str) -> None:
    graph = engine.Graph("turned")
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s, np.float32) for s in ((40, 64), (40, 48)))
    turned = ops.transpose(ops.relu(graph.input("x", (40, 64))), (1, 0))
    graph.output(ops.matmul(turned, graph.constant(w, "w")), "y")
    got = engine.compile(graph, backend="numba", debug=debug, optimise=0).run({"x": x})["y"]
    np.testing.assert_allclose(got, np.maximum(x, 0).T @ w, rtol=1e-4, atol=1e-4)
