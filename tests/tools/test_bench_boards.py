"""Networks on boards: what the command measures."""

import json
from pathlib import Path

import pytest

from tools import run_networks
from tools.bench_boards import BOARDS, main

SMALL = """
[[memory]]
name = "sram"
capacity = "8KiB"
read_bandwidth = "1GB/s"

[[memory]]
name = "flash"
capacity = "1MiB"
read_bandwidth = "100MB/s"
writable = false
"""


@pytest.mark.slow
def test_a_keyword_spotter_fits_what_is_fast_of_a_board_and_not_a_board_that_is_too_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(run_networks, "FOLDER", tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    boards = [*map(str, BOARDS), str(tmp_path / "small.toml")]
    assert main(["keyword_spotter_int8", "--boards", *boards, "-q", "-o", str(tmp_path / "rows.json")]) == 0
    *rows, small = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["board"] for row in rows] == [board.stem for board in BOARDS]
    assert all(row["status"] == "optimal" and row["fits_fastest"] for row in rows)
    assert all(row["cost"] == row["bound"] == row["first_come"] == row["density"] for row in rows)
    assert (small["status"], small["fits_fastest"]) == ("infeasible", False)
    assert "which is proved" in small["reason"]
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_a_network_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "'nothing' is no network" in capsys.readouterr().err
