"""The table of a sweep: which rows are best, by brute force, what options change, by hand, and how it is written."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sweeps.chart import sweep_chart
from engine.sweeps.rows import Row
from engine.sweeps.table import Table
from engine.text.errors import EngineError

COLUMNS = ("task", "model", "batch", "order", "status", "arena_bytes", "lower_bound", "plan_seconds", "error")


def row(*values: Any, error: str = "") -> Row:
    task, model, batch, order, arena, seconds = values
    status = "error" if error else "ok"
    cells = (task, model, batch, order, status, arena, arena, seconds, error or None)
    return dict(zip(COLUMNS, cells, strict=True))


def table(*rows: Row) -> Table:
    return Table(COLUMNS, ("batch", "order"), rows)


FOUR = (
    row("a", "m", 1, "given", 200, 0.1),
    row("b", "m", 1, "memory", 100, 0.2),
    row("c", "m", 2, "given", 400, 0.1),
    row("d", "m", 2, "memory", 400, 0.3),
)


@given(st.lists(st.tuples(st.sampled_from("mn"), st.integers(1, 2), st.integers(1, 5), st.integers(1, 5)), max_size=20))
def test_the_best_rows_are_those_that_no_other_beats(values: list[tuple[str, int, int, int]]) -> None:
    rows = [row(str(i), m, b, "given", arena, float(time)) for i, (m, b, arena, time) in enumerate(values)]

    def key(one: Row) -> tuple[int, float]:
        return one["arena_bytes"], one["plan_seconds"]

    def beaten(one: Row) -> bool:
        alike = [o for o in rows if (o["model"], o["batch"]) == (one["model"], one["batch"])]
        return any(key(o) != key(one) and all(a <= b for a, b in zip(key(o), key(one), strict=True)) for o in alike)

    best = {(r["model"], r["batch"], *key(r)) for r in table(*rows).pareto}
    assert best == {(r["model"], r["batch"], *key(r)) for r in rows if not beaten(r)}
    assert len(table(*rows).pareto) == len(best)


def test_effects_of_options_are_as_by_hand() -> None:
    effects = {(e.name, e.value): (round(e.times_least, 6), e.least_in, e.groups) for e in table(*FOUR).effects}
    assert effects == {
        ("batch", 1): (1.0, 2, 2),
        ("batch", 2): (round(8**0.5, 6), 0, 2),
        ("order", "given"): (round(2**0.5, 6), 1, 2),
        ("order", "memory"): (1.0, 2, 2),
    }


def test_the_text_marks_the_best_rows_and_has_errors_below() -> None:
    shown = table(*FOUR, row("e", "n", 1, "given", 0, 0, error="no such model")).text().splitlines()
    assert shown[0].split() == ["model", "batch", "order", "arena", "plan"]
    assert [line[0] == "*" for line in shown[1:5]] == [True, True, True, False]
    assert shown[1].split() == ["*", "m", "1", "given", "200", "B", "100.0", "ms"]
    assert shown[-1] == "n batch=1 order=given: no such model"


def test_the_summary_counts_errors_and_shows_no_more_rows_than_wanted() -> None:
    lines = table(*FOUR, row("e", "n", 1, "given", 0, 0, error="no such model")).summary(2).splitlines()
    assert lines[-2:] == ["  ... and 1 more", "1 row of 5 with an error"]
    assert table(FOUR[0]).summary() == ""


def test_a_table_without_a_good_row_tells_the_errors_alone() -> None:
    bad = table(row("e", "n", 1, "given", 0, 0, error="no such model"))
    assert bad.text() == "n batch=1 order=given: no such model\n"
    assert bad.written(".tex").splitlines()[0] == r"\begin{tabular}{lll}"
    with pytest.raises(EngineError, match="nothing to draw"):
        sweep_chart(bad)


def test_a_table_is_written_with_numbers_and_for_latex() -> None:
    rows = list(csv.DictReader(io.StringIO(table(*FOUR).written(".csv"))))
    assert [(r["batch"], r["order"], r["arena_bytes"]) for r in rows[:2]] == [
        ("1", "given", "200"),
        ("1", "memory", "100"),
    ]
    tex = table(row("a", "zoo:a_b", 1, "given", 2048, 0.1)).written(".tex").splitlines()
    assert tex == [
        r"\begin{tabular}{lllrr}",
        r"model & batch & order & arena & plan \\",
        r"\hline",
        r"zoo:a\_b & 1 & given & 2.00 KiB & 100.0 ms \\",
        r"\end{tabular}",
    ]


def test_a_chart_has_a_bar_and_a_point_for_each_row_and_a_line_for_each_front() -> None:
    pytest.importorskip("matplotlib")
    bars, points = sweep_chart(table(*FOUR, row("z", "n", 1, "given", 50, 0.5))).axes
    assert sorted(bar.get_width() * 2**20 for bar in bars.patches) == [50, 100, 200, 400, 400]
    assert bars.get_yticklabels()[0].get_text() == "m batch=1 order=given"
    assert len(points.collections) == 5 and len(points.lines) == 3
    assert [text.get_text() for text in points.get_legend().get_texts()] == ["m", "n"]
