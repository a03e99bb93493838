"""Values as files have them to events: each of its type and in its range, or an error that names the field."""

from collections.abc import Mapping, Sequence

from attrs import fields

from engine.readers.place import Location, shown
from engine.trace.trace import KINDS, NOT_RUN, Event

TYPES: Mapping[str, type] = {f.name: f.type for f in fields(Event) if f.type}
"""Of the fields of an event, in order."""
_NAMES = tuple(TYPES)
_EXACT = tuple(TYPES.values())
_LEAST = {name: 0 for name in ("tick", "bytes", "padding", "live_bytes", "footprint_bytes", "stage")} | {
    name: -1 for name in ("chunk", "offset", "overwrites", "thread")
}
_SECONDS, _KIND = _NAMES.index("seconds"), _NAMES.index("kind")
MOST = 2**63
"""Numbers of a trace are below."""
MOST_TICKS, MOST_SECONDS, MOST_THREADS = 2**40, 2.0**30, 1024
"""More than any run has, and no more than all formats can bear: 64 bits of nanoseconds, a tick being a millisecond."""
_BELOW = {"tick": MOST_TICKS, "stage": MOST_TICKS, "thread": MOST_THREADS}
_WHOLE = tuple((name, _NAMES.index(name), least, _BELOW.get(name, MOST)) for name, least in _LEAST.items())
_WORDS = {int: "a whole number", float: "a number", str: "a text"}


def check_names(found: Sequence[str], wanted: Sequence[str], place: Location, what: str) -> None:
    """Raises TraceFormatError for a name that is missing, unknown or given twice."""
    for name in wanted:
        if name not in found:
            raise place.wrong(f"this {what} is missing", name)
    for i, name in enumerate(found):
        if name not in wanted:
            raise place.wrong(f"no {what} is called {shown(name)}")
        if name in found[:i]:
            raise place.wrong(f"this {what} is there twice", name)


def event_of(values: Sequence[object], place: Location) -> Event:
    """The event with these values, in the order of its fields. Raises TraceFormatError."""
    if type(values[_SECONDS]) is int:
        values = [*values[:_SECONDS], float_of(values[_SECONDS], "seconds", place), *values[_SECONDS + 1 :]]
    if tuple(map(type, values)) != _EXACT:
        raise _of_a_wrong_type(values, place)
    if values[_KIND] not in KINDS:
        raise place.wrong(f"{shown(values[_KIND])} is none of: {', '.join(KINDS)}", "kind")
    for name, at, least, below in _WHOLE:
        check_range(values[at], least, name, place, below)
    check_seconds(values[_SECONDS], place)
    made: Event = Event(*values)  # type: ignore[arg-type]  # just checked
    return made


def check_type(value: object, wanted: type, field: str, place: Location) -> None:
    """Raises TraceFormatError."""
    if type(value) is not wanted:
        raise place.wrong(f"{shown(value)} is not {_WORDS[wanted]}", field)


def check_range(value: object, least: int, field: str, place: Location, below: int = MOST) -> None:
    """Of a whole number. Raises TraceFormatError."""
    if not least <= value < below:  # type: ignore[operator]
        raise place.wrong(f"{shown(value)} is not from {least} to {below - 1}", field)


def check_seconds(value: object, place: Location) -> None:
    """From 0 on, or NOT_RUN. Raises TraceFormatError."""
    assert isinstance(value, float)
    if not (0 <= value <= MOST_SECONDS or value == NOT_RUN):
        what = f"no time from 0 to {MOST_SECONDS:.0f}, nor {NOT_RUN} for none"
        raise place.wrong(f"{value!r} is {what}", "seconds")


def float_of(value: object, field: str, place: Location) -> float:
    """Of an integer: programs that write JSON anew may drop a point and zero."""
    assert isinstance(value, int)
    check_range(value, -1, field, place)
    return float(value)


def _of_a_wrong_type(values: Sequence[object], place: Location) -> Exception:
    name, value = next((n, v) for (n, wanted), v in zip(TYPES.items(), values, strict=True) if type(v) is not wanted)
    return place.wrong(f"{shown(value)} is not {_WORDS[TYPES[name]]}", name)
