"""`arenaplan solve --validate`: plans from elsewhere, and which rules they break."""

from pathlib import Path

import pytest

from engine.cli.main import main
from tests.helpers.cli.cli_checks import BUFFERS, PLACED, SOLVED, Capture, data, error, save

OVERWRITING = "2\n0 3 20\n2 5 10\n1\n1 0 6\n"


@pytest.mark.parametrize("file", ["p.csv", "p.megengine.json", "p.plc", "p.bin"])
def test_plans_of_every_format_are_validated(file: str, buffers: str, tmp_path: Path, capsys: Capture) -> None:
    plan = str(tmp_path / file)
    assert main(["solve", buffers, "-o", plan]) == 0
    capsys.readouterr()
    printed = data(["solve", buffers, "--validate", plan, "--capacity", "31"], capsys)
    assert set(printed) == SOLVED | {"capacity"}
    assert (printed["arena_bytes"], printed["status"], printed["strategy"]) == (30, "optimal", "given")
    assert data(["solve", buffers], capsys)["offsets"] == printed["offsets"]


def test_a_file_with_offsets_is_validated_by_itself_and_can_be_converted(tmp_path: Path, capsys: Capture) -> None:
    path = save(tmp_path, PLACED)
    target = tmp_path / "plan.h"
    assert data(["solve", path, "--validate", "-o", str(target)], capsys)["offsets"] == {"a": 20, "b": 0, "c": 20}
    assert "#define ARENA_OFFSET_a 20u" in target.read_text()


BREAKING: tuple[tuple[str, list[str], str], ...] = (
    ("c,2,4,10,10", [], "overlap: buffer 'b' has bytes [0, 20) in ticks [1, 3) and buffer 'c' has bytes [10, 20) in"),
    ("c,2,4,10,20", ["--alignment", "64"], "alignment: buffer 'a' of 10 bytes lies at 20; alignment 64"),
    ("c,2,4,10,20", ["--capacity", "29"], "arena too small: buffer 'a' of 10 bytes lies at 20; alignment 1"),
    ("c,2,4,10,20", ["--padding", "1"], "overlap: buffer 'a' has bytes [20, 31)"),
    ("c,2,4,10,-1", [], "missing offset: buffer 'c' has none"),
    ("", [], "missing offset: buffer 'c' has none"),
)


@pytest.mark.parametrize(("row", "options", "words"), BREAKING)
def test_a_plan_that_breaks_a_rule_ends_with_5_and_names_it(
    row: str, options: list[str], words: str, tmp_path: Path, capsys: Capture
) -> None:
    plan = save(tmp_path, PLACED.replace("c,2,4,10,20", row), "plan.csv")
    command = ["solve", save(tmp_path, BUFFERS), "--validate", plan, "-o", str(tmp_path / "out.csv"), *options]
    assert f"plan.csv: {words}" in error(command, 5, capsys)
    assert not (tmp_path / "out.csv").exists()


def test_pins_gaps_and_overwrites_are_rules_too(tmp_path: Path, capsys: Capture) -> None:
    pinned = save(tmp_path, PLACED, "pinned.csv")
    moved = save(tmp_path, PLACED.replace("a,0,2,10,20", "a,0,2,10,30"), "moved.csv")
    assert "pinned offset: buffer 'a'" in error(["solve", pinned, "--pinned", "--validate", moved], 5, capsys)
    gaps = "id,lower,upper,size,gaps,offset\na,0,9,4,2-5,0\nb,2,{},4,,0\n"
    assert main(["solve", save(tmp_path, gaps.format(5), "gaps.csv"), "--validate"]) == 0
    capsys.readouterr()
    assert "overlap" in error(["solve", save(tmp_path, gaps.format(6), "gaps.csv"), "--validate"], 5, capsys)
    overwriting = save(tmp_path, OVERWRITING, "list.txt")
    plan = save(tmp_path, "id,lower,upper,size,offset\n0,0,3,20,0\n1,2,5,10,5\n", "plan.csv")
    message = error(["solve", overwriting, "--validate", plan], 5, capsys)
    assert "misplaced overwrite: buffer '1' overwrites buffer '0' and must lie at 6, but lies at 5" in message


def test_a_plan_that_says_nothing_or_of_other_buffers_ends_with_1(
    buffers: str, tmp_path: Path, capsys: Capture
) -> None:
    assert "holds no offsets" in error(["solve", buffers, "--validate"], 1, capsys)
    other = save(tmp_path, PLACED.replace("c,", "d,"), "plan.csv")
    assert "plan.csv: places a buffer 'd'" in error(["solve", buffers, "--validate", other], 1, capsys)
    assert "none" in error(["solve", buffers, "--validate", str(tmp_path / "none")], 1, capsys)
