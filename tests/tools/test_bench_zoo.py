import json
from pathlib import Path

import pytest

from tools.bench_zoo import main
from tools.benchmark_tables import zoo_table


def test_bench_zoo_plans_networks_forward_and_in_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "zoo.json"
    assert main(["lstm_classifier", "squeezenet", "--batch", "1", "-q", "-o", str(file)]) == 0
    rows = json.loads(file.read_text())["rows"]
    assert [(row["network"], row["mode"], row["batch"]) for row in rows] == [
        ("lstm_classifier", "forward", 1),
        ("squeezenet", "forward", 1),
        ("squeezenet", "training", 1),
    ]
    assert all(row["status"] == "optimal" and row["arena_bytes"] == row["lower_bound"] for row in rows)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["network", "lstm_classifier", "squeezenet", "all"]


def test_the_table_of_the_zoo_tells_the_worst_of_each_network_and_of_all() -> None:
    row = {
        "network": "one",
        "arena_bytes": 1000,
        "lower_bound": 1000,
        "status": "optimal",
        "buffers": 7,
        "seconds": 0.01,
    }
    rows = [
        row,
        row | {"lower_bound": 944, "status": "feasible", "seconds": 0.2},
        row | {"network": "two", "buffers": 2_000},
    ]
    assert list(zoo_table(rows))[1:] == [
        ["one", "2", "7", "1", "56", "200.0"],
        ["two", "1", "2,000", "1", "0", "10.0"],
        ["all", "3", "2,000", "2", "56", "200.0"],
    ]
