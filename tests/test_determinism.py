"""The page of what is equal to the bit names tests that exist; and the tests of lines that have no other room."""

import hashlib
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import engine
import ops
from allocator.errors import UnsupportedProblemError
from allocator.policies import POLICIES
from allocator.solvers import STRATEGIES
from engine import Graph, zoo
from engine.lower.backends import backends_of
from engine.lower.order import ORDERS
from ops.schema.backends import ONEDNN
from tests.helpers.graphs.unplanned_run import EVERY_MODE, assert_same, random_feeds
from tests.helpers.paths import ROOT

PAGES = (("determinism.md", 25), ("numbers.md", 15))
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| (?!---)(.+?) \| (.+?) \|$", re.MULTILINE)
PLANS: tuple[dict[str, Any], ...] = (
    *({"strategy": name} for name in STRATEGIES),
    *({"order": name} for name in ORDERS),
    *({"alignment": n} for n in (1, 16, 4096)),
    {"padding": 100},
    {"nest": False},
    {"overwrite": False},
    {"reuse": False},
    {"seed": 7},
    {"budget": "176 KiB"},
    *({"parallel": name.replace("k", "4"), "threads": 2} for name in POLICIES),
)
NEEDS_ONEDNN = pytest.mark.skipif(ONEDNN not in backends_of("auto"), reason="the library is not installed")
BY_ONEDNN = pytest.param(ONEDNN, marks=NEEDS_ONEDNN)
_PROCESS = """
import hashlib, sys
from tests.test_determinism import digests
print(*digests())
"""


def network() -> Graph:
    """Returns convolutions, pools, a concatenation, normalisations and products: what most networks are made of."""
    graph, rng = Graph("network"), np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return (rng.standard_normal(shape) / 5).astype(np.float32)

    x = graph.input("x", (2, 8, 16, 16))
    y = ops.relu(ops.conv(x, weights(8, 8, 3, 3), weights(8), pads=1))
    parts = [y, ops.gelu(ops.conv(y, weights(24, 8, 1, 1))), ops.average_pool(y, (3, 3), pads=1), ops.max_pool(y, 1)]
    z: Any = ops.conv(ops.concat(parts, axis=1), weights(16, 48, 3, 3), pads=1)
    z = ops.average_pool(ops.max_pool(z + ops.conv(x, weights(16, 8, 1, 1)), (3, 3), pads=1), (2, 2), strides=2)
    rows = ops.layer_norm(ops.reshape(z, (2, 16, 64)), np.ones(64, np.float32))
    graph.output(ops.softmax(rows @ weights(64, 10)), "y")
    return graph


def digests() -> tuple[str, str]:
    """Returns digests of a plan and of what it computes."""
    graph = zoo.mobilenet_v2(image=32)
    exe = engine.compile(graph, threads=1)
    outputs = exe.run(random_feeds(graph))
    parts = (exe.plan.plan.offset.tobytes(), *(array.tobytes() for array in outputs.values()))
    plan, *computed = (hashlib.sha256(part).hexdigest() for part in parts)
    return plan, " ".join(computed)


@pytest.mark.parametrize("backend", ["numba", BY_ONEDNN])
@pytest.mark.parametrize("options", PLANS, ids=str)
def test_no_plan_changes_a_bit(options: dict[str, Any], backend: str) -> None:
    graph = network()
    feeds = random_feeds(graph)
    wanted = engine.compile(graph, backend=backend, threads=1).run(feeds)
    try:
        outputs = engine.compile(graph, backend=backend, **{"threads": 1, **options}).run(feeds)
    except UnsupportedProblemError:
        pytest.skip("the strategy takes no overwrites")
    assert_same(outputs, wanted)


@pytest.mark.parametrize("backend", ["numba", "numpy", BY_ONEDNN])
def test_no_way_to_run_changes_a_bit(backend: str) -> None:
    graph = network()
    feeds = random_feeds(graph)
    wanted = engine.compile(graph, backend=backend, threads=1).run(feeds)
    for mode in EVERY_MODE:
        assert_same(engine.compile(graph, backend=backend, **mode).run(feeds), wanted)


@NEEDS_ONEDNN
def test_with_onednn_the_graph_decides_which_kernels_compute() -> None:
    graph = network()

    def kernels(**options: Any) -> set[tuple[str, str, str]]:
        report = engine.make_plan(graph, backend=ONEDNN, threads=1, **options).report()
        return {(k.operator, k.kind, k.backend) for k in report.kernels if k.kind not in {"concat", "copy"}}

    taken = kernels()
    assert {kind for _, kind, backend in taken if backend == ONEDNN} >= {"nhwc_average_pool", "layer_norm", "nhwc_conv"}
    assert {kind for _, kind, backend in taken if backend != ONEDNN} >= {"nhwc_average_pool", "nhwc_conv"}
    for options in ({"nest": False}, {"order": "memory"}, {"overwrite": False}, {"padding": 100}):
        assert kernels(**options) == taken


@NEEDS_ONEDNN
def test_with_onednn_another_number_of_threads_gives_near_numbers() -> None:
    graph = network()
    feeds = random_feeds(graph)
    one, two = (engine.compile(graph, backend=ONEDNN, threads=n).run(feeds)["y"] for n in (1, 2))
    np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{"prepack": False}, {"views": False}], ids=str)
def test_kernels_that_read_other_layouts_give_near_numbers(options: dict[str, Any]) -> None:
    graph = network()
    feeds = random_feeds(graph)
    wanted = engine.compile(graph).run(feeds)["y"]
    moved = np.abs(engine.compile(graph, **options).run(feeds)["y"] - wanted).max()
    assert moved <= 1e-4 * np.abs(wanted).max()


@pytest.mark.slow
def test_two_processes_make_the_same_plan_and_compute_the_same_bits() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PROCESS],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {" ".join(digests())}


@pytest.mark.parametrize(("page", "least"), PAGES)
def test_each_line_of_a_page_names_a_test_that_exists(page: str, least: int) -> None:
    rows = [row for row in _ROW.findall((ROOT / "docs" / page).read_text()) if "held by" not in row[1]]
    assert len(rows) > least
    for what, held_by in rows:
        named = _TEST.findall(held_by)
        assert named, what
        for path, name in named:
            assert re.search(rf"^ *def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path}::{name}"
