"""Numbers of threads of oneDNN's kernels are those of their plan, whatever else is compiled."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import Graph
from ops.onednn import primitives
from ops.onednn.library import objection
from ops.schema.backends import ONEDNN

pytestmark = pytest.mark.skipif(bool(objection()), reason=objection() or "oneDNN is there")


@pytest.fixture(autouse=True)
def _four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.api.cpus", lambda: 4)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Returns the numbers of threads for which primitives are asked for."""
    asked, create = set[int](), primitives._primitives

    def counting(case: Any, count: int) -> Any:
        asked.add(count)
        return create(case, count)

    monkeypatch.setattr(primitives, "_primitives", counting)
    return asked


def _network(channels: int = 33, length: int | str = 30) -> Graph:
    rng, graph = np.random.default_rng(channels), Graph("convolutions")
    x = graph.input("x", (1, channels, length, 30))
    for _ in range(2):
        w = rng.standard_normal((channels, channels, 3, 3)).astype(np.float32) * 0.1
        x = ops.relu(ops.conv(x, graph.constant(w), pads=1))
    graph.output(ops.softmax(ops.gelu(x)), "y")
    return graph


def test_a_graph_with_open_lengths_keeps_its_onednn_threads(counts: set[int]) -> None:
    graph = Graph("products")
    w = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
    x = graph.input("x", ("n", 256))
    y = ops.matmul(x, graph.constant(w))
    y = ops.add(y, ops.reduce_max(y, (1,)))
    graph.output(ops.max_pool(ops.reshape(y, (1, 1, -1, 256)), 2), "y")
    one = engine.compile(graph, backend=ONEDNN, threads=1, optimise=0)
    engine.compile(_network(), backend=ONEDNN, threads=4, optimise=0)
    counts.clear()
    one.run({"x": np.ones((64, 256), np.float32)})
    assert counts == {1}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({"threads": 3}, 3), ({"threads": 9}, 4), ({}, 4), ({"threads": 4, "parallel": "levels"}, 1)],
)
def test_onednn_kernels_use_no_more_threads_than_asked_for(
    options: dict[str, Any], wanted: int, counts: set[int]
) -> None:
    engine.compile(engine.optimise(_network(), 3), backend=ONEDNN, optimise=0, **options)
    assert counts == {wanted}


_FORKS = """
import os, sys
import numpy as np
import engine, ops

def network(channels):
    graph = engine.Graph("convolutions")
    w = np.random.default_rng(0).standard_normal((channels, channels, 3, 3)).astype(np.float32)
    x, w = graph.input("x", (1, channels, 56, 56)), graph.constant(w)
    graph.output(ops.relu(ops.conv(ops.relu(ops.conv(x, w, pads=1)), w, pads=1)), "y")
    return engine.optimise(graph, 3), {"x": np.ones((1, channels, 56, 56), np.float32)}

import engine.api
engine.api.cpus = lambda: 2
(graph, feeds), (other, others) = network(64), network(32)
exe = engine.compile(graph, backend="onednn", threads=2)
wanted = exe.run(feeds)["y"].copy()
child = os.fork()
if not child:
    found = exe.run(feeds)["y"]
    engine.compile(other, backend="onednn", threads=2).run(others)
    os._exit(0 if np.array_equal(found, wanted) else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_process_runs_onednn_kernels_of_its_parent() -> None:
    """In a process of its own, in a session of its own: one that waits for ever ends with its children."""
    started = subprocess.Popen([sys.executable, "-W", "ignore", "-c", _FORKS], start_new_session=True)
    try:
        assert started.wait(60) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def test_onednn_plans_compiled_concurrently_are_right() -> None:
    graphs = [engine.optimise(_network(16 + n), 3) for n in (0, 17, 32)]
    feeds = [{"x": np.random.default_rng(9).standard_normal(g.inputs["x"].shape).astype(np.float32)} for g in graphs]
    wanted = [engine.compile(g, backend="numpy", optimise=0).run(f)["y"] for g, f in zip(graphs, feeds, strict=True)]

    def compute(job: int) -> None:
        for which in range(3):
            exe = engine.compile(graphs[which], backend=ONEDNN, threads=1 + (job + which) % 4, optimise=0)
            np.testing.assert_allclose(exe.run(feeds[which])["y"], wanted[which], rtol=1e-3, atol=1e-4)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(compute, range(12)))
