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
from tests.helpers.graphs.unplanned_run import EVERY_MODE, SERIAL, assert_same, random_feeds
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "determinism.md"
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
    {"budget": "100 KiB"},
    *({"parallel": name.replace("k", "4"), "threads": 2} for name in POLICIES),
)
_PROCESS = """
import hashlib, sys
from tests.test_determinism import digests
print(*digests())
"""


def network() -> Graph:
    """Returns convolutions, a concatenation, normalisations and products: what most networks are made of."""
    graph, rng = Graph("network"), np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return (rng.standard_normal(shape) / 5).astype(np.float32)

    x = graph.input("x", (2, 8, 12, 12))
    y = ops.relu(ops.conv(x, weights(8, 8, 3, 3), weights(8), pads=1))
    z: Any = ops.concat([y, ops.gelu(ops.conv(y, weights(24, 8, 1, 1)))], axis=1)
    z = ops.max_pool(ops.conv(z, weights(16, 32, 3, 3), pads=1) + ops.conv(x, weights(16, 8, 1, 1)), (2, 2), strides=2)
    rows = ops.layer_norm(ops.reshape(z, (2, 16, 36)), np.ones(36, np.float32))
    graph.output(ops.softmax(rows @ weights(36, 10)), "y")
    return graph


def digests() -> tuple[str, str]:
    """Returns digests of a plan and of what it computes."""
    graph = zoo.mobilenet_v2(image=32)
    exe = engine.compile(graph, threads=1)
    outputs = exe.run(random_feeds(graph))
    parts = (exe.plan.plan.offset.tobytes(), *(array.tobytes() for array in outputs.values()))
    plan, *computed = (hashlib.sha256(part).hexdigest() for part in parts)
    return plan, " ".join(computed)


@pytest.mark.parametrize("options", PLANS, ids=str)
def test_no_plan_changes_a_bit(options: dict[str, Any]) -> None:
    graph = network()
    feeds = random_feeds(graph)
    wanted = engine.compile(graph).run(feeds)
    try:
        outputs = engine.compile(graph, **options).run(feeds)
    except UnsupportedProblemError:
        pytest.skip("the strategy takes no overwrites")
    assert_same(outputs, wanted)


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_no_way_to_run_changes_a_bit(backend: str) -> None:
    graph = network()
    feeds = random_feeds(graph)
    wanted = engine.compile(graph, backend=backend, threads=1).run(feeds)
    for mode in EVERY_MODE:
        assert_same(engine.compile(graph, backend=backend, **mode).run(feeds), wanted)


@pytest.mark.skipif(ONEDNN not in backends_of("auto"), reason="the library is not installed")
def test_with_onednn_bits_depend_on_what_is_nested_and_on_nothing_else_of_a_plan() -> None:
    graph = network()
    feeds = random_feeds(graph)

    def run(**options: Any) -> dict[str, Any]:
        return engine.compile(graph, backend="onednn", threads=1, **options).run(feeds)

    assert_same(run(mode="dynamic"), run())
    plain = run(nest=False)
    for options in (*SERIAL, *({"strategy": name} for name in ("naive", "greedy_by_size")), {"padding": 64}):
        assert_same(run(nest=False, **options), plain)
    np.testing.assert_allclose(run()["y"], plain["y"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{"prepack": False}, {"views": False}], ids=str)
def test_kernels_that_read_other_layouts_give_near_numbers(options: dict[str, Any]) -> None:
    graph = network()
    feeds = random_feeds(graph)
    wanted = engine.compile(graph).run(feeds)["y"]
    moved = np.abs(engine.compile(graph, **options).run(feeds)["y"] - wanted).max()
    assert moved <= 1e-4 * np.abs(wanted).max()


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


def test_each_line_of_the_page_names_a_test_that_exists() -> None:
    rows = [row for row in _ROW.findall(PAGE.read_text()) if "held by" not in row[1]]
    assert len(rows) > 25
    for what, held_by in rows:
        named = _TEST.findall(held_by)
        assert named, what
        for path, name in named:
            assert re.search(rf"^ *def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path}::{name}"
