"""Compiled code is limited to a set of instructions, for a process or on the command line."""

import subprocess
import sys

import pytest

from allocator.machine_code.instructions import NAMES, instructions
from engine.cli.main import USAGE, main
from engine.system.instructions import limit_instructions
from engine.text.errors import OptionError
from tests.helpers.paths import ROOT

_RUN = """
import sys
import numpy as np
import engine, ops
engine.limit_instructions(sys.argv[1])
graph = engine.Graph("small")
x = graph.input("x", (5, 40))
w = graph.constant(np.random.default_rng(3).standard_normal((40, 30)).astype(np.float32))
graph.output(ops.softmax(ops.tanh(ops.matmul(x, w))), "y")
feeds = {"x": np.linspace(-1, 1, 200, dtype=np.float32).reshape(5, 40)}
y = engine.compile(graph, optimise=0, threads=1).run(feeds)["y"]
print(*y.ravel().tolist())
"""


@pytest.mark.slow
def test_all_sets_compute_the_same_numbers() -> None:
    names = NAMES[: NAMES.index(instructions().name) + 1]
    results = []
    for name in names:
        done = subprocess.run([sys.executable, "-c", _RUN, name], cwd=ROOT, capture_output=True, text=True, check=True)
        results.append([float(word) for word in done.stdout.split()])
    assert all(len(result) == 150 and result == pytest.approx(results[0], rel=1e-5) for result in results)


def test_a_set_that_does_not_exist_is_refused() -> None:
    with pytest.raises(OptionError, match="portable"):
        limit_instructions("sse9")


def test_a_command_line_that_names_no_set_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "zoo:squeezenet", "--instructions", "sse9"]) == USAGE
    assert "avx512vnni" in capsys.readouterr().err
