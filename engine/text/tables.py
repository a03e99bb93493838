"""Tables of texts, as lines, and lines as a text."""

from collections.abc import Container, Iterable, Sequence


def in_columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Returns a line for each row, with two blanks between columns; columns in `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(_cell(c, w, i in right) for i, (c, w) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def joined(lines: Iterable[str]) -> str:
    """Returns lines as one text, each with its end."""
    return "".join(f"{line}\n" for line in lines)


def _cell(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)
