"""MiniMalloc's CSV (github.com/google/minimalloc), read and written.

One header line; columns in any order: id, lower and upper (half-open) or end (inclusive), size, and optionally
alignment, offset, hint and gaps. No quoting. An empty line ends the table.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from allocator.errors import FormatError, UnsupportedProblemError
from allocator.io.files import write_whole
from allocator.problem import FREE, Column, Problem

_ALIASES = {"buffer": "id", "buffer_id": "id", "start": "lower", "begin": "lower"}
_KNOWN = ("id", "lower", "upper", "end", "size", "alignment", "hint", "gaps", "offset")
_REQUIRED = ("id", "lower", "size")
_LARGEST = 2**62


def read(path: Path | str, *, pinned: bool = False) -> tuple[Problem, tuple[str, ...]]:
    """The problem in a file and the ids of its rows. Raises FormatError, which names line and column."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is no UTF-8 text") from error
    return parse(text, pinned=pinned)


def parse(text: str, *, pinned: bool = False) -> tuple[Problem, tuple[str, ...]]:
    """The problem in a text. `pinned=True` takes the offset column as fixed positions (-1: free), else ignores it."""
    lines = text.splitlines()
    if not lines:
        raise FormatError("is empty; a header line is wanted")
    columns = _header(lines[0])
    rows = [_Row(number, columns, line.split(",")) for number, line in _table(lines)]
    problem = Problem(
        begin=[r.lower for r in rows],
        end=[r.upper for r in rows],
        size=[r.integer("size", 0) for r in rows],
        alignment=[r.integer("alignment", 1) if "alignment" in columns else 1 for r in rows],
        pinned=[r.pinned if pinned and "offset" in columns else FREE for r in rows],
    )
    ids = tuple(r.text("id") for r in rows)
    _check_ids(ids, len(ids))
    return problem, ids


def write(path: Path | str, problem: Problem, ids: Sequence[str], offsets: Column | None = None) -> None:
    """Writes a problem, and its solution where offsets are given. Nothing half-written is left behind."""
    write_whole(Path(path), render(problem, ids, offsets).encode())


def render(problem: Problem, ids: Sequence[str], offsets: Column | None = None) -> str:
    """The text of the file: id, lower, upper, size, alignment if any is not 1, offset last if offsets are given.

    Raises UnsupportedProblemError for overwrites, which the format cannot hold, and FormatError for ids that it cannot.
    """
    if len(problem.src):
        raise UnsupportedProblemError(f"MiniMalloc's CSV cannot hold {len(problem.src)} overwrites")
    _check_ids(ids, len(problem))
    columns = {"lower": problem.begin, "upper": problem.end, "size": problem.size}
    if (problem.alignment != 1).any():
        columns["alignment"] = problem.alignment
    if offsets is not None:
        columns["offset"] = offsets
    rows = zip(ids, *(c.tolist() for c in columns.values()), strict=True)
    return "\n".join([",".join(("id", *columns)), *(",".join(map(str, row)) for row in rows), ""])


@frozen(eq=False)
class _Row:
    number: int
    columns: Mapping[str, int]
    cells: list[str] = field()

    @cells.validator
    def _as_many_as_columns(self, _: object, cells: list[str]) -> None:
        if len(cells) != len(self.columns):
            raise FormatError(f"line {self.number}: {len(cells)} fields for {len(self.columns)} columns")
        if "gaps" in self.columns and self.text("gaps"):
            raise FormatError(f"line {self.number}, column gaps: gaps are not supported: {self.text('gaps')!r}")

    def text(self, name: str) -> str:
        return self.cells[self.columns[name]].strip()

    def integer(self, name: str, least: int) -> int:
        text = self.text(name)
        try:
            value = int(text)
        except ValueError as error:
            raise FormatError(f"line {self.number}, column {name}: {text!r} is no integer") from error
        if not least <= value < _LARGEST:
            raise FormatError(f"line {self.number}, column {name}: {value} is not in [{least}, {_LARGEST})")
        return value

    @property
    def lower(self) -> int:
        return self.integer("lower", 0)

    @property
    def upper(self) -> int:
        """Half-open end; the column `end` is inclusive."""
        if "end" in self.columns:
            return self.integer("end", self.lower) + 1
        return self.integer("upper", self.lower + 1)

    @property
    def pinned(self) -> int:
        alignment = self.integer("alignment", 1) if "alignment" in self.columns else 1
        offset = self.integer("offset", FREE)
        if offset != FREE and offset % alignment:
            raise FormatError(f"line {self.number}, column offset: {offset} is no multiple of alignment {alignment}")
        return offset


def _header(line: str) -> dict[str, int]:
    given = [name.strip() for name in line.split(",")]
    names = [_ALIASES.get(name, name) for name in given]
    for name, original in zip(names, given, strict=True):
        if name not in _KNOWN:
            raise FormatError(f"line 1: unknown column {original!r}; there are {', '.join(_KNOWN)}")
        if names.count(name) > 1:
            raise FormatError(f"line 1: column {name!r} stands there twice")
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        raise FormatError(f"line 1: column {missing[0]!r} is missing")
    if ("upper" in names) == ("end" in names):
        raise FormatError("line 1: there must be either a column 'upper' or a column 'end'")
    return {name: i for i, name in enumerate(names)}


def _table(lines: Sequence[str]) -> list[tuple[int, str]]:
    """(line number, line) of the rows: those below the header, up to the first empty line."""
    found = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            break
        found.append((number, line))
    return found


def _check_ids(ids: Sequence[str], count: int) -> None:
    if len(ids) != count:
        raise FormatError(f"{len(ids)} ids for {count} chunks")
    for name in ids:
        if not name.strip() or name != name.strip() or "," in name or len(name.splitlines()) != 1:
            raise FormatError(f"id {name!r} cannot stand in a CSV field: no commas, line breaks or outer blanks")
    double = next((name for name, times in Counter(ids).items() if times > 1), "")
    if double:
        raise FormatError(f"two buffers have the id {double!r}")
