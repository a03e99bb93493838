import json
from pathlib import Path

import pytest

from tools.bench_capacity import LEAST, MOST, SHARES, drawn, main
from tools.solver_instances import HEIGHT


def test_bench_capacity_plans_each_instance_with_each_capacity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--instances", "2", "--strategy", "pushdown_sorted", "-q"]
    assert main([*options, "-o", str(tmp_path / "capacity.json")]) == 0
    rows = json.loads((tmp_path / "capacity.json").read_text())["rows"]
    assert [row["capacity"] for row in rows] == [round(share * HEIGHT) for share in SHARES for _ in range(2)]
    assert all(LEAST <= row["buffers"] <= MOST and row["lower_bound"] <= HEIGHT for row in rows)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines[1:]] == [f"{round(share * HEIGHT):,}" for share in SHARES]


def test_the_instances_follow_from_the_seed() -> None:
    assert list(drawn(5, 1)) == list(drawn(5, 1)) != list(drawn(5, 2))
