"""How commands fail: one line on stderr, an exit code that says what, nothing half-written."""

import builtins
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cli.main import main
from engine.text.errors import FeedError, JudgeError
from tests.helpers.cli.cli_checks import BUFFERS, Capture, error
from tests.helpers.paths import ROOT

USAGE: tuple[list[str], ...] = (
    [],
    ["dance"],
    ["plan"],
    ["plan", "m.onnx", "--strategy", "luck"],
    ["plan", "m.onnx", "--shape", "x"],
    ["plan", "m.onnx", "--shape", "x=1,2.5"],
    ["plan", "m.onnx", "--budget", "much"],
    ["plan", "m.onnx", "--alignment", "0"],
    ["plan", "m.onnx", "--alignment", "1180591620717411303424"],
    ["plan", "m.onnx", "--padding", "99999999999999999999"],
    ["plan", "m.onnx", "--budget", "9" * 400],
    ["plan", "m.onnx", "--timeout", "soon"],
    ["run", "m.onnx", "--timeout", "-1"],
    ["compare", "m.onnx", "--nodes", "0"],
    ["trace", "m.onnx", "--nodes", "1.5"],
    ["plan", "m.onnx", "--shape", "x=,,3,,8"],
    ["run", "m.onnx", "--threads", "99999999999999999999"],
    ["plan", "m.onnx", "--top", "-1"],
    ["run", "m.onnx", "--mode", "fast"],
    ["run", "m.onnx", "--runs", "0"],
    ["run", "m.onnx", "--threads", "0"],
    ["run", "m.onnx", "--input", "=x.npy"],
    ["compare", "m.onnx", "--oracle", "delphi"],
    ["trace", "m.onnx", "--format", "poem"],
    ["solve", "b.csv", "--seed", "x"],
)


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_a_wrong_command_line_ends_with_2(arguments: list[str], capsys: Capture) -> None:
    assert "--help" in error(arguments, 2, capsys)


def test_an_alignment_that_is_no_power_of_two_ends_with_2(model: str, capsys: Capture) -> None:
    assert "48" in error(["plan", model, "--alignment", "48"], 2, capsys)


def test_files_that_are_not_there_or_not_right_end_with_1(model: str, tmp_path: Path, capsys: Capture) -> None:
    junk = tmp_path / "junk"
    junk.write_bytes(b"\x00junk\xff")
    for command in ("plan", "run", "compare", "trace", "solve"):
        assert "junk" in error([command, str(junk)], 1, capsys) or command == "solve"
        assert "none" in error([command, str(tmp_path / "none")], 1, capsys)
        message = error([command, str(tmp_path)], 1, capsys)
        assert "Errno" not in message and ("is a folder" in message or command == "solve")
    assert "junk" in error(["run", model, "--input", f"x={junk}"], 1, capsys)
    assert "none" in error(["run", model, "--input", f"x={tmp_path / 'none'}"], 1, capsys)


def test_an_input_of_a_wrong_name_or_dtype_ends_with_1(model: str, tmp_path: Path, capsys: Capture) -> None:
    feed = tmp_path / "x.npy"
    np.save(feed, np.ones((4, 8), np.int64))
    assert "int64" in error(["run", model, "--input", f"x={feed}"], 1, capsys)
    assert "'q'" in error(["run", model, "--input", f"q={feed}"], 1, capsys)


