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
from tools.write_benchmarks import MEASURES, PAGE, PAGES, bench

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


SAMPLES: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "networks": (
        [
            {"network": "net", "buffers": 7, "arena_bytes": 12_345, "strategy": "best", "status": "optimal"}
            | {"solve_s": 0.001, "plan_s": 0.02, "first_s": 0.3}
        ],
        {"network": "net", "buffers": "7", "arena, bytes": "12,345", "strategy": "best", "status": "optimal"}
        | {"solver, ms": "1.0", "whole plan, ms": "20.0", "first plan, ms": "300.0"},
    ),
    "capacity": (
        [
            {"capacity": 1_000_000, "arena_bytes": 999_000, "seconds": 1.0},
            {"capacity": 1_000_000, "arena_bytes": 1_000_000, "seconds": 3.0},
            {"capacity": 1_000_000, "arena_bytes": 1_010_000, "seconds": 2.0},
        ],
        {"capacity": "1,000,000", "instances": "3", "within": "2", "within 2 s": "1"}
        | {"worst, of the capacity": "1.0100", "seconds, mean": "2", "most": "3"},
    ),
    "startup": (
        [{"instance": "A", "strategy": "best", "cold_s": 2.5, "warm_s": 0.25, "processor_s": 0.22}],
        {"instance": "A", "strategy": "best", "first use ever, s": "2.50", "later, s": "0.25"}
        | {"later, processor, s": "0.22"},
    ),
    "originals": (
        [
            {"instance": "A", "strategy": "best_fit", "arena_bytes": 162_296, "breadth": 100_000, "original": 1.6230},
            {"instance": "B", "strategy": "best_fit", "arena_bytes": 147_560, "breadth": 100_000, "original": 1.5127},
        ],
        {"strategy": "best_fit", "A": "1.6230", "B": "1.4756 (1.5127)"},
    ),
    "costs": (
        [
            {"network": "net", "policy": "sequence", "arena_bytes": 4000, "by_count": 1, "by_cost": 1, "status": ""},
            {"network": "net", "policy": "exact", "arena_bytes": 5000, "by_count": 2.5, "by_cost": 1.5}
            | {"status": "optimal"},
        ],
        {"network": "net", "sequence, bytes": "4,000", "exact": "1.250* / 2.50, 1.50"},
    ),
    "planning": (
        [
            {"operators": 1000, "width": 8, "policy": "sequence", "seconds": 0.5, "arena_bytes": 400},
            {"operators": 1000, "width": 8, "policy": "exact", "seconds": 2.5, "arena_bytes": 500},
        ],
        {"operators, width": "1,000, 8", "sequence": "0.5 / 1.00", "exact": "2.5 / 1.25"},
    ),
    "running": (
        [
            {"network": "net", "threads": 2, "equal": True}
            | {"sequence_s": {"min": 0.010, "median": 0.012}, "at_once_s": {"min": 0.008, "median": 0.006}}
        ],
        {"network": "net", "threads": "2", "in sequence, ms": "10.00 / 12.00", "at once, ms": "8.00 / 6.00"}
        | {"speed-up": "1.25 / 2.00", "outputs": "equal to the bit"},
    ),
    "order": (
        [
            {"network": "zoo:net", "operators": 9, "is_proved": True, "seconds": 0.5}
            | {"given_arena": 8 << 20, "depth_first_arena": 7 << 20, "memory_arena": 6 << 20}
            | {"given_live": 5 << 20, "memory_live": 4 << 20, "bound": 3 << 20}
        ],
        {"network": "net", "operators": "9", "arena, as given": "8.00", "depth first": "7.00", "memory order": "4.00"}
        | {"saved": "25.0%", "alive, as given": "5.00", "any order": "3.00*", "search, s": "0.5"},
    ),
    "nest": (
        [
            {"network": "net", "batch": 3, "train": True, "joined": 5, "joined_bytes": 1 << 20, "copies": 2}
            | {"plain_bytes": 8 << 20, "nested_bytes": 7 << 20, "ordered_bytes": 5 << 20, "both_bytes": 6 << 20}
        ],
        {"network": "net", "batch": "3", "training": "yes", "neither": "8.00", "nested": "7.00"}
        | {"memory order": "5.00", "both": "6.00", "saved": "25.0%", "computed in place": "5", "MiB of them": "1.00"}
        | {"copies left": "2"},
    ),
    "cascades": (
        [
            {"network": "net", "percent": 10, "plain_bytes": 4_000_000, "arena_bytes": 1_000_000, "share": 0.055}
            | {"cascades": 2, "calls": 3.25, "plan_seconds": 1.5, "plain_run_ms": 20.0, "run_ms": 18.5}
        ],
        {"network": "net", "at most": "10 %", "arena of whole images, MB": "4.00", "arena, MB": "1.00", "saved": "75%"}
        | {"more operations": "5.5%", "calls": "x 3.2", "whole images, ms": "20.0", "cascades, ms": "18.5"},
    ),
    "columns": (
        [
            {"height": 64, "width": 4096, "operators": 12, "plain_bytes": 8_000_000, "rows_bytes": 4_000_000}
            | {"arena_bytes": 1_500_000, "least_bytes": 1_000_000, "share": 0.055}
            | {"plain_run_ms": 20.0, "rows_run_ms": 22.0, "run_ms": 21.5}
        ],
        {"image": "64 x 4096", "operators": "12", "arena of whole images, MB": "8.00", "in rows alone, MB": "4.00"}
        | {"in columns, too, MB": "1.50", "least of all, MB": "1.00", "more operations": "5.5%"}
        | {"whole images, ms": "20.0", "rows alone, ms": "22.0", "columns, too, ms": "21.5"},
    ),
    "streams": (
        [
            {"size": 2000, "height": 13, "stripes": 154, "kinds": 3, "arena_bytes": 4 << 20, "whole_bytes": 400 << 20}
            | {"again": 0.168, "imported_bytes": 25 << 20, "most_bytes": 41 << 20, "seconds": 11.4}
        ],
        {"pixels": "2000 x 2000", "stripes": "154", "rows of a stripe": "13", "arena, MiB": "4.0", "s": "11"}
        | {"arena of the whole image, MiB": "400.0", "more operations": "16.8%", "anonymous memory, MiB": "41.0"}
        | {"beyond the interpreter, MiB": "16.0"},
    ),
    "moves": (
        [
            {"network": "net", "part": 0.25, "without": 0.004, "copies": 0.003, "moved": 0.002, "engine": 0.001}
            | {"copy_seconds": 0.001, "waiting_seconds": 0.0005}
        ],
        {"network": "net", "fast memory": "25%", "without, ms": "4", "copies, ms": "3", "copies / without": "0.750"}
        | {"or again, ms": "2", "or again / without": "0.500", "beside, ms": "1", "beside / without": "0.250"}
        | {"copies take, ms": "1", "calls wait, ms": "0.5"},
    ),
    "tiers": (
        [
            {"what": "train", "network": "net", "batch": 8, "way": "disk", "ram_bytes": 4 << 20, "grown_bytes": 5 << 20}
            | {"disk_bytes": 3 << 20, "step_s": 2.5, "processor_s": 1.5}
        ],
        {"network": "net, training, batch 8", "way": "disk", "in RAM, planned": "4.0 MiB", "measured": "5.0 MiB"}
        | {"off by": "+25.0%", "on the disk": "3.0 MiB", "seconds": "2.5", "of processor": "1.5", "result": ""},
    ),
    "runs": (
        [
            {"network": "net", "backend": "numba", "threads": 2, "arena_bytes": 3_000_000, "ratio_median": 1.5}
            | {"arenaplan_seconds": {"median": 0.006, "min": 0.005}, "onnxruntime_planned_bytes": 4_000_000}
            | {"onnxruntime_seconds": {"median": 0.004, "min": 0.002}, "onnxruntime_besides_bytes": 1_000_000}
            | {"ratio_min": 2.5, "largest_difference": 3e-7}
        ],
        {"network": "net", "back-end": "numba", "threads": "2", "arenaplan, ms": "6.00 (5.00)"}
        | {"onnxruntime, ms": "4.00 (2.00)", "ratio": "1.50", "ratio of the least": "2.50", "arena, MB": "3.00"}
        | {"onnxruntime's, MB": "4.00 + 1.00", "outputs differ by": "3e-07"},
    ),
    "processes": (
        [
            {"network": "net", "arenaplan_peak_bytes": 60_000_000, "onnxruntime_peak_bytes": 80_000_000}
            | {"arenaplan_seconds": 0.75, "onnxruntime_seconds": 0.5}
        ],
        {"network": "net", "arenaplan, MB": "60", "onnxruntime, MB": "80", "ratio": "0.75"}
        | {"first output after, s": "0.75", "onnxruntime's, s": "0.50"},
    ),
    "loading": (
        [
            {"network": "net", "weights_in": "the file", "engine": "numba", "weights_bytes": 40_000_000}
            | {"before_bytes": 100_000_000, "loading_bytes": 150_000_000, "whole_bytes": 170_000_000}
            | {"loading_seconds": 1.5, "output_seconds": 2.5}
        ],
        {"network": "net", "weights in": "the file", "engine": "numba", "weights, MB": "40", "before, MB": "100"}
        | {"peak while loading, MB": "150", "above before / weights": "1.25", "peak of the whole run, MB": "170"}
        | {"loaded, s": "1.50", "first output after, s": "2.50"},
    ),
    "first_use": (
        [
            {"network": "net", "code": "carried", "wheel_bytes": 12_340_000}
            | {"first_seconds": 1.5, "tenth_seconds": 0.5}
        ],
        {"network": "net", "machine code": "carried", "wheel, MB": "12.3", "first use ever, s": "1.50"}
        | {"tenth, s": "0.50"},
    ),
    "lengths": (
        [
            {"network": "net", "engine": "arenaplan", "operators": 9, "first": 3.5, "again": 1.25, "new": 2.25}
            | {"kept_bytes": 65_432}
        ],
        {"network": "net", "engine": "arenaplan", "operators": "9", "first run, ms": "3.50", "again, ms": "1.25"}
        | {"new, ms": "2.25", "kept, kB": "65.4"},
    ),
    "decoding": (
        [
            {
                "network": "decoder",
                "engine": "arenaplan",
                "operators": 9,
                "token": 3.5,
                "token_again": 1.25,
                "slowest": 8.0,
            }
        ],
        {"engine": "arenaplan", "operators": "9", "a token, ms": "3.50", "decoded again, ms": "1.25"}
        | {"slowest, ms": "8.00"},
    ),
    "threads": (
        [
            {"network": "net", "calls": 9, "threads": 2, "alone_s": 0.012, "together_s": 0.007, "lost_s": 0.001}
            | {"barriers_s": 0.0005, "estimates_s": {"4": 0.004, "8": 0.002}}
        ],
        {"network": "net", "calls": "9", "threads": "2", "1 thread, ms": "12.00", "together, ms": "7.00"}
        | {"lost, ms": "1.00", "of it barriers, ms": "0.50"}
        | {"times as fast on 4 (model)": "3.0", "times as fast on 8 (model)": "6.0"},
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_benchmark_table_has_each_number_in_its_column(name: str) -> None:
    rows, wanted = SAMPLES[name]
    head, line = TABLES[name](rows)
    assert len(head) == len(line)
    assert dict(zip(head, line, strict=True)) == wanted


def test_every_benchmark_table_is_checked_by_its_columns() -> None:
    assert set(TABLES) == set(SAMPLES) | {"strategies", "proofs", "speed", "kinds", "memories", "boards", "zoo"} | {
        "runs_avx2"
    }
    assert TABLES["runs_avx2"] is TABLES["runs"]


def test_the_table_of_kinds_counts_what_is_proved_and_what_is_near() -> None:
    row = {"kind": "one", "lower_bound": 1000, "seconds": 1.0}
    rows = [
        row | {"arena_bytes": 1000, "status": "optimal"},
        row | {"arena_bytes": 1005, "status": "feasible"},
        row | {"arena_bytes": 1020, "status": "feasible", "kind": "other", "seconds": 4.0},
    ]
    assert list(TABLES["kinds"](rows))[1:] == [
        ["one", "2", "1", "1", "0.50%", "1", "1"],
        ["other", "1", "0", "0", "2.00%", "4", "4"],
        ["all", "3", "1", "1", "2.00%", "2", "4"],
    ]


def test_the_table_of_boards_has_means_where_not_all_fits_the_fastest_memory() -> None:
    row = {"network": "net", "board": "b", "status": "optimal", "fits_fastest": True, "reason": "", "gap": 0.0}
    row |= {"cost": 0.001, "bound": 0.001, "first_come": 0.001, "density": 0.001}
    scarce = {"fits_fastest": False, "status": "feasible", "gap": 0.04}
    rows = [
        row,
        row | scarce | {"first_come": 0.002},
        row | scarce | {"first_come": 0.008, "gap": 0.0, "density": 0.0},
        row | {"status": "infeasible", "fits_fastest": False, "reason": "too much", "cost": 0.0},
    ]
    assert list(TABLES["boards"](rows))[1:] == [
        ["net", "b", "all in the fastest, proved", "1", "1", "0.0%", "1.000", "1.000"],
        ["net", "b", "found", "1", "1", "4.0%", "0.500", "1.000"],
        ["net", "b", "found", "1", "1", "0.0%", "0.125", "no plan"],
        ["net", "b", "proved impossible", "-", "-", "-", "-", "-"],
        ["means where not all fits the fastest", "", "", "", "", "2.0%, at most 4.0%", "0.250", "1.000"],
    ]


def test_the_table_of_memories_has_geometric_means_and_gaps() -> None:
    row = {"kind": "one", "first_come": 4.0, "density": 1.0, "gap": 0.0, "seconds": 1.0, "status": "optimal"}
    rows = [row | {"cost": 1.0}, row | {"cost": 4.0, "gap": 0.1, "seconds": 3.0, "status": "feasible"}]
    assert list(TABLES["memories"](rows))[1:] == [
        [kind, "2", "1", "0.500", "2.000", "5.0%", "10.0%", "2"] for kind in ("one", "all")
    ]


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
    assert set(MEASURES) == set(TABLES)
    for section in TABLES:
        page = (ROOT / PAGES.get(section, PAGE)).read_text()
        assert replaced(page, section, "new") != page


@pytest.mark.slow
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
