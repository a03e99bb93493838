"""A line on a terminal's stderr that says what is going on, for work that takes longer than a second.

Activities (`allocator/progress.py`) only write down where they are; a thread looks at them a few times a second, so
that the line lives where nothing is told for long (numba compiles, a file is read), and telling costs an assignment.
Libraries such as tqdm and rich draw when they are told to, and would be a dependency of every user for one line.
"""

import logging
import math
import os
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from attrs import define, field

from allocator.machine_code.mutex import Mutex
from allocator.progress import NOT_KNOWN, Activity, aside, watched_by
from engine.text.screen import visible_width
from engine.text.units import format_bytes, format_duration

PATIENCE = 1.0
"""Seconds before a line is drawn."""
INTERVAL = 0.2
"""Seconds between two looks."""
_NARROWEST = 10
"""Columns, below which nothing is drawn."""
_USUAL_WIDTH = 80
_ECHO = 2
"""Columns behind the line in which a terminal shows ^C."""


@define(eq=False)
class Line:
    """The line: it is drawn while an activity is under way, and gone without a trace when none is.

    No escape sequence but for colour is needed: what was drawn is written over with spaces, which any console can.
    """

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    width: Callable[[], int] = field(default=lambda: _USUAL_WIDTH)
    is_coloured: bool = False
    _activities: list[Activity] = field(factory=list, init=False)
    _began: float = field(init=False)
    _drawn: str = field(default="", init=False)
    _is_lost: bool = field(default=False, init=False)
    _mutex: Mutex = field(factory=partial(Mutex, threading.RLock), init=False)

    def __attrs_post_init__(self) -> None:
        self._began = self.clock()

    def begin(self, activity: Activity, /) -> None:
        """Adds an activity inside those that have not ended."""
        self._activities.append(activity)

    def end(self, activity: Activity, /) -> None:
        """Ends an activity with all inside it; the line goes with the last one."""
        if activity in self._activities:
            del self._activities[self._activities.index(activity) :]
        if not self._activities:
            self.clear()

    def current(self) -> Activity:
        """Returns the innermost activity."""
        return self._activities[-1] if self._activities else Activity("")

    def tick(self) -> None:
        """Draws the line where there is something new to see."""
        with self._mutex.lock:
            seconds, activities = self.clock() - self._began, tuple(self._activities)
            if activities and seconds >= PATIENCE and not self._is_lost:
                room = self.width() - 1 - _ECHO
                self._draw(cut(told(activities, seconds), room) if room >= _NARROWEST else "")

    def clear(self) -> None:
        """Leaves an empty line behind."""
        with self._mutex.lock:
            if self._drawn:
                self._write("\r" + " " * (visible_width(self._drawn) + _ECHO) + "\r")
                self._drawn = ""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Removes the line while something else is written; it comes back at the next look."""
        with self._mutex.lock:
            self.clear()
            yield

    def _draw(self, text: str) -> None:
        if text != self._drawn:
            rest = " " * (visible_width(self._drawn) - visible_width(text))
            shown = f"\x1b[2m{text}\x1b[0m" if self.is_coloured else text
            self._write(f"\r{shown}{rest}")
            self._drawn = text

    def _write(self, text: str) -> None:
        """Writes to the terminal; a terminal that is gone, or cannot show a name, is no reason to stop the work."""
        try:
            encoding = self.stream.encoding or "utf-8"
            self.stream.write(text.encode(encoding, "replace").decode(encoding))
            self.stream.flush()
        except (OSError, ValueError):
            self._is_lost = True


def add_quiet(parser: ArgumentParser) -> None:
    """Adds the option that shows no progress."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress and no notes on compilation")


@contextmanager
def progress_shown(quiet: bool = False) -> Iterator[None]:
    """Shows a line while the block runs, where a person sits in front of it and has not asked for quiet.

    Quiet is silent about compiling, too.
    """
    if quiet:
        with _without_warnings(logging.getLogger("allocator")):
            yield
    elif can_show(sys.stderr, os.environ):
        with shown_on(new_line(sys.stderr, os.environ)):
            yield
    else:
        yield


def say(text: str) -> None:
    """Prints lines while progress is shown."""
    with aside():
        print(text, flush=True)


def can_show(stream: TextIO | None, environment: Mapping[str, str]) -> bool:
    """Returns whether a stream is a terminal on which a line can be written over."""
    return stream is not None and not stream.closed and stream.isatty() and environment.get("TERM") != "dumb"


def new_line(stream: TextIO, environment: Mapping[str, str]) -> Line:
    """Returns a line as wide as its terminal; dim, unless NO_COLOR is set (https://no-color.org) or on Windows."""
    is_coloured = not environment.get("NO_COLOR") and sys.platform != "win32"
    return Line(stream, width=lambda: _columns(stream), is_coloured=is_coloured)


@contextmanager
def shown_on(line: Line) -> Iterator[None]:
    """Starts a thread that looks at the activities of the block."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(INTERVAL):
            line.tick()

    thread = threading.Thread(target=look, name="progress", daemon=True)
    thread.start()
    try:
        with watched_by(line):
            yield
    finally:
        over.set()
        thread.join()
        line.clear()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH


@contextmanager
def _without_warnings(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


_MARK = "..."
_LONGEST_ITEM = 40


def told(activities: Sequence[Activity], seconds: float) -> str:
    """Returns one line: seconds since the beginning, the outer activities by name, the innermost in full."""
    before = ("", *(a.item for a in activities))
    names = ": ".join(_name(a, a.item if a.item != last else "") for a, last in zip(activities, before, strict=False))
    return " | ".join((format_duration(seconds), names, *_figures(activities[-1])))


def _name(activity: Activity, item: str) -> str:
    """Returns what is done, and to what, unless an outer activity says so; in a sweep, its number and the count."""
    item = cut(printable(item), _LONGEST_ITEM)
    if activity.total and not activity.unit:
        return f"{activity.what} {activity.done} of {activity.total}" + (f", {item}" if item else "")
    return f"{activity.what} {item}" if item else activity.what


def _figures(activity: Activity) -> list[str]:
    figures = []
    if activity.best != NOT_KNOWN:
        figures.append(f"best {format_bytes(activity.best)}{_distance(activity)}")
    if activity.unit and activity.done:
        total = f" of {activity.total:,}" if activity.total else ""
        figures.append(f"{activity.done:,}{total} {activity.unit}")
    if activity.limit < math.inf:
        figures.append(f"at most {format_duration(activity.limit)}")
    return figures


def _distance(activity: Activity) -> str:
    """Returns the bound, and how far above it the best result is."""
    if activity.bound == NOT_KNOWN:
        return ""
    gap = f", gap {activity.best / activity.bound - 1:.1%}" if activity.bound else ""
    return f", bound {format_bytes(activity.bound)}{gap}"


def printable(text: str) -> str:
    """Returns the text with a question mark for whatever would move the cursor or cannot be shown."""
    return "".join(c if c.isprintable() else "?" for c in text[:1000])


def cut(text: str, width: int) -> str:
    """Returns the text in at most `width` columns; a mark at its end stands for what is left out."""
    if visible_width(text) <= width:
        return text
    room, kept = width - len(_MARK), 0
    for place, character in enumerate(text):
        kept += visible_width(character)
        if kept > room:
            return text[:place] + _MARK
    return text


def warn(text: str) -> None:
    """Writes one line on stderr."""
    with aside():
        print(f"arenaplan: {' '.join(text.split())}", file=sys.stderr)
