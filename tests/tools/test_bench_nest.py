"""The benchmark of nesting: arenas with and without each trick, JSON, and the table; never a time."""

import json
from pathlib import Path

import pytest

from tools import bench_nest
from tools.benchmark_tables import TABLES


def test_bench_nest_tells_arenas_with_and_without_each_trick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "nest.json"
    monkeypatch.setattr("sys.argv", ["bench_nest", "squeezenet:1", "--runs", "0", "-o", str(output)])
    bench_nest.main()
    (row,) = json.loads(output.read_text())["rows"]
    assert (row["network"], row["batch"], row["train"], row["joined"]) == ("squeezenet", 1, False, 16)
    assert row["both_bytes"] <= min(row["nested_bytes"], row["ordered_bytes"])
    assert max(row["nested_bytes"], row["ordered_bytes"]) <= row["plain_bytes"]
    assert row["nested_run_ms"] == row["plain_plan_ms"] == 0
    assert "squeezenet" in capsys.readouterr().out


def test_the_table_tells_mebibytes_and_the_part_that_both_save() -> None:
    sizes = {f"{kind}_bytes": n * 2**20 for kind, n in (("plain", 8), ("nested", 7), ("ordered", 6), ("both", 5))}
    row = {"network": "a", "batch": 2, "train": True, "joined": 3, "joined_bytes": 2**19, "copies": 1}
    head, cells = TABLES["nest"]([row | sizes])
    assert cells == ["a", "2", "yes", "8.00", "7.00", "6.00", "5.00", "37.5%", "3", "0.50", "1"]
    assert len(head) == len(cells)
