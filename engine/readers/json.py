"""Reads traces from JSON as `engine.exporters.json` writes it, event by event, with any blanks and order of keys.

The facts of the run come before the events.
"""

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from attrs import fields

from engine.readers.ledger import Ledger
from engine.readers.run_info import Totals, check_alone, check_facts
from engine.readers.scanner import Scanner
from engine.readers.values import TYPES, Location, check_names, check_range, check_type, event_of, float_of, shown
from engine.trace.trace import CLOCKS, VERSION, Event, MemoryPart, RunInfo, Trace

_values_of = itemgetter(*TYPES)
_FACTS = {f.name: f.type for f in fields(RunInfo) if f.type}
_PART = {f.name: f.type for f in fields(MemoryPart) if f.type}
_MEMORIES = "memories"
_AT_LEAST_ONE = ("alignment", "stages", "threads")
_CHOICES = {"mode": ("static", "dynamic"), "clock": CLOCKS}


def read(path: Path) -> Trace:
    """Returns the trace of a file: reads the facts now, and the events in each iteration. Raises TraceFormatError."""
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        facts, _ = _facts(Scanner(file, Location(path)))
    return Trace(facts, lambda: _events(path))


def _events(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        scanner = Scanner(file, Location(path))
        facts, claimed = _facts(scanner)
        ledger, totals = Ledger(scanner.location), Totals()
        scanner.take("[")
        while scanner.next() != "]":
            event = _event(scanner)
            ledger.enter(event)
            totals.enter(event)
            yield event
            if scanner.next() != "]":
                scanner.take(",")
                _refuse_end(scanner)
        scanner.take("]")
        scanner.take("}")
        if scanner.next():
            raise scanner.location.wrong("there is more text after the trace")
        ledger.close()
        check_facts(facts, totals, claimed)


def _refuse_end(scanner: Scanner) -> None:
    if scanner.next() == "]":
        raise scanner.location.wrong("an event is expected after a comma")


def _event(scanner: Scanner) -> Event:
    if not scanner.next():
        raise scanner.location.wrong("the file ends before its events do: it is cut short")
    values = _object(scanner, "an event")
    if values.keys() != TYPES.keys():
        check_names(list(values), tuple(TYPES), scanner.location, "field of an event")
    return event_of(_values_of(values), scanner.location)


def _facts(scanner: Scanner) -> tuple[RunInfo, Location]:
    """Reads the facts, which stand before the events; returns them and the line where they end."""
    if scanner.next() != "{":
        raise scanner.location.wrong("this is not a saved trace: it does not begin with an object")
    scanner.take("{")
    _check_version(scanner)
    scanner.take(",")
    _take_key(scanner, "facts")
    facts, location = (
        _facts_of(_object(scanner, "the facts"), scanner.location),
        Location(scanner.location.path, scanner.location.line),
    )
    scanner.take(",")
    _take_key(scanner, "events")
    return facts, location


def _check_version(scanner: Scanner) -> None:
    _take_key(scanner, "version")
    version = scanner.value()
    if type(version) is not int or version != VERSION:
        what = f"{shown(version)} is unknown; this program reads version {VERSION}"
        raise scanner.location.wrong(what, "version")


def _take_key(scanner: Scanner, wanted: str) -> None:
    key = scanner.value() if scanner.next() == '"' else ""
    if key != wanted:
        raise scanner.location.wrong(f"this is not a saved trace: {wanted!r} is expected here")
    scanner.take(":")


def _object(scanner: Scanner, what: str) -> dict[str, Any]:
    if scanner.next() != "{":
        raise scanner.location.wrong(f"an object is expected, with {what}")
    value: dict[str, Any] = scanner.value()
    return value


def _facts_of(values: dict[str, Any], location: Location) -> RunInfo:
    check_names(list(values), tuple(_FACTS), location, "fact")
    values = values | {_MEMORIES: _parts_of(values[_MEMORIES], location)}
    for name, wanted in _FACTS.items():
        if name == _MEMORIES:
            continue
        field = f"facts.{name}"
        check_type(values[name], wanted, field, location)
        if wanted is int:
            check_range(values[name], int(name in _AT_LEAST_ONE), field, location)
        if name in _CHOICES and values[name] not in _CHOICES[name]:
            raise location.wrong(f"{shown(values[name])} is none of: {', '.join(map(repr, _CHOICES[name]))}", field)
    facts = RunInfo(**values)
    check_alone(facts, location)
    return facts


def _parts_of(values: object, location: Location) -> tuple[MemoryPart, ...]:
    """Returns the memories of a list of objects."""
    field = f"facts.{_MEMORIES}"
    if not isinstance(values, list) or not all(isinstance(part, dict) for part in values):
        raise location.wrong("a list of objects is expected", field)
    parts = []
    for part in values:
        check_names(list(part), tuple(_PART), location, "fact of a memory")
        for name, wanted in _PART.items():
            value = part[name]
            if wanted is float and type(value) is int:
                value = part[name] = float_of(value, f"{field}.{name}", location)
            check_type(value, wanted, f"{field}.{name}", location)
            if wanted is int:
                check_range(value, 0, f"{field}.{name}", location)
        parts.append(MemoryPart(**part))
    return tuple(parts)
