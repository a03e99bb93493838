"""Gaps: ticks of its lifetime in which a buffer is not alive (MiniMalloc). They become conflicts of a problem."""

import re
from collections.abc import Sequence

import numpy as np

from allocator.errors import UnsupportedProblemError, shown
from allocator.io.instance import LARGEST, Gaps
from allocator.io.table import CsvTable
from allocator.problem import Column, Conflicts, column, distinct

MOST_PAIRS = 2**24
"""The most pairs of segments of lifetimes that meet; more would take gigabytes."""
_GAP = re.compile(r"([0-9]{1,19})-([0-9]{1,19})(@[0-9]+:[0-9]+)?")


def parse_gaps(table: CsvTable, begin: Column, end: Column, addend: int) -> Gaps:
    """Returns the gaps in the column `gaps`: `lo-hi lo-hi ...`, with `addend` added to each hi.

    Raises FormatError for what is no gap or outside its buffer's lifetime, and UnsupportedProblemError for a gap with
    a window (`lo-hi@low:high`), in which a part of the buffer would stay alive.
    """
    rows = [
        (row, *_gap(table, row, text, addend), text)
        for row, cell in enumerate(table.texts("gaps") if "gaps" in table.headers else ())
        for text in cell.split()
    ]
    for row, low, high, text in rows:
        if not begin[row] <= low < high <= end[row]:
            lifetime = f"lifetime [{begin[row]}, {end[row]})"
            raise table.error("gaps", row, f"gap {shown(text)} is empty or leaves the {lifetime}")
    return Gaps(*([one[i] for one in rows] for i in range(3)))


def render_gaps(gaps: Gaps, count: int) -> list[str]:
    """Returns the cells of the column `gaps` for `count` buffers, half-open."""
    cells: list[list[str]] = [[] for _ in range(count)]
    for chunk, begin, end in zip(gaps.chunk.tolist(), gaps.begin.tolist(), gaps.end.tolist(), strict=True):
        cells[chunk].append(f"{begin}-{end}")
    return [" ".join(cell) for cell in cells]


def conflicts_of(begin: Column, end: Column, size: Column, gaps: Gaps) -> Conflicts:
    """Returns the pairs of chunks that are both alive in some tick outside their gaps; those of no bytes stand in none.

    Time and memory grow with the number of pairs. Raises UnsupportedProblemError above MOST_PAIRS.
    """
    chunk, first, last = _segments(begin, end, gaps)
    used = size[chunk] > 0
    chunk, first, last = chunk[used], first[used], last[used]
    order = np.argsort(first, kind="stable")
    chunk, first, last = chunk[order], first[order], last[order]
    later = np.searchsorted(first, last) - np.arange(1, len(first) + 1)
    if int(later.sum()) > MOST_PAIRS:
        raise UnsupportedProblemError(
            f"gaps among so many buffers cannot be kept: {int(later.sum())} pairs meet, {MOST_PAIRS} are the most"
        )
    one = np.repeat(np.arange(len(first)), later)
    behind = np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    a, b = chunk[one], chunk[one + 1 + behind]
    pairs = distinct(np.minimum(a, b)[a != b] * len(size) + np.maximum(a, b)[a != b])
    return Conflicts(pairs // max(len(size), 1), pairs % max(len(size), 1))


def _segments(begin: Column, end: Column, gaps: Gaps) -> tuple[Column, Column, Column]:
    """Returns (chunk, begin, end) of the pieces of lifetimes that lie outside of all gaps."""
    cut: dict[int, list[tuple[int, int]]] = {}
    for row, low, high in zip(gaps.chunk.tolist(), gaps.begin.tolist(), gaps.end.tolist(), strict=True):
        cut.setdefault(row, []).append((low, high))
    pieces = [(row, *piece) for row, holes in cut.items() for piece in _between(int(begin[row]), int(end[row]), holes)]
    whole = np.ones(len(begin), bool)
    whole[gaps.chunk] = False
    rest = np.flatnonzero(whole)
    rows = np.vstack((np.stack((rest, begin[rest], end[rest]), axis=1), np.array(pieces, np.int64).reshape(-1, 3)))
    return column(rows[:, 0]), column(rows[:, 1]), column(rows[:, 2])


def _between(begin: int, end: int, holes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    pieces, at = [], begin
    for low, high in sorted(holes):
        if at < low:
            pieces.append((at, low))
        at = max(at, high)
    return [*pieces, (at, end)] if at < end else pieces


def _gap(table: CsvTable, row: int, text: str, addend: int) -> tuple[int, int]:
    match = _GAP.fullmatch(text)
    if match is None:
        raise table.error("gaps", row, f"{shown(text)} is no gap; write for example 3-5")
    if match[3]:
        where = table.where("gaps", row)
        raise UnsupportedProblemError(f"{where}: gap {shown(text)} has a window, which no strategy here can keep")
    low, high = int(match[1]), int(match[2]) + addend
    if max(low, high) >= LARGEST:
        raise table.error("gaps", row, f"{shown(text)} is not below {LARGEST}")
    return low, high
