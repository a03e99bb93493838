"""Files of rows: what is written is read again, a torn line is taken away, and other files are refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sweeps import files
from engine.sweeps.files import check_output, opened_rows
from engine.sweeps.rows import Row
from engine.text.errors import EngineError, OptionError

COLUMNS = ("task", "model", "batch", "status", "arena_bytes", "gap", "error")
TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1)
ROWS = st.lists(
    st.tuples(TEXTS, st.one_of(st.integers(0, 9), st.none()), st.integers(0, 2**50), st.floats(0, 9), TEXTS), max_size=5
)


def row(number: int, *values: Any) -> Row:
    model, batch, arena, gap, error = values
    return dict(zip(COLUMNS, (f"t{number}", model, batch, "ok", arena, gap, error), strict=True))


def filled(path: Path, rows: list[Row]) -> None:
    with opened_rows(path, COLUMNS) as file:
        for one in rows:
            file.append(one)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_rows_are_read_as_they_were_written(suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("rows")

    @given(ROWS)
    def check(values: list[tuple[Any, ...]]) -> None:
        path = folder / f"rows{suffix}"
        path.unlink(missing_ok=True)
        rows = [row(number, *entry) for number, entry in enumerate(values)]
        filled(path, rows)
        with opened_rows(path, COLUMNS) as file:
            assert list(file.rows.values()) == rows

    check()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_line_that_was_cut_off_anywhere_is_taken_away(suffix: str, tmp_path: Path) -> None:
    path, rows = tmp_path / f"rows{suffix}", [row(n, 'm, "x"\né', 1, 64, 0.5, "é") for n in range(2)]
    if suffix == ".csv":
        rows = [{**one, "model": 'm, "x" é'} for one in rows]
    filled(path, rows)
    whole = path.read_bytes()
    begin = whole[:-1].rfind(b"\n") + 1
    for end in range(begin, len(whole)):
        path.write_bytes(whole[:end])
        with opened_rows(path, COLUMNS) as file:
            assert list(file.rows.values()) == rows[:1]
            file.append(rows[1])
        assert path.read_bytes() == whole


def test_a_header_that_was_cut_off_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("task,mod")
    filled(path, [row(0, "m", 1, 64, 0.5, None)])
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "x,y\n1,2\n", "has rows of another sweep"),
        ("a.csv", ",".join(COLUMNS) + "\n1,2\n", "too few or too many values"),
        ("a.jsonl", '{"task": "t"}\n', "not in both: model, batch"),
        ("a.jsonl", "[1]\n", "no JSON object"),
        ("a.jsonl", "task\n", "is no file of rows"),
        ("a.csv", "\x00\n", "has rows of another sweep"),
    ],
)
def test_other_files_are_refused_and_left_as_they_are(name: str, text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(OptionError, match=words), opened_rows(path, COLUMNS):
        pass
    assert path.read_text() == text


def test_names_that_no_row_can_be_written_to_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"\.csv, \.jsonl, \.parquet"):
        check_output(tmp_path / "rows.xlsx")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OptionError, match="is a folder"):
        check_output(tmp_path / "folder.csv")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        check_output(tmp_path / "none" / "rows.csv")


def test_without_pyarrow_parquet_is_refused_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(files, "import_module", missing)
    with pytest.raises(EngineError, match=r"pip install 'arenaplan\[parquet\]'"):
        check_output(tmp_path / "rows.parquet")


def test_parquet_has_the_rows_that_were_collected_beside_it(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, rows = tmp_path / "rows.parquet", [row(n, "m", None, 2**40, 0.5, "é") for n in range(3)]
    filled(path, rows[:2])
    filled(path, rows[2:])
    assert parquet.read_table(path).to_pylist() == rows
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == rows
