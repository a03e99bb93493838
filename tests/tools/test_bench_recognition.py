"""The benchmark of recognised formulas: counts, outputs that agree, a table, JSON; never a time."""

import json
from pathlib import Path

import pytest

from tools import bench_recognition


def test_bench_recognition_tells_counts_bytes_and_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "recognition.json"
    assert bench_recognition.main(["--rows", "2", "--columns", "5", "--runs", "1", "-o", str(output)]) == 0
    rows = json.loads(output.read_text())["rows"]
    assert [row["formula"] for row in rows] == list(bench_recognition.FORMULAS)
    assert all(row["recognised"]["operators"] == 1 < row["pieces"]["operators"] for row in rows)
    assert all(row["difference"] < 1e-5 for row in rows)
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1
