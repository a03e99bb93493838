"""Parts of cards: HTML without scripts, in the colours of the notebook around them.

All styles are inline and inherit colours from the text around (`inherit`, `currentcolor`): a notebook that is not
trusted drops style sheets, and a card cannot ask a notebook whether it is dark. Every function escapes its texts.
"""

from collections.abc import Sequence
from html import escape

from attrs import frozen

from engine.text.names import printable
from engine.text.units import format_bytes

_LINE = "color-mix(in srgb, currentcolor 22%, transparent)"
_FAINT = "color-mix(in srgb, currentcolor 9%, transparent)"
_ROW = "background:none"  # JupyterLab stripes tables
_TABLE = "border-collapse:collapse;table-layout:auto;margin:6px 0;width:auto;font:inherit"
_CELL = "padding:2px 12px 2px 0;border:none;white-space:nowrap;vertical-align:middle;max-width:none;"
_LONGEST = 48


@frozen
class Bar:
    """A size in bytes beside others: its name, its colour (#rrggbb) and a remark."""

    name: str
    bytes: int
    colour: str
    why: str = ""


def card(title: str, subtitle: str, *parts: str) -> str:
    """Returns a whole card; parts are HTML."""
    head = f'<div style="font-size:15px;font-weight:600">{text(title)}</div>'
    below = f'<div style="opacity:.7;margin-bottom:8px">{text(subtitle, 300)}</div>'
    style = "font:13px/1.5 system-ui,sans-serif;color:inherit;max-width:900px;text-align:left;padding:4px 0"
    return f'<div style="{style}">{head}{below}{"".join(parts)}</div>\n'


def text(content: str, most: int = 120) -> str:
    """Returns any text as HTML on one line, of at most that many characters."""
    return escape(printable(content, most))


def bars(sizes: Sequence[Bar]) -> str:
    """Returns bars below each other, each with a length relative to the largest."""
    largest = max((bar.bytes for bar in sizes), default=0) or 1
    rows = "".join(_bar(bar, bar.bytes / largest) for bar in sizes)
    columns = "display:grid;grid-template-columns:max-content minmax(60px,1fr) max-content max-content"
    return f'<div style="{columns};column-gap:12px;row-gap:3px;align-items:center;margin-bottom:8px">{rows}</div>'


def _bar(bar: Bar, share: float) -> str:
    drawn = f"width:{max(100 * share, 0.3):.2f}%;min-width:1px;height:12px;background:{bar.colour};border-radius:2px"
    track = f'<div style="background:{_FAINT};border-radius:2px"><div style="{drawn}"></div></div>'
    size = f'<div style="text-align:right" title="{bar.bytes} B">{text(format_bytes(bar.bytes))}</div>'
    return f'<div>{text(bar.name)}</div>{track}{size}<div style="opacity:.7">{text(bar.why)}</div>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Returns a table; columns in `right` are right-aligned. The middle of a long text shows only under the mouse."""
    line = f"border-bottom:1px solid {_LINE};font-weight:600;"
    above = "".join(f'<th style="{_CELL}{line}{_side(i, right)}">{text(title)}</th>' for i, title in enumerate(head))
    body = "".join(f'<tr style="{_ROW}">{_cells(row, right)}</tr>' for row in rows)
    whole = f'<table style="{_TABLE}"><thead><tr style="{_ROW}">{above}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{whole}</div>'


def _cells(row: Sequence[str], right: frozenset[int]) -> str:
    return "".join(
        f'<td style="{_CELL}{_side(i, right)}"{_more(cell)}>{text(cell, _LONGEST)}</td>' for i, cell in enumerate(row)
    )


def _side(column: int, right: frozenset[int]) -> str:
    return f"text-align:{'right' if column in right else 'left'}"


def _more(cell: str) -> str:
    return f' title="{text(cell, 1000)}"' if len(cell) > _LONGEST else ""


def folded(summary: str, *parts: str, is_open: bool = False) -> str:
    """Returns parts that a summary line opens and closes."""
    state = " open" if is_open else ""
    head = f'<summary style="cursor:pointer;font-weight:600">{text(summary, 300)}</summary>'
    return f'<details{state} style="margin:4px 0 8px">{head}{"".join(parts)}</details>'


def note(sentence: str) -> str:
    """Returns a sentence in a faint colour."""
    return f'<div style="opacity:.7">{text(sentence, 300)}</div>'


def scrolled(drawing: str) -> str:
    """Returns an element that scrolls where it is wider than the page."""
    return f'<div style="overflow-x:auto">{drawing}</div>'
