"""The process that the table of whole processes is made of, on a network that needs next to nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from engine.system import process_memory
from tests.helpers.onnx import small_models
from tests.helpers.paths import ROOT
from tools.bench_process import CHILD

MOST_BYTES = 80_000_000
"""A tenth more than one relu took with numpy 2.4 and onnx 1.23."""


@pytest.mark.slow
@pytest.mark.skipif(process_memory.file_bytes() is None, reason="the system tells no resident sets")
def test_a_process_of_one_relu_is_python_its_modules_and_the_reader_of_models(tmp_path: Path) -> None:
    model = small_models.model([small_models.node("Relu", ["x"], ["y"])], [small_models.value("x", (16,))])
    onnx.save(model, tmp_path / "relu.onnx")
    np.savez(tmp_path / "feeds.npz", x=np.ones(16, np.float32))
    command = [sys.executable, str(CHILD), "arenaplan", str(tmp_path / "relu.onnx"), str(tmp_path / "feeds.npz")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for _ in range(2):  # the first one may have to make machine code
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["peak_bytes"] < MOST_BYTES
