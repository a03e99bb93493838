"""The resident set of a process while it loads a model with large weights: one copy of them, and little more."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.system.process_memory import reset_peak
from tests.helpers.onnx.large_models import save_convolutions
from tests.helpers.paths import ROOT

MOST = 1.2
"""The peak above a process that has loaded a small model, over the bytes of the weights."""

TRIES = 3
"""Processes of which the least peak counts: in some the C library keeps a freed block, by where the system maps it."""


@pytest.mark.slow
@pytest.mark.skipif(not reset_peak(), reason="the system does not tell peaks")
@pytest.mark.parametrize(
    ("quantised", "beside", "store"),
    [(False, False, ""), (False, True, ""), (False, False, "float16"), (True, False, ""), (True, True, "")],
)
def test_weights_are_resident_once_while_a_model_is_loaded(
    tmp_path: Path, quantised: bool, beside: bool, store: str
) -> None:
    channels = 1024 if quantised else 512
    small = save_convolutions(tmp_path / "small.onnx", 64, quantised=quantised)
    large = save_convolutions(tmp_path / "large.onnx", channels, quantised=quantised, beside=beside)
    command = [sys.executable, "-m", "tests.helpers.onnx.large_models", str(small), str(large), store]
    runs = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True) for _ in range(TRIES)]
    weights, peak = min(tuple(map(int, run.stdout.split())) for run in runs)
    assert weights > 50e6
    assert peak <= MOST * weights
