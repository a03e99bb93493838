"""Tables and texts within the width of a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from engine.text.screen import UNBOUNDED, visible_width
from engine.text.tables import fitted, in_columns

CELLS = st.text(st.sampled_from("abcü漢1"), min_size=1, max_size=30)
ROWS = st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=5))
LINES = st.lists(st.sampled_from(["word", "  ", "   ", " ", "342848 B", "of the model, outside"]), max_size=20).map(
    "".join
)


@given(ROWS)
def test_columns_begin_at_the_same_place_and_hold_their_texts_without_a_width(rows: list[list[str]]) -> None:
    lines = in_columns(rows, width=UNBOUNDED)
    assert [line.split() for line in lines] == rows


@given(ROWS, st.integers(40, 90))
def test_names_are_shortened_until_a_line_fits(rows: list[list[str]], width: int) -> None:
    assert all(visible_width(line) <= width for line in in_columns(rows, width=width))


def test_numbers_are_not_shortened() -> None:
    rows = [("name", "bytes"), ("a very long name", "123456789012345")]
    assert in_columns(rows, {1}, 25) == ["name                bytes", "a v...me  123456789012345"]


@given(st.lists(LINES, max_size=5), st.integers(20, 60))
def test_long_lines_go_on_below_and_lose_no_word(lines: list[str], width: int) -> None:
    text = "".join(f"{line}\n" for line in lines)
    shown = fitted(text, width)
    assert all(len(line) <= width for line in shown.splitlines()) and "".join(shown.split()) == "".join(text.split())
    assert fitted(text, UNBOUNDED) == text
    if all(len(line) <= width for line in lines):
        assert shown == text


def test_a_line_goes_on_below_its_last_column() -> None:
    line = "  arena    12 B   strategy best, optimal"
    assert fitted(line + "\n", 30) == "  arena    12 B   strategy\n                  best,\n                  optimal\n"
