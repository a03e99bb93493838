"""Tables of comma-separated cells: one header line, no quoting; an empty line ends the table.

Cells are looked at by column, many rows at once; only where something is wrong a second, slower look finds line and
column. Cells are cut from the lines when a column is asked for, so that they never stand in memory all at once.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from attrs import frozen

from allocator.errors import FormatError, shown
from allocator.io.instance import LARGEST
from allocator.problem import Column, column

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 40
_BLOCK = 10_000
"""Rows that are cut into cells, or written, at once."""


@frozen(eq=False)
class CsvTable:
    """Row i stands in line i + 2. `headers` are the columns in their order, with what the file itself calls each."""

    lines: Sequence[str]
    headers: Mapping[str, str]

    @property
    def rows(self) -> int:
        """Returns the number of rows."""
        return len(self.lines)

    def texts(self, name: str) -> list[str]:
        """Returns the cells of a column without blanks around them."""
        return [cell.strip() for block in self._blocks(name) for cell in block]

    def integers(self, name: str, least: int | Column = 0) -> Column:
        """Returns the numbers of a column, each from `least` on and below 2**62. Raises FormatError."""
        lowest = np.broadcast_to(np.asarray(least, np.int64), self.rows)
        try:
            blocks = [np.array(_plain_integers(block), np.int64) for block in self._blocks(name)]
            values = np.concatenate([*blocks, np.zeros(0, np.int64)])
        except (ValueError, OverflowError):
            cells = enumerate(self.texts(name))
            values = np.array([self._integer(name, row, text, lowest) for row, text in cells], np.int64)
        wrong = (values < lowest) | (values >= LARGEST)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self._outside(name, row, int(values[row]), lowest)
        return column(values)

    def error(self, name: str, row: int, what: str) -> FormatError:
        """Returns the error to raise where the cell of a column in a row is wrong."""
        return FormatError(f"{self.where(name, row)}: {what}")

    def where(self, name: str, row: int) -> str:
        """Returns a cell by line and column."""
        return f"line {row + 2}, column {self.headers[name]}"

    def _blocks(self, name: str) -> Iterator[list[str]]:
        """Yields the cells of a column, many rows at once."""
        place, width = list(self.headers).index(name), len(self.headers)
        for first in range(0, self.rows, _BLOCK):
            yield ",".join(self.lines[first : first + _BLOCK]).split(",")[place::width]

    def _integer(self, name: str, row: int, text: str, lowest: npt.NDArray[np.int64]) -> int:
        if not _INTEGER.fullmatch(text):
            raise self.error(name, row, f"{shown(text)} is no integer")
        if len(text) > _MOST_DIGITS:
            raise self.error(name, row, f"{shown(text)} is too long a number")
        value = int(text)
        if abs(value) >= LARGEST:
            raise self._outside(name, row, value, lowest)
        return value

    def _outside(self, name: str, row: int, value: int, lowest: npt.NDArray[np.int64]) -> FormatError:
        return self.error(name, row, f"{value} is not in [{lowest[row]}, {LARGEST})")


def parse_table(text: str, column_names: Collection[str], aliases: Mapping[str, str]) -> CsvTable:
    """Parses a table whose columns stand in any order, under a known name or an alias. Raises FormatError."""
    lines = text.splitlines()
    if not lines or not lines[0].strip():
        raise FormatError("is empty; a header line is wanted")
    headers = _header(lines[0], column_names, aliases)
    return _table(lines, headers)


def parse_columns(text: str, names: Sequence[str]) -> CsvTable:
    """Parses a table whose columns stand in a fixed order; its header is skipped. Raises FormatError."""
    lines = text.splitlines()
    if not lines:
        raise FormatError("is empty; a header line is wanted")
    return _table(lines, {name: name for name in names})


def require(table: CsvTable, names: Iterable[str]) -> None:
    """Raises FormatError where a column is missing."""
    missing = next((name for name in names if name not in table.headers), "")
    if missing:
        raise FormatError(f"line 1: column {missing!r} is missing")


def render_table(columns: Mapping[str, Sequence[object] | Column]) -> str:
    """Returns the text of a table."""
    blocks = [",".join(columns)]
    for first in range(0, max(map(len, columns.values())), _BLOCK):
        cells = (_texts(values[first : first + _BLOCK]) for values in columns.values())
        blocks.append("\n".join(map(",".join, zip(*cells, strict=True))))
    return "\n".join((*blocks, ""))


def _texts(values: Sequence[object] | Column) -> Iterator[str]:
    return map(str, values.tolist() if isinstance(values, np.ndarray) else values)


def check_cells(ids: Sequence[str], what: str = "id") -> None:
    """Raises FormatError for an id, or another name (`what` it is), that cannot stand in a cell."""
    joined = "\n".join(ids)
    if all(ids) and "," not in joined and len(joined.splitlines()) == len(ids) and not any(i != i.strip() for i in ids):
        return
    for name in ids:
        if not name.strip() or name != name.strip() or "," in name or len(name.splitlines()) != 1:
            raise FormatError(
                f"{what} {shown(name)} cannot stand in a CSV field: no commas, line breaks or outer blanks"
            )


def _header(line: str, column_names: Collection[str], aliases: Mapping[str, str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for original in (name.strip() for name in line.split(",")):
        name = aliases.get(original, original)
        if name not in column_names:
            raise FormatError(f"line 1: unknown column {shown(original)}; there are {', '.join(column_names)}")
        if name in headers:
            raise FormatError(f"line 1: column {name!r} stands there twice")
        headers[name] = original
    return headers


def _table(lines: Sequence[str], headers: Mapping[str, str]) -> CsvTable:
    end = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
    rows, width = lines[1:end], len(headers)
    wrong = next((i for i, line in enumerate(rows) if line.count(",") != width - 1), -1)
    if wrong >= 0:
        raise FormatError(f"line {wrong + 2}: {rows[wrong].count(',') + 1} fields for {width} columns")
    return CsvTable(rows, headers)


def _plain_integers(cells: Sequence[str]) -> list[int]:
    """Converts cells to integers. Raises ValueError where a cell is anything but a few digits."""
    joined = "".join(cells)
    if not (joined.isascii() and joined.isdigit()):
        raise ValueError("not just digits")
    return list(map(int, cells))
