"""Tables of texts, as lines and for LaTeX, and lines as a text."""

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


def _cell(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)
