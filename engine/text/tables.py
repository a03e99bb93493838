"""Tables of texts, as lines and for LaTeX, and lines as a text; for a terminal they are fitted to its width."""

import textwrap
from collections.abc import Container, Iterable, Sequence
from re import finditer

from engine.text.screen import UNBOUNDED, padded, shortened, visible_width

_GAP = 2
"""Blanks between columns."""
_LEAST = 8
"""Columns below which no text is shortened."""
_DOTS = "..."


def in_columns(rows: Sequence[Sequence[str]], right: Container[int] = (), width: int = UNBOUNDED) -> list[str]:
    """Returns a line for each row, with two blanks between columns; columns in `right` are right-aligned.

    Where lines are longer than `width`, the longest texts of other columns are shortened in the middle.
    """
    widths = [max(map(visible_width, column)) for column in zip(*rows, strict=True)]
    widths = _narrowed(widths, right, width) if width != UNBOUNDED else widths
    return [
        "  ".join(_cell(c, w, i in right) for i, (c, w) in enumerate(zip(r, widths, strict=True))).rstrip()
        for r in rows
    ]


def indented_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Container[int] = (), width: int = UNBOUNDED
) -> list[str]:
    """Returns a head and rows as `in_columns`, two blanks to the right; no line where there are no rows."""
    return [f"  {line}" for line in in_columns([head, *rows], right, less(width, 2))] if rows else []


def joined(lines: Iterable[str]) -> str:
    """Returns lines as one text, each with its end."""
    return "".join(f"{line}\n" for line in lines)


def latex(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> str:
    """Returns rows, of which the first is the head, as a tabular of LaTeX that needs no package."""
    form = "".join("r" if i in right else "l" for i in range(len(rows[0])))
    head, *lines = (f"{' & '.join(map(_escaped, row))} \\\\" for row in rows)
    return joined([f"\\begin{{tabular}}{{{form}}}", head, "\\hline", *lines, "\\end{tabular}"])


_SPECIAL = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)


def _escaped(text: str) -> str:
    return text.translate(_SPECIAL)


def fitted(text: str, width: int) -> str:
    """Returns a text whose lines have at most `width` columns: longer ones go on below their last column."""
    if width == UNBOUNDED:
        return text
    return joined(part for line in text.splitlines() for part in _wrapped(line, width))


def less(width: int, margin: int) -> int:
    """Returns the width that is left beside a margin."""
    return width if width == UNBOUNDED else max(width - margin, 1)


def _wrapped(line: str, width: int) -> list[str]:
    if visible_width(line) <= width:
        return [line]
    starts = [match.end() for match in finditer(r"\S {2,}", line)]
    margin = len(line) - len(line.lstrip())
    indent = starts[-1] if starts and starts[-1] <= width * 2 // 3 else margin + _GAP
    return textwrap.wrap(
        line, max(width, 2 * _LEAST), subsequent_indent=" " * min(indent, width - _LEAST), break_on_hyphens=False
    )


def _narrowed(widths: Sequence[int], right: Container[int], width: int) -> list[int]:
    """Returns widths of columns whose sum fits, or as near to it as shortening makes them."""
    narrow, excess = list(widths), sum(widths) + _GAP * (len(widths) - 1) - width
    texts = [i for i in range(len(widths)) if i not in right]
    while excess > 0 and texts:
        widest = max(texts, key=lambda i: narrow[i])
        if narrow[widest] <= _LEAST:
            break
        narrow[widest], excess = narrow[widest] - 1, excess - 1
    return narrow


def _cell(text: str, width: int, right: bool) -> str:
    return padded(shortened(text, width, _DOTS), width, right)
