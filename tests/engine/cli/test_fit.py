"""`arenaplan fit`: the largest length of a dimension within a budget, of real files."""

from pathlib import Path

import pytest

from engine.cli.main import ERROR, NO_FIT, USAGE, main
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.convolutions import convolutions

BUDGET = "1 MiB"


def test_fit_finds_what_plan_takes(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path, size=16)
    printed = data(["fit", file, "--budget", BUDGET, "--vary", "batch=1:64"], capsys)
    ((batch,), arena) = tuple(printed["largest"][0]["lengths"].values()), printed["largest"][0]["arena_bytes"]
    assert data(["plan", file, "--dim", f"batch={batch}", "--budget", BUDGET], capsys)["arena_bytes"] == arena
    assert main(["plan", file, "--dim", f"batch={batch + 1}", "--budget", BUDGET, "--no-recompute"]) == NO_FIT
    capsys.readouterr()
    assert main(["fit", file, "--budget", BUDGET, "--vary", "batch=1:64", "-q"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"convolutions.onnx fits in 1.00 MiB up to batch={batch}: the arena has {arena} bytes")
    assert "<- the largest that fits" in shown and "the arena grows evenly" in shown


def test_fit_varies_options_of_networks_of_the_zoo(capsys: Capture) -> None:
    words = ["fit", "zoo:lstm_classifier?batch=1", "--budget", "600 KiB", "--vary", "batch=1,2,3"]
    printed = data(words, capsys)
    assert printed["names"] == ["batch"] and len(printed["planned"]) <= 3 and printed["fits"]


def test_a_picture_is_written_whole(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    chart = tmp_path / "fit.svg"
    file = convolutions(tmp_path, size=8)
    assert main(["fit", file, "--budget", "300 KiB", "--vary", "batch=1:16", "--chart", str(chart)]) == 0
    assert "</svg>" in chart.read_text() and capsys.readouterr().err == ""


def test_where_nothing_fits_the_command_ends_with_3(tmp_path: Path, capsys: Capture) -> None:
    assert main(["fit", convolutions(tmp_path, size=8), "--budget", "1 KiB", "--vary", "batch=1:4"]) == NO_FIT
    assert "does not fit in 1.00 KiB: the arena of batch=1 has " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "code", "wanted"),
    [
        (["--vary", "batch=1:8"], USAGE, "give --budget SIZE"),
        (["--budget", "1MiB"], USAGE, "give --vary NAME=LOW:HIGH"),
        (["--budget", "1MiB", "--vary", "store=float16"], USAGE, "store is an option of planning"),
        (["--budget", "1MiB", "--vary", "batch=1:8", "--vary", "batch=2:4"], USAGE, "'batch' twice"),
        (["--budget", "1MiB", "--vary", "batch=a,b"], USAGE, "batch=a is no length"),
        (["--budget", "1MiB", "--vary", "a=1:2", "--vary", "b=1:2", "--vary", "c=1:2"], ERROR, "no dimension 'a'"),
        (["--budget", "1MiB", "--vary", "seq=1:8"], ERROR, "names that are open: batch. Name a dimension with --shape"),
        (["--budget", "1MiB", "--vary", "batch=1:8", "--chart", "x.gif"], USAGE, "does not end with"),
    ],
)
def test_mistakes_are_one_line(more: list[str], code: int, wanted: str, tmp_path: Path, capsys: Capture) -> None:
    assert wanted in error(["fit", convolutions(tmp_path, size=8), *more], code, capsys)


def test_a_model_of_fixed_shapes_says_how_a_dimension_gets_a_name(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path, size=8, batch=1)
    said = error(["fit", file, "--budget", "1MiB", "--vary", "batch=1:8"], ERROR, capsys)
    assert "names that are open: none. The file fixes all its lengths: export it with an open one" in said
    assert said.endswith("for example --shape x=batch,8,8,8")


def test_a_dimension_gets_its_name_from_a_shape(tmp_path: Path, capsys: Capture) -> None:
    file = convolutions(tmp_path, size=8, batch="N")
    assert "open: N. Name a dimension" in error(["fit", file, "--budget", "1MiB", "--vary", "batch=1:8"], ERROR, capsys)
    printed = data(["fit", file, "--shape", "x=batch,8,8,8", "--budget", "1MiB", "--vary", "batch=1:8"], capsys)
    assert printed["names"] == ["batch"] and printed["fits"]
