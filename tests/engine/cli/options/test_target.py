"""`--target`: plans for another processor, and commands that refuse to run them."""

from pathlib import Path

import pytest

from engine.cli.main import main
from tests.helpers.cli.cli_checks import Capture, error, planned
from tests.helpers.onnx.saved_models import save_perceptron

REFUSED = "this plan is for target 'board', not for this processor: it cannot run here"


@pytest.fixture
def board(tmp_path: Path) -> str:
    (tmp_path / "board.toml").write_text('[[workspace]]\noperator = "softmax"\nbytes = 1000\n')
    return str(tmp_path / "board.toml")


def test_plan_takes_the_workspaces_of_the_file(board: str, tmp_path: Path, capsys: Capture) -> None:
    model = str(save_perceptron(tmp_path / "m.onnx"))
    shown = planned([model, "--target", board], capsys)
    assert shown["target"] == "board" and shown["prepacked_bytes"] == 0
    sizes = {k["kind"]: k["workspace_bytes"] for k in shown["kernels"]}
    assert sizes and all(nbytes == (1000 if kind == "softmax" else 0) for kind, nbytes in sizes.items())
    assert planned([model, "--target", "none"], capsys)["workspace_bytes"] == 0
    assert main(["plan", model, "--target", board]) == 0
    assert "planned for target 'board', not for this processor" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["run"], ["compare"], ["compare", "--measure"], ["trace", "--real"]])
def test_what_runs_a_model_refuses_a_target_in_one_line(
    words: list[str], board: str, tmp_path: Path, capsys: Capture
) -> None:
    command, *more = words
    model = str(save_perceptron(tmp_path / "m.onnx"))
    assert error([command, model, "--target", board, *more], 2, capsys) == f"arenaplan: error: {REFUSED}"


def test_a_saved_plan_for_a_target_is_followed_for_it_alone(board: str, tmp_path: Path, capsys: Capture) -> None:
    model, saved = str(save_perceptron(tmp_path / "m.onnx")), str(tmp_path / "planned.onnx")
    assert main(["plan", model, "--target", board, "-o", saved]) == 0
    capsys.readouterr()
    assert planned([saved, "--target", board], capsys)["origin"] == "from the file"
    assert main(["run", saved]) == 0
    assert "is for target 'board', not for this processor" in capsys.readouterr().err
    message = error(["run", saved, "--plan-from-file", "required"], 1, capsys)
    assert "is for target 'board', not for this processor" in message


def test_lengths_that_are_not_known_are_refused(board: str, tmp_path: Path, capsys: Capture) -> None:
    model = str(save_perceptron(tmp_path / "m.onnx", "n"))
    message = error(["plan", model, "--target", board, "--length-ranges", "n=1:4"], 2, capsys)
    assert "give --dim in place of --length-ranges" in message


def test_a_wrong_file_is_told_in_one_line(tmp_path: Path, capsys: Capture) -> None:
    model = str(save_perceptron(tmp_path / "m.onnx"))
    (tmp_path / "bad.toml").write_text("[[cache]]\nbytes = 4\n")
    assert "'cache' is unknown" in error(["plan", model, "--target", str(tmp_path / "bad.toml")], 2, capsys)
    assert "No such file" in error(["plan", model, "--target", str(tmp_path / "none.toml")], 1, capsys)
