"""Lines of integers between blanks, read all at once; only where one is wrong a second look finds line and column."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from allocator.errors import FormatError, shown
from allocator.io.instance import LARGEST

_DIGITS = re.compile(r"[0-9]{1,40}")


def parse_lines(lines: Sequence[str], first: int, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Parses one row of integers in [0, 2**62) a line, one integer a name. The first line has the number `first`.

    Raises FormatError.
    """
    cells = " ".join(lines).split()
    digits = "".join(cells)
    if not (digits.isascii() and digits.isdigit() and set(map(_width, lines)) == {len(names)}):
        return _second_look(lines, first, names)
    try:
        values = np.array(list(map(int, cells)), np.int64).reshape(len(lines), len(names))
    except (ValueError, OverflowError):
        return _second_look(lines, first, names)
    return _second_look(lines, first, names) if (values >= LARGEST).any() else values


def _width(line: str) -> int:
    return len(line.split())


def _second_look(lines: Sequence[str], first: int, names: Sequence[str]) -> npt.NDArray[np.int64]:
    rows = []
    for number, line in enumerate(lines, start=first):
        cells = line.split()
        if len(cells) != len(names):
            raise FormatError(f"line {number}: {len(cells)} numbers where {' '.join(names)} are wanted")
        rows.append([_integer(text, number, name) for text, name in zip(cells, names, strict=True)])
    return np.array(rows, np.int64).reshape(len(lines), len(names))


def _integer(text: str, number: int, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise FormatError(f"line {number}, column {name}: {shown(text)} is no integer from 0 on")
    if int(text) >= LARGEST:
        raise FormatError(f"line {number}, column {name}: {text} is not below {LARGEST}")
    return int(text)
