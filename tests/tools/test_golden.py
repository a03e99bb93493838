"""Proof that a refactoring changes nothing: the tool reports what is equal, and what is not."""

import json
from pathlib import Path

import pytest

from tools import golden

Capture = pytest.CaptureFixture[str]
NAME = "zoo:lstm_classifier level 2 numpy"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the file of a small network, by the command in processes of their own."""
    path = tmp_path_factory.mktemp("golden") / "old.json"
    options = ["--networks", "zoo:lstm_classifier", "--levels", "2", "--backends", "numpy", "--imports", "1", "-q"]
    assert golden.main([*options, "-o", str(path)]) == 0
    return path


def changed(path: Path, section: str, what: str, value: object) -> Path:
    """Returns the same file with another value in the only entry of a section."""
    printed = json.loads(path.read_text())
    printed[section][NAME][what] = value
    other = path.with_name("new.json")
    other.write_text(json.dumps(printed))
    return other


def compare(old: Path, new: Path, *options: str) -> int:
    return golden.main(["--compare", str(old), str(new), *options])


def test_plans_and_outputs_of_all_modes_are_written(written: Path) -> None:
    printed = json.loads(written.read_text())
    plan, run = printed["plans"][NAME], printed["runs"][NAME]
    assert plan["arena"] >= plan["lower bound"] > 0 and plan["report"].startswith("lstm_classifier: ")
    assert sum(plan["kernels"].values()) > 0
    assert list(run) == ["dynamic y", "poison y", "static y"] and len(set(run.values())) == 1
    assert 0 < printed["import_engine"]["modules"] < 100 < printed["import_engine"]["modules_to_compile"]


def test_a_file_is_equal_to_itself_and_times_do_not_count(written: Path, capsys: Capture) -> None:
    printed = json.loads(written.read_text())
    printed["import_engine"]["seconds"] += 1
    other = written.with_name("later.json")
    other.write_text(json.dumps(printed | {"bench": {"resnet50 numba 1": 1.5}}))
    assert compare(written, other) == 0
    assert "equal: 1 plan, 1 run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("section", "what", "value"),
    [("plans", "arena", 7), ("plans", "kernels", {"numpy/other": 3}), ("runs", "more", "0")],
)
def test_what_differs_is_told(written: Path, capsys: Capture, section: str, what: str, value: object) -> None:
    assert compare(written, changed(written, section, what, value)) == 1
    shown = capsys.readouterr().out
    assert [what, *NAME.split()] in [line.split()[:5] for line in shown.splitlines()] and "1 difference\n" in shown


def test_reports_are_compared_line_by_line(written: Path, capsys: Capture) -> None:
    report = json.loads(written.read_text())["plans"][NAME]["report"]
    other = changed(written, "plans", "report", report + "more\n")
    assert compare(written, other, "--reports") == 1
    shown = capsys.readouterr().out
    assert "0 lines  1 lines" in shown and "\n+more\n" in shown


def test_an_entry_that_is_missing_is_told(written: Path, capsys: Capture) -> None:
    printed = json.loads(written.read_text())
    printed["runs"] = {}
    other = written.with_name("less.json")
    other.write_text(json.dumps(printed))
    assert compare(written, other) == compare(other, written) == 1
    assert "is missing" in capsys.readouterr().out


def test_networks_are_those_of_the_zoo_trained_ones_and_light_models() -> None:
    names = golden.networks()
    assert {"zoo:gpt2", "zoo:resnet18?optimiser=momentum", "light:resnet50"} <= set(names)
    assert "zoo:gpt2?optimiser=momentum" not in names and len(set(names)) == len(names)


def test_ratios_of_the_benchmark_are_copied() -> None:
    rows = [{"network": "vgg19", "backend": "numba", "threads": 2, "ratio_median": 0.9, "runs": 24}]
    assert golden.bench_ratios(rows) == {"vgg19 numba 2": 0.9}
