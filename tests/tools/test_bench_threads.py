"""The benchmark of threads: each compiled call alone and together, and the model of more threads."""

import json
from pathlib import Path

import pytest

from tests.helpers.onnx.saved_models import save_perceptron
from tools import bench_threads


@pytest.mark.parametrize("threads", [2, 4, 16])
def test_the_model_of_threads_adds_a_barrier_for_each_further_thread(threads: int) -> None:
    calls = [bench_threads.TimedCall("one", alone=1e-3, together=6e-4), bench_threads.TimedCall("two", 3e-3, 2e-3)]
    expected = 4e-3 / threads + 2 * (threads - 1) * 1e-6
    assert bench_threads.estimate(calls, 1e-6, threads) == pytest.approx(expected)
    assert calls[0].lost(2) == pytest.approx(1e-4)


def test_the_benchmark_of_threads_writes_what_it_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, output = tmp_path / "perceptron.onnx", tmp_path / "rows.json"
    save_perceptron(model)
    monkeypatch.setattr(bench_threads, "network_file", lambda _: model)
    assert bench_threads.main(["--networks", "squeezenet", "--worst", "1", "-q", "-o", str(output)]) == 0
    (row,) = json.loads(output.read_text())["rows"]
    assert row["calls"] >= 1 and len(row["worst"]) == 1 and set(row["estimates_s"]) == {"4", "8", "16"}
    assert row["lost_s"] == pytest.approx(row["together_s"] - row["alone_s"] / 2)
    shown = capsys.readouterr().out
    assert f"| perceptron | {row['calls']} |" in shown and row["worst"][0]["call"] in shown
