"""A process whose machine code is on disk runs networks without numba and LLVM, and without OpenSSL."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allocator.machine_code import load
from tests.helpers.paths import ROOT

_RUN = """
import sys
from pathlib import Path
import numpy as np
import engine, ops
graph = engine.Graph("small")
x = graph.input("x", (1, 8, 14, 14))
weights = np.linspace(-1, 1, 16 * 8 * 9, dtype=np.float32).reshape(16, 8, 3, 3)
y = ops.relu(ops.conv(x, graph.constant(weights), pads=(1, 1, 1, 1)))
y = ops.softmax(ops.reshape(ops.max_pool(y, kernel_shape=(2, 2), strides=(2, 2)), (16, 49)))
values, places = ops.top_k(y, k=3)
graph.output(ops.erf(ops.tanh(values)), "y")
graph.output(places, "places")
executable = engine.compile(graph, threads=2)
for _ in range(3):
    result = executable.run({"x": np.ones((1, 8, 14, 14), np.float32)})
WORDS = ("numba", "llvmlite", "libcrypto")
modules = {name.partition(".")[0] for name in sys.modules}
print(*modules & {"numba", "llvmlite"}, *{w for w in WORDS if w in Path("/proc/self/maps").read_text()})
"""


@pytest.mark.slow
@pytest.mark.skipif(not load.IS_SUPPORTED, reason="no machine code is kept here")
def test_a_process_that_finds_its_machine_code_loads_no_compiler_and_no_cryptography(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_RUN)
    for _ in range(2):  # the first one may have to make something
        command = [sys.executable, "-W", "error", str(script)]
        done = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}
