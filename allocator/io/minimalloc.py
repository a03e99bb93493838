"""MiniMalloc's CSV (github.com/google/minimalloc), read and written.

One header line; columns in any order: id, lower and upper (half-open) or end (inclusive), size, and optionally
alignment, hint, gaps, memory and offset. No quoting. An empty line ends the table. `memory` is a column of this project
alone, in files of plans in several memories.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from allocator.errors import FormatError
from allocator.io.files import write_whole
from allocator.io.gaps import conflicts_of, parse_gaps, render_gaps
from allocator.io.instance import Instance, check_holds, decoded, named_problem
from allocator.io.instance import pinned as with_pins
from allocator.io.table import CsvTable, check_cells, parse_table, render_table, require
from allocator.problem import FREE, Column, Problem, column

_ALIASES = {"buffer": "id", "buffer_id": "id", "start": "lower", "begin": "lower"}
_KNOWN = ("id", "lower", "upper", "end", "size", "alignment", "hint", "gaps", "memory", "offset")
_TITLE = "MiniMalloc's CSV"


def read(path: Path | str, *, pinned: bool = False) -> tuple[Problem, tuple[str, ...]]:
    """Returns the problem in a file and the ids of its rows. Raises FormatError, which names line and column.

    `pinned=True` takes the offset column as fixed positions (-1: free), else it is left out.
    """
    instance = parse_bytes(Path(path).read_bytes())
    return with_pins(instance) if pinned else instance.problem, instance.ids


def parse(text: str) -> Instance:
    """Parses a text. Raises FormatError and ProblemError; UnsupportedProblemError for gaps with windows."""
    ids, columns, more = _columns(parse_table(text, _KNOWN, _ALIASES))
    return Instance(named_problem(ids, **columns), ids, **more)


def parse_bytes(content: bytes) -> Instance:
    """Parses the content of a file, which is UTF-8. Raises as `parse` does."""
    return parse(decoded(content))


def _columns(table: CsvTable) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """Returns the ids, the columns of the problem, and what else an instance has."""
    require(table, ("id", "lower", "size"))
    if ("upper" in table.headers) == ("end" in table.headers):
        raise FormatError("line 1: there must be either a column 'upper' or a column 'end'")
    ids = table.texts("id")
    check_cells(ids)
    begin = table.integers("lower")
    addend = int("end" in table.headers)
    end = table.integers("end", begin) + 1 if addend else table.integers("upper", begin + 1)
    size = table.integers("size")
    gaps = parse_gaps(table, begin, end, addend)
    columns = {
        "begin": begin,
        "end": end,
        "size": size,
        "alignment": _optional(table, "alignment", 1, 1),
        "pinned": np.full(table.rows, FREE),
        "conflicts": conflicts_of(begin, end, size, gaps) if len(gaps) else None,
    }
    more = {name: _optional(table, name, FREE, FREE) for name in ("offset", "hint")}
    memory = table.texts("memory") if "memory" in table.headers else ()
    check_cells(memory, "memory")
    return ids, columns, more | {"gaps": gaps, "memory": memory}


def write(path: Path | str, problem: Problem, ids: Sequence[str], offsets: Column | None = None) -> None:
    """Writes a problem, and its solution where offsets are given. Nothing half-written is left behind."""
    instance = Instance(problem, ids)
    placed = instance if offsets is None else evolve(instance, offset=offsets)
    write_whole(Path(path), render_bytes(placed))


def render(instance: Instance) -> str:
    """Returns the text of the file: id, lower, upper, size; alignment, hint, gaps, memory and offset if any has one.

    Raises UnsupportedProblemError for overwrites, which the format cannot hold, and FormatError for ids that it cannot.
    """
    problem = instance.problem
    check_holds(instance, _TITLE, ("alignments", "memories", *(("gaps",) if len(instance.gaps) else ())))
    check_cells(instance.ids)
    columns: dict[str, Sequence[object] | Column] = {"id": instance.ids}
    columns |= {"lower": problem.begin, "upper": problem.end, "size": problem.size}
    if (problem.alignment != 1).any():
        columns["alignment"] = problem.alignment
    if (instance.hint != FREE).any():
        columns["hint"] = instance.hint
    if len(instance.gaps):
        columns["gaps"] = render_gaps(instance.gaps, len(problem))
    if instance.memory:
        check_cells(instance.memory, "memory")
        columns["memory"] = instance.memory
    if (instance.offset != FREE).any():
        columns["offset"] = instance.offset
    return render_table(columns)


def render_bytes(instance: Instance) -> bytes:
    """Returns the content of the file, in UTF-8. Raises as `render` does."""
    return render(instance).encode()


def _optional(table: CsvTable, name: str, default: int, least: int) -> Column:
    return table.integers(name, least) if name in table.headers else column(np.full(table.rows, default))
