"""idealloc's CSV (github.com/cappadokes/idealloc), read and written: id, lower, upper, size, in this order.

The header is skipped. A file does not say which kind of lifetimes it has: open, half-open or inclusive.
"""

from enum import StrEnum
from functools import partial

from allocator.errors import FormatError
from allocator.io.instance import LARGEST, Instance, check_holds, decoded, named_problem
from allocator.io.table import CsvTable, check_cells, parse_columns, render_table
from allocator.problem import FREE, Column, column

_COLUMNS = ("id", "lower", "upper", "size")
_TITLE = "idealloc's CSV"
_MOST_IDS = 2**32


class Kind(StrEnum):
    """The ticks that a lifetime (lower, upper) has, in idealloc's own words."""

    OPEN = "ex-csv"
    """Neither end. Two buffers meet where each begins before the other ends, as in [lower, upper)."""
    HALF_OPEN = "in-ex-csv"
    INCLUSIVE = "in-csv"


def parse(content: bytes, kind: Kind) -> Instance:
    """Parses a table. Raises FormatError, which names line and column, and ProblemError."""
    table = parse_columns(decoded(content), _COLUMNS)
    ids, begin = table.texts("id"), table.integers("lower")
    check_cells(ids)
    problem = named_problem(
        ids,
        begin=begin,
        end=_end(table, begin, kind),
        size=table.integers("size"),
        alignment=[1] * table.rows,
        pinned=[FREE] * table.rows,
    )
    return Instance(problem, ids)


def render(instance: Instance, kind: Kind) -> bytes:
    """Returns the table of a problem; it holds no offsets. Raises UnsupportedProblemError for what it cannot hold.

    Open lifetimes count ticks twice: (2a, 2b) has a tick even where [a, b) has but one.
    """
    check_holds(instance, _TITLE)
    problem = instance.problem
    lower, upper = problem.begin, problem.end
    if kind is Kind.OPEN:
        lower, upper = open_lifetimes(lower, upper)
    if kind is Kind.INCLUSIVE:
        upper = upper - 1
    values = (numeric_ids(instance.ids), lower, upper, problem.size)
    return render_table(dict(zip(_COLUMNS, values, strict=True))).encode()


parse_open, parse_half_open, parse_inclusive = (partial(parse, kind=kind) for kind in Kind)
render_open, render_half_open, render_inclusive = (partial(render, kind=kind) for kind in Kind)


def numeric_ids(ids: tuple[str, ...]) -> list[int]:
    """Returns the ids as numbers where all are (32 bits, no leading zeros), else positions."""
    if all(i.isascii() and i.isdigit() and len(i) <= len(str(_MOST_IDS)) and str(int(i)) == i for i in ids):
        numbers = list(map(int, ids))
        if max(numbers, default=0) < _MOST_IDS:
            return numbers
    return list(range(len(ids)))


def open_lifetimes(begin: Column, end: Column) -> tuple[Column, Column]:
    """Returns the open lifetimes (birth, death) that meet where the half-open ones do, and are never empty."""
    if 2 * int(end.max(initial=0)) >= LARGEST:
        raise FormatError("has ticks that cannot be doubled within 62 bits, as open lifetimes want")
    return column(2 * begin), column(2 * end)


def _end(table: CsvTable, begin: Column, kind: Kind) -> Column:
    least = {Kind.OPEN: 2, Kind.HALF_OPEN: 1, Kind.INCLUSIVE: 0}[kind]
    upper = table.integers("upper", begin + least)
    return upper + int(kind is Kind.INCLUSIVE)
