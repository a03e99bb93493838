"""`arenaplan trace`: of models and of saved traces, to files, pipes and terminals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import engine
from engine.cli.main import ERROR, USAGE, main
from engine.exporters import FORMATS
from tests.helpers.cli.cli_checks import Capture, error
from tests.helpers.cli.terminal import in_terminal, needs_terminal
from tests.helpers.paths import ROOT

NETWORK = "zoo:squeezenet?image=32"
PROGRAM = "import sys; from engine.cli.main import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "t.json"
    assert main(["trace", NETWORK, "--format", "json", "-o", str(path)]) == 0
    return path


@pytest.mark.parametrize("name", ["table", "map", "json", "csv", "chrome", "svg"])
def test_a_saved_trace_is_told_as_the_model_was(name: str, saved: Path, capsys: Capture) -> None:
    outputs = []
    for file in (NETWORK, str(saved)):
        assert main(["trace", file, "--format", name]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != ""


def test_a_trace_saved_as_csv_keeps_its_events(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    csv = tmp_path / "events.csv"
    assert main(["trace", str(saved), "--format", "csv", "-o", str(csv)]) == 0
    assert main(["trace", str(csv), "--format", "csv"]) == 0
    assert capsys.readouterr().out == csv.read_text()
    assert tuple(engine.read_trace(csv)) == tuple(engine.read_trace(saved))


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--real"], "--real"),
        (["--mode", "dynamic"], "--mode"),
        (["--mode", "dynamic", "--heap", "buddy"], "--heap, --mode"),
        (["--budget", "1", "--alignment", "128", "--strategy", "exact"], "--alignment, --budget, --strategy"),
        (["--dim", "batch=3"], "--dim"),
        (["--no-reuse", "--plan-from-file", "never"], "--no-reuse, --plan-from-file"),
    ],
)
@pytest.mark.parametrize("command", ["trace", "view"])
def test_a_saved_trace_cannot_be_planned_or_run_otherwise(
    command: str, more: list[str], named: str, saved: Path, capsys: Capture
) -> None:
    if command == "view" and "--plan-from-file" in more:
        more, named = more[:-2], "--no-reuse"
    message = error([command, str(saved), *more], USAGE, capsys)
    assert message.endswith(f"{saved} is a saved trace, and has its plan and its run: leave out {named}")


def test_a_default_that_is_given_is_no_change(saved: Path) -> None:
    assert main(["trace", str(saved), "--mode", "static", "--strategy", "best", "--quiet"]) == 0


def test_trace_of_a_damaged_file_leaves_nothing_behind(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    (cut := tmp_path / "cut.json").write_bytes(saved.read_bytes()[:5_000])
    for name in ("table", "map", "csv", "json", "chrome", "svg"):
        message = error(["trace", str(cut), "--format", name, "-o", str(tmp_path / "out")], ERROR, capsys)
        assert f"{cut}:" in message
    assert [p.name for p in tmp_path.iterdir()] == ["cut.json"]


def test_trace_refuses_a_file_that_is_no_trace(tmp_path: Path, capsys: Capture) -> None:
    (path := tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,10\n")
    assert f"{path}:1: tick: this column is missing" in error(["trace", str(path)], ERROR, capsys)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("name", ["table", "map", "json", "csv"])
def test_trace_tells_a_full_disk(name: str, saved: Path, capsys: Capture) -> None:
    message = error(["trace", str(saved), "--format", name, "-o", "/dev/full"], ERROR, capsys)
    assert "/dev/full" in message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table", "json"])
def test_trace_to_a_reader_that_goes_is_no_traceback(name: str, saved: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "trace", str(saved), "--format", name]
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, cwd=ROOT) as process:
        os.close(writing)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (ERROR, b"")


@pytest.mark.slow
@needs_terminal
@pytest.mark.parametrize("name", ["table", "map"])
def test_a_terminal_is_filled_but_not_exceeded(name: str, saved: Path) -> None:
    done = in_terminal("-c", PROGRAM, "trace", str(saved), "--format", name, COLUMNS="70")
    assert done.code == 0 and "\x1b" not in done.written
    assert 60 < max(map(len, done.written.splitlines())) <= 70


@pytest.mark.slow
@needs_terminal
def test_trace_shows_colour_where_it_is_wanted(saved: Path) -> None:
    done = in_terminal("-c", PROGRAM, "trace", str(saved), "--format", "map", NO_COLOR="")
    assert done.code == 0 and "\x1b[38;5;16;48;5;" in done.written
    assert "\x1b" not in in_terminal("-c", PROGRAM, "trace", str(saved), TERM="dumb", NO_COLOR="").written


@pytest.mark.slow
@needs_terminal
@pytest.mark.parametrize("name", sorted(name for name, file_format in FORMATS.items() if not file_format.is_text))
def test_binary_traces_are_kept_from_terminals(name: str, saved: Path) -> None:
    done = in_terminal("-c", PROGRAM, "trace", str(saved), "--format", name)
    assert done.code == USAGE and f"--format {name} is not for terminals" in done.written
