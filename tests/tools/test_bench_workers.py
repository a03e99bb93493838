"""tools/bench_workers.py: what it measures, and the model of many workers."""

import json
from pathlib import Path

import pytest

from tests.helpers.cli.cli_checks import Capture
from tools import bench_workers
from tools.bench_workers import throughput


def test_throughput_grows_with_workers_until_one_sender_is_full() -> None:
    assert [throughput(n, task=1.0, message=0.01) for n in (1, 2, 50, 100, 1000)] == [1, 2, 50, 100, 100]
    assert throughput(8, task=0.001, message=0.01) == 1


@pytest.mark.slow
def test_places_are_measured_and_written(tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "rows.json"
    assert bench_workers.main(["--places", "processes", "--tasks", "8", "--turns", "1", "-q", "-o", str(output)]) == 0
    (row,) = json.loads(output.read_text())["rows"]
    assert row["place"] == "processes" and 0 < row["busy_2"] <= 1
    assert row["start_seconds"] > row["message_seconds"] > 0 and row["model_2"] == 2
    assert "processes" in capsys.readouterr().out
