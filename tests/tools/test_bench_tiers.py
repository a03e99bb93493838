"""The table of memories on a disk: each way is a task of a process, and its results are compared with the first."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.onnx.saved_models import save_perceptron
from tools import bench_tiers
from tools.bench_tiers import DISK, RECOMPUTE, WHOLE, main

MIB = 2**20


def _report(task: dict[str, Any]) -> dict[str, Any]:
    """Returns what a process would say: half of 100 MiB lies on the disk, or weights of 90 MiB do."""
    if task["what"] == "prepare":
        return {"calls": 1}
    is_on_disk = task["way"] == DISK
    if task["what"] == "infer" and task["room"] < 90 * MIB and not is_on_disk:
        return {"weights_bytes": 90 * MIB, "room": task["room"], "failed": "not enough memory"}
    ram = 50 * MIB if task["way"] != WHOLE else 100 * MIB
    sizes = {"ram_bytes": ram, "grown_bytes": ram + MIB, "disk_bytes": 50 * MIB * is_on_disk, "step_s": 2.5}
    sizes["processor_s"] = 5.0
    if task["what"] == "train":
        return sizes | {"losses": ["0x1p+0"], "again": int(task["way"] == RECOMPUTE), "share": 0.06}
    return sizes | {"weights_bytes": 90 * MIB, "room": task["room"], "failed": "", "digest": "same"}


def _rows(arguments: Sequence[str], folder: Path, code: int) -> list[dict[str, Any]]:
    output = folder / "rows.json"
    assert main([*arguments, "-q", "-o", str(output)]) == code
    rows: list[dict[str, Any]] = json.loads(output.read_text())["rows"]
    return rows


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench_tiers, "network_file", lambda name: tmp_path / f"{name}.onnx")


def test_every_way_has_half_of_the_ram_and_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_tiers, "measured", _report)
    rows = _rows([], tmp_path, 0)
    assert [(row["what"], row["way"]) for row in rows] == [
        *(("train", way) for way in (WHOLE, DISK, RECOMPUTE)),
        *(("infer", way) for way in (WHOLE, WHOLE, DISK)),
    ]
    assert [row["ram"] for row in rows[:3]] == [0, 50 * MIB, 50 * MIB]
    assert [row["room"] for row in rows[4:]] == [30 * MIB, 30 * MIB]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert lines[3] == [
        *(
            "resnet50, training, batch 8",
            "disk",
            "50.0 MiB",
            "51.0 MiB",
            "+2.0%",
            "50.0 MiB",
            "2.5",
            "5",
            "the same bits",
        )
    ]
    assert lines[4][1] == "recompute: 6.0% more operations"
    assert lines[6][1:] == ["all in RAM, room for 30.0 MiB", *["-"] * 6, "does not run"]


def test_other_losses_are_said_and_end_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def differs(task: dict[str, Any]) -> dict[str, Any]:
        report = _report(task)
        return report | {"losses": ["0x1p+1"]} if task["what"] == "train" and task["way"] == DISK else report

    monkeypatch.setattr(bench_tiers, "measured", differs)
    assert [row["same"] for row in _rows([], tmp_path, 1)] == [True, False, *[True] * 4]
    assert "DIFFERENT" in capsys.readouterr().out


@pytest.mark.slow
def test_a_process_runs_a_model_with_weights_in_files(tmp_path: Path) -> None:
    model = save_perceptron(tmp_path / "perceptron.onnx")
    task = {"what": "infer", "model": str(model), "way": DISK, "room": 1 << 30, "folder": str(tmp_path)}
    report = bench_tiers.measured(task)
    assert report["failed"] == "" and report["digest"] and report["step_s"] > 0
    assert report["disk_bytes"] == report["weights_bytes"] and not list(tmp_path.glob("tmp*"))