@pytest.mark.parametrize("command", ["run", "trace", "solve"])
def test_a_path_that_cannot_be_written_leaves_nothing(
    command: str, model: str, buffers: str, tmp_path: Path, capsys: Capture
) -> None:
    file, name = buffers if command == "solve" else model, "y" if command == "run" else "y.csv"
    (tmp_path / "folder.csv").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for target in (tmp_path / "none" / name, Path(buffers) / name):
        assert str(target.parent) in error([command, file, "-o", str(target)], 1, capsys)
    if command != "run":
        error([command, file, "-o", str(tmp_path / "folder.csv")], 1, capsys)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_csv_that_is_refused_is_named(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "odd.csv"
    for text, words in (("", "is empty"), ("id,lower,upper,size\na,0,2,4\na,1,3,4\n", "two buffers have the id 'a'")):
        path.write_text(text)
        message = error(["solve", str(path)], 1, capsys)
        assert words in message and "odd.csv" in message
    path.write_text("id,lower,upper,size\na,0,2,4\n")
    assert "pinned" in error(["solve", str(path), "--pinned"], 1, capsys)


def test_buffers_that_do_not_fit_are_not_written(buffers: str, tmp_path: Path, capsys: Capture) -> None:
    error(["solve", buffers, "--budget", "1", "-o", str(tmp_path / "o.csv")], 3, capsys)
    assert not (tmp_path / "o.csv").exists()


def test_outputs_go_to_a_folder_or_an_archive(model: str, tmp_path: Path, capsys: Capture) -> None:
    message = error(["run", model, "-o", str(tmp_path / "y.npy")], 2, capsys)
    assert "outputs go to a .npz file, or to a folder, whose name has no suffix" in message


SUFFIXES = {"plan": ".h, .c, .bin", "trace": ".csv, .json", "solve": ".csv, .txt", "view": ".html or .htm"}
"""Some of the suffixes that each command knows."""


@pytest.mark.parametrize("command", SUFFIXES)
def test_a_suffix_that_nothing_has_is_refused_with_those_that_there_are(
    command: str, model: str, buffers: str, tmp_path: Path, capsys: Capture
) -> None:
    for name in ("plan.xyz", "plan"):
        target = tmp_path / name
        file = buffers if command == "solve" else model
        message = error([command, file, "-o", str(target)], 2, capsys)
        assert SUFFIXES[command] in message and str(target) in message
        assert not target.exists()


def test_run_does_not_take_a_file_for_a_folder(model: str, buffers: str, capsys: Capture) -> None:
    error(["run", model, "-o", buffers], 1, capsys)
    assert Path(buffers).read_text() == BUFFERS


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory while running the command"),
        (PermissionError(13, "Permission denied", "/there"), 1, "/there: Permission denied"),
        (JudgeError("two\nlines"), 5, "two lines"),
        (FeedError(), 1, "FeedError"),
    ],
)
def test_every_foreseen_failure_is_one_line(
    raised: BaseException, code: int, words: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise raised

    monkeypatch.setattr("engine.cli.plan.load_graph", fail)
    assert error(["plan", "m.onnx"], code, capsys) == f"arenaplan: error: {words}"


def without(package: str) -> Callable[..., Any]:
    """Returns an __import__ that does not know a package."""
    import_module = builtins.__import__

    def imported(name: str, *rest: Any, **more: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return import_module(name, *rest, **more)

    return imported


@pytest.mark.parametrize(
    ("package", "option"), [("onnxruntime", ["--oracle", "onnxruntime"]), ("threadpoolctl", ["--threads", "1"])]
)
def test_optional_packages_are_named_when_they_are_missing(
    package: str, option: list[str], model: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "__import__", without(package))
    assert f"{package}" in error(["compare", model, "--runs", "1", *option], 1, capsys)


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(model: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "import sys; from engine.cli.main import main; sys.exit(main())", "plan", model]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writer)
    assert done.stderr == b"" and done.returncode == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["pln", "m.onnx"], "did you mean plan?"),
        (["plan", "m.onnx", "--budgte", "3"], "did you mean --budget?"),
        (["plan", "m.onnx", "--optimise-it=3"], "did you mean --optimise?"),
        (["plan", "m.onnx", "--order", "memmory"], "did you mean memory?"),
        (["plan", "m.onnx", "--strategy", "pushdwn"], "did you mean pushdown?"),
        (["solve", "b.csv", "--capcity", "3"], "did you mean --capacity?"),
    ],
)
def test_a_mistyped_word_is_refused_with_the_one_that_was_meant(words: list[str], hint: str, capsys: Capture) -> None:
    assert hint in error(words, 2, capsys)


@pytest.mark.parametrize("words", [["plan", "m.onnx", "--" + "x" * 500], ["run", "m.onnx", "another"]])
def test_a_word_that_is_like_nothing_is_refused_without_a_hint(words: list[str], capsys: Capture) -> None:
    message = error(words, 2, capsys)
    assert "unrecognized arguments: " in message and "did you mean" not in message


def test_a_mistyped_network_is_refused_with_the_one_that_was_meant(capsys: Capture) -> None:
    message = error(["plan", "zoo:resnt50"], 1, capsys)
    assert "there is no network 'zoo:resnt50'; did you mean zoo:resnet50?" in message


def test_both_spellings_of_optimise_are_understood(model: str, capsys: Capture) -> None:
    for words in (["--optimize", "0"], ["--optimize=0"]):
        assert main(["plan", model, *words]) == 0
        shown = capsys.readouterr()
        assert "optimised at" not in shown.out and not shown.err


def test_a_reader_that_stops_early_ends_the_command_quietly() -> None:
    code = "import sys; from engine.cli.main import main; sys.exit(main())"
    words = ["trace", "zoo:squeezenet?image=64", "-q", "--backend", "numpy", "--format", "json"]
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 1)
