import json
from itertools import pairwise
from pathlib import Path

import pytest

from tools import bench_moves
from tools.bench_memories import BOARDS
from tools.bench_moves import drawn_table, main, measure_drawn
from tools.solver_instances import KINDS


def test_bench_moves_tells_what_copies_are_worth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows_file = tmp_path / "rows.json"
    networks = ["--networks", "squeezenet", "--parts", "0.5", "--nodes", "100"]
    assert main([*networks, "-q", "-o", str(rows_file)]) == 0
    (row,) = json.loads(rows_file.read_text())["rows"]
    assert row["engine"] <= row["moved"] <= row["copies"] and row["waiting_seconds"] <= row["copy_seconds"]
    assert row["copies"] <= row["without"] and (row["moves"] > 0) == (row["moved_bytes"] > 0)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["network", "squeezenet"]


def test_more_rounds_never_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_moves, "ROUNDS", (0, 5, 20))
    rows = measure_drawn(next(iter(KINDS)), 24, 0, next(iter(BOARDS)), 50)
    assert all(more <= fewer * (1 + 1e-9) for fewer, more in pairwise([1.0, *(row.cost for row in rows)]))
    assert [int(line[0]) for line in drawn_table(rows)[1:]] == [0, 5, 20]


def test_a_part_that_is_none_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    for parts in ("x", "2"):
        with pytest.raises(SystemExit) as stop:
            main(["--parts", parts])
        assert stop.value.code == 2 and "--parts" in capsys.readouterr().err
