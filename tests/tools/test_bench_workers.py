"""tools/bench_workers.py: what it measures, and tells of it."""

import json
from pathlib import Path

import pytest

from tests.helpers.cli.cli_checks import Capture
from tools import bench_workers
from tools.bench_workers import measured_table

COSTS = {"sender": 0.01, "worker": 0.001, "latency": 0.0, "bandwidth": 1e8}


def _row(times: float) -> dict[str, object]:
    row = {"place": "dask", "start_seconds": 2.0, "costs": COSTS, "times_2": times, "range_2": [times, times]}
    seconds = {f"{name}_{n}": 0.1 for name in ("task", "processor", "off") for n in (1, 2)}
    return {**row, **seconds, "free_2": 1.9}


@pytest.mark.parametrize(("times", "says"), [(1.5, "1.50 times the work of one, less than"), (1.9, "at least the aim")])
def test_the_table_says_whether_two_workers_do_what_they_should(times: float, says: str) -> None:
    data = {"tasks": 4, "turns": 1, "processors": 2, "load": 3.25, "rows": [_row(times)]}
    shown = measured_table(data)
    assert says in shown and "a load of 3.2 by other work" in shown


@pytest.mark.slow
def test_places_are_measured_and_written(tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "rows.json"
    assert bench_workers.main(["--places", "processes", "--tasks", "8", "--turns", "1", "-q", "-o", str(output)]) == 0
    data = json.loads(output.read_text())
    (row,) = data["rows"]
    costs = row["costs"]
    assert row["place"] == "processes" and row["start_seconds"] > costs["sender"] > 0 and costs["worker"] > 0
    assert row["processor_1"] > 0 and row["times_2"] > 0 and row["free_2"] > 0
    assert len(data["simulated"]) == 8 and "processes" in capsys.readouterr().out
