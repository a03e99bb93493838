"""A table and a map for people in a terminal, at any width, with colour or without, of any names."""

import io
import re

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Trace
from engine.exporters import FORMATS
from engine.exporters.map_cells import IDLE, raster
from engine.text.names import escaped
from engine.text.screen import FILE, Screen, screen_of, shortened, visible_width
from engine.text.units import format_bytes
from engine.trace.rectangles import rectangles_of
from engine.trace.trace import NOTHING, RunInfo
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.traces.saved_traces import traces

SMALL = engine.make_plan(build(seeded(3), 12), optimise=0).trace()
STYLE = re.compile(r"\x1b\[[0-9;]*m")
SCREENS = (FILE, Screen(60), Screen(80, has_colour=True), Screen(120, encoding="ascii"), Screen(200, True))
HOSTILE = ("\x1b[2J\r\n\t", "x" * 10_000, "\u202eabc", "張" * 40, "\ud800", "<script>", '"', "")


def drawn(name: str, trace: Trace, screen: Screen = FILE) -> str:
    out = io.BytesIO()
    FORMATS[name].show(trace, out, screen)
    return out.getvalue().decode(screen.encoding)


@settings(max_examples=25, deadline=None)
@given(traces(), st.sampled_from(["table", "map"]), st.sampled_from(SCREENS))
def test_every_trace_is_drawn_within_the_screen(trace: Trace, name: str, screen: Screen) -> None:
    text = drawn(name, trace, screen)
    if not screen.has_colour:
        assert "\x1b" not in text
    if screen.is_terminal and screen.width >= 80:
        assert max(map(visible_width, STYLE.sub("", text).splitlines())) <= screen.width
    if trace.facts.peak_bytes:
        assert format_bytes(trace.facts.peak_bytes) in text


@pytest.mark.parametrize("name", ["table", "map"])
@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("screen", SCREENS)
def test_names_in_text_traces_move_no_cursor(hostile: str, name: str, screen: Screen) -> None:
    trace = Trace(
        evolve(SMALL.facts, model=hostile, peak_operator=hostile),
        lambda: (evolve(e, tensor=hostile if e.tensor else "", operator=hostile) for e in SMALL),
    )
    text = STYLE.sub("", drawn(name, trace, screen))
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count("\n") == drawn(name, SMALL, screen).count("\n")


@settings(max_examples=20)
@given(traces())
def test_the_table_has_a_line_for_each_change_and_marks_the_peak(trace: Trace) -> None:
    lines = drawn("table", trace).splitlines()
    changes = sum(e.kind not in ("begin", "end", "peak") for e in trace)
    assert len(lines) >= changes
    marked = [line for line in lines if line.endswith(" < peak")]
    assert len(marked) == (trace.facts.peak_bytes > 0)
    assert all(str(trace.facts.peak_bytes) in line.split() for line in marked)


def test_the_table_says_in_words_what_is_shared() -> None:
    graph = Graph("net")
    graph.output(ops.relu(ops.exp(graph.input("x", (4, 4)))), "y")
    text = drawn("table", engine.make_plan(graph, optimise=0).trace())
    assert re.search(r"2 +relu_0 +over exp_0 +relu_0 +0 +64 +64$", text, re.MULTILINE)


def test_columns_of_a_terminal_are_short_and_grouped() -> None:
    trace = Trace(SMALL.facts, lambda: (evolve(e, tensor=e.tensor and f"{e.tensor}_{'long' * 30}") for e in SMALL))
    lines = drawn("table", trace, Screen(80)).splitlines()
    assert any("…" in line for line in lines) and max(map(len, lines)) <= 80
    assert any("..." in line for line in drawn("table", trace, Screen(80, encoding="ascii")).splitlines())
    assert "long" * 30 in drawn("table", trace)


def test_the_first_lines_of_a_table_fit_the_terminal() -> None:
    trace = Trace(evolve(SMALL.facts, arena_bytes=123_456_789, lower_bound=100_000_000), lambda: iter(SMALL))
    assert max(map(len, drawn("table", trace, Screen(80)).splitlines())) <= 80
    assert "117.74 MiB (123,456,789 bytes), and no plan needs less than 95.37 MiB" in drawn("table", trace)


@settings(max_examples=20)
@given(traces(), st.integers(1, 90), st.integers(1, 30))
def test_a_map_cell_shows_the_tensor_at_its_middle_when_most_is_alive(trace: Trace, columns: int, rows: int) -> None:
    of = rectangles_of(trace)
    grid = raster(of, columns, rows)
    assert grid.cells.shape == (rows, columns)
    most = int(grid.live.max())
    over = np.flatnonzero(of.overwrites != NOTHING)
    shrinks = bool((of.size[over] < of.size[of.overwrites[over]]).any())  # for less than a moment more is alive
    assert most == trace.facts.peak_bytes or ((trace.facts.is_timed or shrinks) and most < trace.facts.peak_bytes)
    for column, moment in enumerate(grid.moments.tolist()):
        for row, life in enumerate(grid.cells[:, column].tolist()):
            middle = (row + 0.5) * grid.row_bytes
            if life != IDLE:
                assert of.offset[life] <= middle < of.offset[life] + of.size[life]
                begin, end = (of.born, of.died) if trace.facts.is_timed else (of.begin, of.end)
                assert begin[life] <= moment < end[life]


def test_a_map_of_very_many_chunks_is_no_larger() -> None:
    graph = build(seeded(5), 600)
    assert (
        len(drawn("map", engine.make_plan(graph, strategy="pushdown", optimise=0).trace(), Screen(80)).splitlines())
        < 40
    )


def test_the_map_of_an_empty_trace_draws_nothing() -> None:
    nothing = Trace(RunInfo(model="nothing", mode="static"), lambda: iter(()))
    for name in ("table", "map"):
        assert "nothing is ever alive" in drawn(name, nothing)


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "has_colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_that_want_it(environment: dict[str, str], has_colour: bool) -> None:
    assert screen_of(Terminal(io.BytesIO(), "utf-8"), environment).has_colour == has_colour
    assert not screen_of(io.TextIOWrapper(io.BytesIO(), "utf-8"), environment).has_colour


@pytest.mark.slow
@given(st.text(max_size=30), st.integers(0, 40))
def test_shortened_names_keep_both_ends(text: str, width: int) -> None:
    shown = shortened(escaped(text), width, "...")
    assert visible_width(shown) <= width and shown.isprintable()
    if visible_width(escaped(text)) <= width:
        assert shown == escaped(text)
