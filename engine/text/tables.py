"""Rows of texts as lines whose columns stand below each other."""

from collections.abc import Container, Sequence


def in_columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """One line a row, two blanks between columns; the columns whose numbers are in `right` stand to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(_cell(c, w, i in right) for i, (c, w) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def _cell(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)
