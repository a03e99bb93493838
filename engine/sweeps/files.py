"""Files of rows that grow by a line for each: a sweep that is killed has lost nothing, and goes on where it was."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import define

from allocator.io.files import check_folder, write_whole
from engine.sweeps.rows import ERROR, MODEL, STATUS, TASK, Row, number_in
from engine.text.errors import EngineError, OptionError

CSV, LINES, PARQUET = ".csv", ".jsonl", ".parquet"
SUFFIXES = (CSV, LINES, PARQUET)
_FRACTION = re.compile(r"-?\d+(\.\d+(e[+-]?\d+)?|e[+-]?\d+)")
_TEXTS = (TASK, MODEL, STATUS, ERROR)
"""Columns whose values are texts, also where they look like numbers."""


@define(eq=False)
class RowFile:
    """A file of rows with their columns: .csv, or .jsonl with one JSON object a line.

    `rows` are those that it has, by the digests of their tasks.
    """

    path: Path
    columns: tuple[str, ...]
    rows: dict[str, Row]

    def append(self, row: Row) -> None:
        """Adds a row; it is in the file when this returns."""
        with self.path.open("a", encoding="utf-8", newline="") as out:
            if self.path.suffix.lower() == CSV and not out.tell():
                out.write(_line(self.path, self.columns, ()))
            out.write(_line(self.path, [row[name] for name in self.columns], self.columns))
        self.rows[row[TASK]] = row


def check_output(path: Path) -> None:
    """Raises OptionError for a file that rows cannot be written to, EngineError where pyarrow is needed."""
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(f"{path}: rows go to a file whose name ends with {', '.join(SUFFIXES)}")
    if path.suffix.lower() == PARQUET:
        _pyarrow()
    if path.is_dir():
        raise OptionError(f"{path} is a folder; rows go to a file")
    check_folder(path)


@contextmanager
def opened_rows(path: Path, columns: Sequence[str]) -> Iterator[RowFile]:
    """Reads a file to which rows can be added; a last line that was cut off is taken away.

    For a .parquet file, rows are collected in a .jsonl file beside it, and written at the end of the block. Raises
    OptionError where the file has other columns, or is no file of rows.
    """
    check_output(path)
    lines = path.with_suffix(LINES) if path.suffix.lower() == PARQUET else path
    rows = _read(lines, tuple(columns)) if lines.exists() else {}
    yield RowFile(lines, tuple(columns), rows)
    if lines != path:
        _write_parquet(path, tuple(rows.values()))


def _line(path: Path, values: Sequence[Any], columns: Sequence[str]) -> str:
    """Returns a line of a file; no value breaks it."""
    if path.suffix.lower() == LINES:
        return json.dumps(dict(zip(columns, values, strict=True))) + "\n"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(" ".join(v.split()) if isinstance(v, str) else v for v in values)
    return text.getvalue()


def _read(path: Path, columns: tuple[str, ...]) -> dict[str, Row]:
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    text = whole.decode("utf-8", "replace")
    rows = _rows_of_lines(path, text) if path.suffix.lower() == LINES else _rows_of_csv(path, text, columns)
    for row in rows:
        if tuple(row) != columns:
            raise _others(path, row, columns)
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return {row[TASK]: row for row in rows}


def _rows_of_lines(path: Path, text: str) -> list[Row]:
    try:
        rows = [json.loads(line) for line in text.splitlines()]
    except ValueError as error:
        raise OptionError(f"{path} is no file of rows: {error}; give another name") from error
    if not all(isinstance(row, dict) for row in rows):
        raise OptionError(f"{path} is no file of rows: a line is no JSON object; give another name")
    return rows


def _rows_of_csv(path: Path, text: str, columns: tuple[str, ...]) -> list[Row]:
    head, *lines = list(csv.reader(io.StringIO(text))) or [list(columns)]
    if tuple(head) != columns:
        raise _others(path, head, columns)
    if any(len(line) != len(head) for line in lines):
        raise OptionError(f"{path} is no file of rows: a line has too few or too many values; give another name")
    return [{name: _value(name, cell) for name, cell in zip(head, line, strict=True)} for line in lines]


def _others(path: Path, columns: Sequence[str] | Row, wanted: Sequence[str]) -> OptionError:
    others = ", ".join(name for name in wanted if name not in columns) or ", ".join(set(columns) - set(wanted))
    return OptionError(
        f"{path} has rows of another sweep, with other columns (not in both: {others}); give another name"
    )


def _value(name: str, cell: str) -> Any:
    """Returns the value of a cell: a number where it is one."""
    if name in _TEXTS:
        return cell or (None if name == ERROR else cell)
    if _FRACTION.fullmatch(cell):
        return float(cell)
    return number_in(cell) if cell else None


def _write_parquet(path: Path, rows: Sequence[Row]) -> None:
    package, content = _pyarrow(), io.BytesIO()
    import_module("pyarrow.parquet").write_table(package.Table.from_pylist(list(rows)), content)
    write_whole(path, content.getvalue())


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise EngineError(
            ".parquet files need pyarrow: pip install 'arenaplan[parquet]'; .csv and .jsonl need nothing"
        ) from error
