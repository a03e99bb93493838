import json
from pathlib import Path

import pytest

from tools.bench_order import main


@pytest.mark.slow
def test_bench_order_measures_every_kind_of_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["zoo:random_wired?image=32&nodes=6", "late:resnet18?image=64", "light:shufflenet"]
    assert main([*names, "--markdown", "-o", str(tmp_path / "order.json")]) == 0
    rows = json.loads((tmp_path / "order.json").read_text())["rows"]
    assert [row["network"] for row in rows] == names
    for row in rows:
        assert row["bound"] <= row["memory_live"] <= row["given_live"]
        assert row["memory_arena"] <= row["given_arena"]
        assert row["is_proved"] == (row["memory_live"] == row["bound"])
    assert rows[1]["memory_arena"] < rows[1]["given_arena"]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(names) and all(line.count("|") == lines[0].count("|") for line in lines)
