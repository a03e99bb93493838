"""Files of operators of the user's own, through the command."""

from pathlib import Path

import numpy as np
import pytest

from engine.cli.main import build_parser, main
from engine.cli.measure.processes import SECONDS, MeasureTask, in_process
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.cli.cli_checks import save as save_text
from tests.helpers.onnx.own_operators import SCALE_FILE, save, scale_model


def test_all_commands_that_read_a_model_take_a_file_of_operators(tmp_path: Path, capsys: Capture) -> None:
    ops, path = save_text(tmp_path, SCALE_FILE, "my_ops.py"), save(scale_model(), tmp_path)
    assert data(["plan", path, "--ops", ops], capsys)["operators"] == 2
    assert data(["compare", path, "--ops", ops], capsys)["outputs_equal"]
    for command in ("explain", "heaps", "trace"):
        assert main([command, path, "--ops", ops]) == 0
    assert main(["view", path, "--ops", ops, "-o", str(tmp_path / "page.html")]) == 0
    assert main(["run", path, "--ops", ops, "-o", str(tmp_path / "y.npz"), "--mode", "poison"]) == 0
    assert np.load(tmp_path / "y.npz")["y"].max() > 0
    assert not list(tmp_path.glob("__pycache__"))


@pytest.mark.slow
def test_processes_that_measure_run_the_file_of_operators(tmp_path: Path) -> None:
    ops, path = save_text(tmp_path, SCALE_FILE, "my_ops.py"), save(scale_model(), tmp_path)
    arguments = build_parser(["compare"]).parse_args(["compare", path, "--ops", ops, "--threads", "1"])
    assert in_process(MeasureTask(SECONDS, "dynamic", 1, arguments))["digest"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n\nx = y\n", "line 3: NameError: name 'y' is not defined"),
        ("x = 1\nx = (\n", "line 2: SyntaxError: "),
        ("import engine\nengine.register_operator('acme', 'A', 3)\n", "line 2: OptionError: operator 'A' of domain"),
        ("import sys\nsys.exit(0)\n", "line 2: SystemExit: 0"),
        ("x = 1\n", "registers no operator; arenaplan.register_operator(domain, name, schema) in it does"),
    ],
)
def test_a_wrong_file_of_operators_ends_with_1_in_one_line(
    text: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    ops, path = save_text(tmp_path, text, "my_ops.py"), save(scale_model(), tmp_path)
    printed = error(["plan", path, "--ops", ops], 1, capsys)
    assert f"--ops {ops}" in printed and message in printed


def test_a_file_of_operators_that_is_not_there_ends_with_1(tmp_path: Path, capsys: Capture) -> None:
    assert "none.py: No such file" in error(["plan", "m.onnx", "--ops", str(tmp_path / "none.py")], 1, capsys)
