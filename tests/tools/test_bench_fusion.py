"""The benchmark of folding and fusion: counts, outputs that agree, a table, JSON; never a time."""

import json
from pathlib import Path

import pytest

from tools import bench_fusion


def test_bench_fusion_tells_counts_bytes_and_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "fusion.json"
    options = ["--networks", "resnet18", "--image", "32", "--runs", "1", "-o", str(output)]
    assert bench_fusion.main(options) == 0
    (row,) = json.loads(output.read_text())["rows"]
    assert (row["normalizations"], row["normalizations_folded"], row["glow"]) == (20, 20, "-9 %")
    assert row["built"]["operators"] == 69 and row["folded"]["operators"] == 49 > row["fused"]["operators"]
    assert row["fused"]["arena_bytes"] <= row["built"]["arena_bytes"]
    assert row["difference"] < 1e-5
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in shown[1:4]] == [["resnet18", key] for key in ("built", "folded", "fused")]
    assert shown[4].startswith("resnet18: 20 of 20 normalizations folded")
