"""The tables of docs/benchmarks.md: made from rows, written between marks, and all of them have a place on the page."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.cli.cli_checks import BUFFERS
from tests.helpers.paths import ROOT
from tools import write_benchmarks
from tools.benchmark_tables import TABLES, markdown, replaced, seconds
from tools.write_benchmarks import MEASURES, PAGE, bench

FIT = {"arena_bytes": 30, "breadth": 24, "lower_bound": 30, "seconds": 0.0123, "status": "optimal"}


def test_a_table_of_strategies_has_a_column_an_instance() -> None:
    rows: list[dict[str, Any]] = [
        FIT | {"instance": "A", "strategy": "best"},
        FIT | {"instance": "A", "strategy": "naive", "arena_bytes": 36, "status": "feasible"},
        {"instance": "B", "strategy": "best", "note": "none in 120 s"},
        {"instance": "B", "strategy": "naive", "note": "strategy 'naive' cannot take pinned offsets; others can"},
    ]
    assert markdown(TABLES["strategies"](rows)).splitlines() == [
        "| strategy | A | B |",
        "|---|---|---|",
        "| best | 1.2500* / 0.012 | none in 120 s |",
        "| naive | 1.5000 / 0.012 | - |",
    ]


def test_proofs_tell_bound_and_gap() -> None:
    (_, row) = TABLES["proofs"]([FIT | {"instance": "D", "arena_bytes": 33, "status": "feasible"}])
    assert list(row) == ["D", "24", "30", "33", "10.00%", "0.012", "feasible"]


def test_work_that_was_not_done_in_time_has_no_numbers() -> None:
    (_, done, late) = TABLES["speed"](
        [FIT | {"work": "one", "target": "3"}, {"work": "two", "target": "4", "note": "none in 120 s"}]
    )
    assert list(done) == ["one", "3", "0.012", "1.2500", "optimal"]
    assert list(late) == ["two", "4", "none in 120 s", "-", "-"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.0000123, "0.00001"), (0.00123, "0.0012"), (1.26, "1.3"), (26.7, "27"), (119.6, "120")]
)
def test_seconds_have_no_exponent(value: float, text: str) -> None:
    assert seconds(value) == text


def test_benchmark_tables_replace_only_text_between_their_marks() -> None:
    page = "a\n<!-- speed -->\nold\n<!-- end of speed -->\nb\n"
    assert replaced(page, "speed", "new") == page.replace("old", "new")
    with pytest.raises(SystemExit, match="no section 'proofs'"):
        replaced(page, "proofs", "new")


def test_every_section_has_a_measure_a_table_and_a_place() -> None:
    page = (ROOT / PAGE).read_text()
    assert set(MEASURES) == set(TABLES)
    for section in TABLES:
        assert replaced(page, section, "new") != page


def test_measurements_are_processes_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.csv"
    file.write_text(BUFFERS)
    monkeypatch.chdir(ROOT)
    (row,) = bench(str(file), "--strategy", "naive")
    assert (row["arena_bytes"], row["breadth"], row["lower_bound"]) == (40, 30, 30)
    file.write_text("no table")
    (row,) = bench(str(file), "--strategy", "naive")
    assert row["note"].startswith("failed: ")
    monkeypatch.setattr(write_benchmarks, "MOST_SECONDS", 0)
    assert "note" in bench(str(file), "--strategy", "naive")[0]


def test_sections_that_are_not_measured_again_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- proofs -->\n-\n<!-- end of proofs -->\n<!-- speed -->\n-\n<!-- end of speed -->\n")
    monkeypatch.setattr(write_benchmarks, "KEPT", tmp_path / "out" / "kept.json")
    measures = {
        "proofs": lambda _: [FIT | {"instance": "D"}],
        "speed": lambda _: [FIT | {"work": "one", "target": "3"}],
    }
    monkeypatch.setattr(write_benchmarks, "MEASURES", measures)
    for section in measures:
        assert write_benchmarks.main([str(tmp_path), "--only", section, "-o", str(page)]) == 0
    text = page.read_text()
    assert "| D | 24 | 30 | 30 | 0.00% | 0.012 | optimal |" in text and "| one | 3 |" in text
    assert f"Python {sys.version_info.major}." in text
    assert set(json.loads((tmp_path / "out" / "kept.json").read_text())) == {"proofs", "speed"}
