"""tools/bench_map.py: weights count once, whatever the number of workers."""

import json
from pathlib import Path

import pytest

from tests.helpers.cli.cli_checks import Capture
from tools import bench_map


@pytest.mark.slow
def test_weights_count_once_for_all_workers(tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "rows.json"
    assert (
        bench_map.main(["--network", "resnet18", "--workers", "1", "3", "--parts", "1", "2", "-q", "-o", str(output)])
        == 0
    )
    shown = json.loads(output.read_text())
    one, three = shown["rows"]
    packed = shown["prepacked_bytes"]
    assert packed > 2**25
    assert packed <= one["Pss_Shmem"] + 2**20 and three["Pss_Shmem"] < one["Pss_Shmem"] + packed / 4
    assert three["Rss"] > 2.9 * one["Rss"] and three["Pss"] < one["Pss"] + 2 * (one["Pss_Anon"] + 2**24)
    weights, (_, parts) = shown["products_bytes"], shown["parts"]
    assert parts["Pss_Anon"] - 2 * one["Pss_Anon"] < weights / 2 and parts["Pss"] > weights
    assert "one worker more takes" in capsys.readouterr().out
