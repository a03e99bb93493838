"""MegEngine's interval list, the text of MGB_DUMP_INTERVAL_LIST_DIR and MGB_LOAD_INTERVAL, read and written.

The number of intervals and a line `begin end size` of each, half-open; the number of overwrite specs and a line
`src dest offset` of each. It has no names (position counts), no alignments and no offsets.
"""

from collections.abc import Sequence

import numpy as np

from allocator.errors import FormatError
from allocator.io.instance import Instance, check_holds, decoded, named_problem
from allocator.io.numbers import parse_lines
from allocator.problem import FREE, Column, column

_TITLE = "MegEngine's interval list"


def parse(content: bytes) -> Instance:
    """Parses an interval list. Raises FormatError, which names the line, and ProblemError.

    Specs are what operators allow. As in MegEngine, a spec counts if src begins in the last tick of dest and
    overwrites nothing else, and of several that overwrite one interval the largest counts; dest must also be older
    than src.
    """
    lines = decoded(content).rstrip().splitlines()
    count = _count(lines, 0)
    intervals = parse_lines(lines[1 : 1 + count], 2, ("begin", "end", "size"))
    specs = _specs(lines, 1 + count)
    begin, end, size = intervals.T
    empty = np.flatnonzero(end <= begin)
    if len(empty):
        row = int(empty[0])
        raise FormatError(f"line {row + 2}, column end: {end[row]} is not above begin {begin[row]}")
    taken = _taken(specs, begin, end, size, 2 + count)
    ids = list(map(str, range(count)))
    problem = named_problem(
        ids,
        begin=begin,
        end=end,
        size=size,
        alignment=[1] * count,
        pinned=[FREE] * count,
        src=taken[:, 0],
        dest=taken[:, 1],
        overwrite_offset=taken[:, 2],
    )
    return Instance(problem, ids)


def render(instance: Instance) -> bytes:
    """Returns the interval list of a problem. Raises UnsupportedProblemError for alignments and gaps."""
    check_holds(instance, _TITLE, ("overwrites",))
    problem = instance.problem
    parts = ((problem.begin, problem.end, problem.size), (problem.src, problem.dest, problem.overwrite_offset))
    return "".join(_block(part) for part in parts).encode()


def _block(columns: tuple[Column, ...]) -> str:
    rows = zip(*(c.tolist() for c in columns), strict=True)
    return "\n".join([str(len(columns[0])), *(" ".join(map(str, row)) for row in rows), ""])


def _count(lines: Sequence[str], at: int) -> int:
    """Returns the number in a line, of the lines that must follow it."""
    if at >= len(lines):
        raise FormatError(f"line {at + 1}: a number of lines is wanted, but the file ends")
    count = int(parse_lines(lines[at : at + 1], at + 1, ("count",))[0, 0])
    if count > len(lines) - at - 1:
        raise FormatError(f"line {at + 1}: {count} lines are announced, {len(lines) - at - 1} follow")
    return count


def _specs(lines: Sequence[str], at: int) -> Column:
    if at == len(lines):  # MegEngine takes a list that ends here too
        return np.zeros((0, 3), np.int64)
    count = _count(lines, at)
    if at + 1 + count < len(lines):
        raise FormatError(f"line {at + 2 + count}: the file should end here")
    return parse_lines(lines[at + 1 :], at + 2, ("src", "dest", "offset"))


def _taken(specs: Column, begin: Column, end: Column, size: Column, first: int) -> Column:
    """Returns the rows of `specs` that count. The first row stands in line first + 1."""
    wrong = (specs[:, :2] >= len(size)).any(axis=1) | (specs[:, 0] == specs[:, 1])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FormatError(f"line {first + 1 + row}: there are no such two intervals, 0 to {len(size) - 1}")
    src, dest, at = specs.T
    outside = at + size[src] > size[dest]
    if outside.any():
        row = int(np.argmax(outside))
        raise FormatError(
            f"line {first + 1 + row}, column offset: {size[src[row]]} bytes from {at[row]} on do not lie within the "
            f"{size[dest[row]]} bytes of interval {dest[row]}"
        )
    in_time = (begin[src] == end[dest] - 1) & (begin[dest] < begin[src])
    kept = _largest(specs[in_time].tolist(), size)
    return column([value for spec in kept for value in spec]).reshape(-1, 3)


def _largest(specs: list[list[int]], size: Column) -> list[list[int]]:
    """Returns the specs to take, in the order of the file: a larger interval replaces a smaller one."""
    by_dest: dict[int, list[int]] = {}
    takers = set[int]()
    for spec in specs:
        src, dest, _ = spec
        holder = by_dest.get(dest)
        if src in takers or (holder is not None and size[src] <= size[holder[0]]):
            continue
        if holder is not None:
            takers.remove(holder[0])
        by_dest[dest] = spec
        takers.add(src)
    return list(by_dest.values())
