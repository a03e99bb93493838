"""Activities in the words of one line: what is done, how far it is, how long it has taken."""

import math
from collections.abc import Sequence

from allocator.progress import NOT_KNOWN, Activity
from engine.text.screen import visible_width
from engine.text.units import format_bytes

_MARK = "..."
_LONGEST_ITEM = 40


def told(activities: Sequence[Activity], seconds: float) -> str:
    """One line: seconds since the beginning, the outer activities by name, the innermost in full."""
    before = ("", *(a.item for a in activities))
    names = ": ".join(_name(a, a.item if a.item != last else "") for a, last in zip(activities, before, strict=False))
    return " | ".join((_duration(seconds), names, *_figures(activities[-1])))


def _name(activity: Activity, item: str) -> str:
    """What is done, and to what, unless that has been said already; in a sweep, which of how many."""
    item = cut(printable(item), _LONGEST_ITEM)
    if activity.total and not activity.unit:
        return f"{activity.what} {activity.done} of {activity.total}" + (f", {item}" if item else "")
    return f"{activity.what} {item}" if item else activity.what


def _figures(activity: Activity) -> list[str]:
    figures = []
    if activity.best != NOT_KNOWN:
        bound = f", bound {format_bytes(activity.bound)}" if activity.bound != NOT_KNOWN else ""
        figures.append(f"best {format_bytes(activity.best)}{bound}")
    if activity.unit and activity.done:
        total = f" of {activity.total:,}" if activity.total else ""
        figures.append(f"{activity.done:,}{total} {activity.unit}")
    if activity.limit < math.inf:
        figures.append(f"at most {_duration(activity.limit)}")
    return figures


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def printable(text: str) -> str:
    """The text with a question mark for whatever would move the cursor or cannot be shown."""
    return "".join(c if c.isprintable() else "?" for c in text[:1000])


def cut(text: str, width: int) -> str:
    """The text in so many columns at most; what is left out at its end is marked."""
    if visible_width(text) <= width:
        return text
    room, kept = width - len(_MARK), 0
    for place, character in enumerate(text):
        kept += visible_width(character)
        if kept > room:
            return text[:place] + _MARK
    return text
