"""The resident set to expect: its parts, their sum, and what a real process has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine
import ops
from engine import Graph
from engine.report.resident import ResidentSet, resident_set
from engine.system import process_memory
from tests.helpers.paths import ROOT

MIB = 2**20
TEXT = """\
resident set to expect
    arena                     4096 B     4.00 KiB   in whole pages
    resident weights          8192 B     8.00 KiB   weights that kernels read, and prepacked copies
    outputs                  12288 B    12.00 KiB   copies that a run returns
    code                     16384 B    16.00 KiB   measured: libraries and machine code
    interpreter              20480 B    20.00 KiB   measured: Python, modules, the graph and its plan
    sum                      61440 B    60.00 KiB   what this process would have resident while it runs
"""
_LARGE = """
import sys
import numpy as np
import engine, ops
from engine.system import process_memory
graph = engine.Graph("large")
x = graph.input("x", (1024, 4096))
graph.output(ops.tanh(x @ np.full((4096, 4096), 1e-3, np.float32)), "y")
feeds = {"x": np.ones((1024, 4096), np.float32)}
plan = engine.make_plan(graph)
expected = plan.resident_set().resident_bytes
executable = engine.compile(graph)
for _ in range(2):
    executable.run(feeds)
process_memory.reset_peak()
executable.run(feeds)
print(process_memory.peak_bytes() / expected)
"""


def _graph() -> Graph:
    graph = Graph("two")
    y = graph.input("x", (64, 512)) @ np.ones((512, 100), np.float32)
    graph.output(y, "y")
    graph.output(ops.relu(y), "z")
    return graph


def test_each_part_has_its_line() -> None:
    assert ResidentSet(4096, 8192, 12_288, 16_384, 20_480).text() == TEXT


def test_what_the_system_does_not_tell_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "_PROC", tmp_path / "proc")
    parts = engine.make_plan(_graph()).resident_set()
    assert parts.to_json()["resident_bytes"] is parts.code_bytes is parts.interpreter_bytes is None
    assert parts.tensor_bytes > 0 and parts.text().splitlines()[-1].split()[:2] == ["sum", "-"]


@pytest.mark.skipif(process_memory.file_bytes() is None, reason="the system tells no resident sets")
def test_the_parts_are_those_of_the_plan_and_of_this_process() -> None:
    plan = engine.make_plan(_graph())
    parts, page = resident_set(plan), process_memory.PAGE
    assert parts.tensor_bytes == process_memory.whole_pages(plan.arena_bytes)
    assert parts.weights_bytes == process_memory.whole_pages(plan.resident_weights_bytes)
    assert parts.output_bytes == 2 * process_memory.whole_pages(64 * 100 * 4) and parts.output_bytes % page == 0
    dynamic = resident_set(plan, "dynamic")
    assert (dynamic.tensor_bytes, dynamic.output_bytes) == (
        process_memory.whole_pages(plan.report().dynamic_peak_bytes),
        0,
    )
    assert parts.code_bytes and parts.interpreter_bytes and parts.resident_bytes
    assert parts.resident_bytes == sum(value for name, value in parts.to_json().items() if name != "resident_bytes")


@pytest.mark.skipif(process_memory.file_bytes() is None, reason="the system tells no resident sets")
def test_weights_that_are_in_memory_count_once() -> None:
    graph = Graph("weights")
    graph.output(graph.input("x", (1, 4096)) @ np.ones((4096, 4096), np.float32), "y")
    plan = engine.make_plan(graph, optimise=0)
    parts, now = plan.resident_set(), process_memory.resident_bytes()
    assert parts.code_bytes is not None and parts.interpreter_bytes is not None and now is not None
    assert plan.weights_bytes == 64 * MIB <= parts.weights_bytes
    assert abs(parts.code_bytes + parts.interpreter_bytes + 64 * MIB - now) < 8 * MIB


@pytest.mark.slow
@pytest.mark.skipif(process_memory.file_bytes() is None, reason="the system tells no resident sets")
def test_a_process_has_resident_what_was_expected(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_LARGE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for _ in range(2):  # the first one may have to make machine code
        done = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert 0.95 < json.loads(done.stdout) < 1.05
