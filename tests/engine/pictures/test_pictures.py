"""Parts of pictures: columns, merged boxes, texts that fit, round numbers."""

import re
import unicodedata

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.pictures.curves import column_edges, column_maximum, skyline, stairs
from engine.pictures.frame import byte_values, round_step, tick_values, time_values
from engine.pictures.merging import MOST_RUNS, merge
from engine.pictures.wording import fitted, text_width, wrapped
from engine.text.names import printable
from engine.text.palette import KINDS, PAINTS
from engine.viewer.page import modules
from tests.helpers.traces.hostile_names import HOSTILE

_spans = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(1, 99)), max_size=12)


@given(_spans, st.integers(1, 60))
def test_the_skyline_is_the_highest_curve_value_of_a_column(spans: list[tuple[int, int, int]], pixels: int) -> None:
    begin, length, top = (np.array([s[i] for s in spans], dtype=int) for i in range(3))
    edges = column_edges(40, pixels, False)
    heights = skyline(edges, begin, begin + length, top)
    for left, right, high in zip(edges, edges[1:], heights, strict=False):
        assert high == max((t for b, n, t in spans if b < right and b + n > left), default=0)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 99)), min_size=1), st.integers(1, 60))
def test_a_column_has_the_most_that_a_curve_reaches_in_it(points: list[tuple[int, int]], pixels: int) -> None:
    points = sorted(points, key=lambda p: p[0])
    times, values = (np.array([p[i] for p in points]) for i in range(2))
    edges = column_edges(40, pixels, False)
    for left, right, high in zip(edges, edges[1:], column_maximum(edges, times, values), strict=False):
        before = [v for t, v in points if t <= left][-1:]
        assert high == max([v for t, v in points if left <= t < right] + before, default=0)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_stairs_go_through_each_column_and_turn_only_where_it_changes(values: list[int]) -> None:
    corners = stairs(np.arange(len(values) + 1), np.array(values))
    walked = [
        int(y) for (x, y), (right, _) in zip(corners[::2], corners[1::2], strict=True) for _ in range(int(right - x))
    ]
    assert walked == values
    assert all(y != after for (_, y), (_, after) in zip(corners[1::2], corners[2::2], strict=False))


@settings(max_examples=20)
@given(st.lists(st.tuples(*[st.integers(0, 19)] * 2, *[st.integers(1, 9)] * 2, st.integers(0, 2)), min_size=1))
def test_merged_boxes_cover_the_cells_that_boxes_cover(boxes: list[tuple[int, int, int, int, int]]) -> None:
    frame = (0.0, 0.0, 28.0, 28.0)
    rows = np.array([box[:4] for box in boxes], dtype=float)
    runs_of_kind = merge(rows, np.array([box[4] for box in boxes]), frame)
    drawn = {(int(x) + i, int(y)) for runs in runs_of_kind.values() for x, y, wide, _ in runs for i in range(int(wide))}
    assert drawn == {(x + i, y + j) for x, y, w, h, _ in boxes for i in range(w) for j in range(h)}


def test_a_cell_has_the_colour_that_covers_most_of_it() -> None:
    boxes = np.array([[0.0, 0.0, 1.0, 0.3], [0.0, 0.3, 1.0, 0.7], [1.0, 0.0, 1.0, 0.1]])
    assert merge(boxes, np.array([0, 1, 2]), (0.0, 0.0, 2.0, 1.0)) == {1: ((0.0, 0.0, 1.0, 1.0),)}


def test_cells_grow_until_runs_are_few() -> None:
    rng = np.random.default_rng(0)
    spots = np.stack([rng.uniform(0, 798, 400_000), rng.uniform(0, 398, 400_000), *np.full((2, 400_000), 0.8)], axis=1)
    runs = merge(spots, rng.integers(0, 9, len(spots)), (0.0, 0.0, 800.0, 400.0))
    assert 0 < sum(map(len, runs.values())) <= MOST_RUNS


@given(st.text() | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl"])) | st.sampled_from(HOSTILE))
def test_a_printable_name_is_one_short_line_of_what_can_be_seen(name: str) -> None:
    shown = printable(name)
    assert len(shown) <= 120
    assert {unicodedata.category(c) for c in shown}.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
    assert shown == name or len(name) > 120 or any(c in "�␡" or "␀" <= c <= "␟" for c in shown)


@given(st.text(), st.floats(0, 500))
def test_a_fitted_text_is_no_wider_than_its_room_and_keeps_both_ends(text: str, room: float) -> None:
    shown = fitted(text, 11, room)
    assert text_width(shown, 11) <= room or shown == ""
    if shown not in ("", text):
        head, tail = shown.split("…", 1) if "…" not in text else ("", "")
        assert text.startswith(head)
        assert text.endswith(tail)


@given(st.lists(st.text("abcW", min_size=1, max_size=6), min_size=1), st.floats(60, 300))
def test_wrapped_words_are_all_there_and_no_line_is_too_wide(words: list[str], room: float) -> None:
    lines = wrapped(" ".join(words), 11, room)
    assert " ".join(lines).split(" ") == words
    assert all(text_width(line, 11) <= room or " " not in line for line in lines)


@given(st.floats(1e-6, 1e15), st.integers(1, 20))
def test_round_values_are_few_and_go_far(last: float, most: int) -> None:
    step = round_step(last, most)
    assert last / step <= most * (1 + 1e-6)
    assert last / step >= most / 10 * (1 - 1e-6)


def test_axes_are_written_as_people_write() -> None:
    assert [label for _, label in byte_values(3.9 * 2**20, 4)] == ["0", "1 MiB", "2 MiB", "3 MiB"]
    assert [label for _, label in byte_values(3, 6)] == ["0", "1 B", "2 B", "3 B"]
    assert [label for _, label in tick_values(3, 9)] == ["0", "1", "2", "3"]
    assert [label for _, label in time_values(0.025, 3)] == ["0", "10 ms", "20 ms"]


def test_kinds_have_the_colours_of_the_page() -> None:
    """One network looks the same in both."""
    kinds = re.search(r"const KINDS = \[(.*?)\];", modules()["palette"])
    assert kinds is not None
    assert re.findall(r"#\w+", kinds[1].upper()) == [PAINTS[name].light for name in KINDS]
