"""Events from the values of a file: each has its type and its range, or an error names file, line and field."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import define, fields

from engine.text.errors import TraceFormatError
from engine.trace.trace import KINDS, NOT_RUN, Event

TYPES: Mapping[str, type] = {f.name: f.type for f in fields(Event) if f.type}
"""The type of each field of an event, in order."""
_NAMES = tuple(TYPES)
_EXACT = tuple(TYPES.values())
_LEAST = {name: 0 for name in ("tick", "bytes", "padding", "live_bytes", "footprint_bytes", "stage")} | {
    name: -1 for name in ("chunk", "offset", "overwrites", "thread")
}
_SECONDS, _KIND = _NAMES.index("seconds"), _NAMES.index("kind")
MOST = 2**63
"""The bound that all whole numbers of a trace are below."""
MOST_TICKS, MOST_SECONDS, MOST_THREADS = 2**40, 2.0**30, 1024
"""More than any run has, and no more than all formats can hold: 64 bits of nanoseconds, with a tick of 1 ms."""
_BELOW = {"tick": MOST_TICKS, "stage": MOST_TICKS, "thread": MOST_THREADS}
_WHOLE = tuple((name, _NAMES.index(name), least, _BELOW.get(name, MOST)) for name, least in _LEAST.items())
_WORDS = {int: "a whole number", float: "a number", str: "a text"}


@define(eq=False)
class Location:
    """A line of a file, counted from 1; it advances as the file is read."""

    path: Path
    line: int = 1

    def wrong(self, what: str, field: str = "") -> TraceFormatError:
        """Returns the error to raise: file, line, field and fault in one line."""
        return TraceFormatError(": ".join(filter(None, (f"{self.path}:{self.line}", field, what))))


def shown(value: object) -> str:
    """Returns a value for a message, at most its first 57 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_names(
    names: Sequence[str], wanted: Sequence[str], location: Location, what: str, but_for: Sequence[str] = ()
) -> None:
    """Raises TraceFormatError for a name that is missing, unknown or there twice; those of `but_for` may be missing."""
    for name in wanted:
        if name not in names:
            raise location.wrong(f"this {what} is missing", name)
    for i, name in enumerate(names):
        if name not in (*wanted, *but_for):
            raise location.wrong(f"no {what} is called {shown(name)}")
        if name in names[:i]:
            raise location.wrong(f"this {what} is there twice", name)


def event_of(values: Sequence[object], location: Location) -> Event:
    """Returns the event with these values, in the order of its fields. Raises TraceFormatError."""
    if type(values[_SECONDS]) is int:
        values = [*values[:_SECONDS], float_of(values[_SECONDS], "seconds", location), *values[_SECONDS + 1 :]]
    if tuple(map(type, values)) != _EXACT:
        raise _of_a_wrong_type(values, location)
    if values[_KIND] not in KINDS:
        raise location.wrong(f"{shown(values[_KIND])} is none of: {', '.join(KINDS)}", "kind")
    for name, at, least, below in _WHOLE:
        check_range(values[at], least, name, location, below)
    check_seconds(values[_SECONDS], location)
    event: Event = Event(*values)  # type: ignore[arg-type]  # just checked
    return event


def check_type(value: object, wanted: type, field: str, location: Location) -> None:
    """Raises TraceFormatError for a value of another type."""
    if type(value) is not wanted:
        raise location.wrong(f"{shown(value)} is not {_WORDS[wanted]}", field)


def check_range(value: object, least: int, field: str, location: Location, below: int = MOST) -> None:
    """Raises TraceFormatError for a whole number outside of its range."""
    if not least <= value < below:  # type: ignore[operator]
        raise location.wrong(f"{shown(value)} is not from {least} to {below - 1}", field)


def check_seconds(value: object, location: Location) -> None:
    """Raises TraceFormatError for a time below 0 that is not NOT_RUN, or above MOST_SECONDS."""
    assert isinstance(value, float)
    if not (0 <= value <= MOST_SECONDS or value == NOT_RUN):
        what = f"no time from 0 to {MOST_SECONDS:.0f}, nor {NOT_RUN} for none"
        raise location.wrong(f"{value!r} is {what}", "seconds")


def float_of(value: object, field: str, location: Location) -> float:
    """Returns an integer as a float: programs that rewrite JSON may drop a point and a zero."""
    assert isinstance(value, int)
    check_range(value, -1, field, location)
    return float(value)


def _of_a_wrong_type(values: Sequence[object], location: Location) -> Exception:
    name, value = next((n, v) for (n, wanted), v in zip(TYPES.items(), values, strict=True) if type(v) is not wanted)
    return location.wrong(f"{shown(value)} is not {_WORDS[TYPES[name]]}", name)
