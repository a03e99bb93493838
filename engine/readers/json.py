"""Traces from JSON as `engine.exporters.json` writes them, event by event; blanks and the order of keys do not matter.

The events come last, so that what holds of all of them is known before them.
"""

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from attrs import fields

from engine.readers.claims import check_alone, check_facts
from engine.readers.facts import Totals
from engine.readers.ledger import Ledger
from engine.readers.place import Location, shown
from engine.readers.scanner import Scanner
from engine.readers.values import TYPES, check_names, check_range, check_type, event_of
from engine.trace.trace import CLOCKS, VERSION, Event, RunInfo, Trace

_values_of = itemgetter(*TYPES)
_FACTS = {f.name: f.type for f in fields(RunInfo) if f.type}
_AT_LEAST_ONE = ("alignment", "stages", "threads")
_CHOICES = {"mode": ("static", "dynamic"), "clock": CLOCKS}


def read(path: Path) -> Trace:
    """What holds of the whole trace is read now, the events each time they are asked for. Raises TraceFormatError."""
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        facts, _ = _facts(Scanner(file, Location(path)))
    return Trace(facts, lambda: _events(path))


def _events(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        scanner = Scanner(file, Location(path))
        facts, claimed = _facts(scanner)
        ledger, seen = Ledger(scanner.place), Totals()
        scanner.take("[")
        while scanner.next() != "]":
            event = _event(scanner)
            ledger.enter(event)
            seen.enter(event)
            yield event
            if scanner.next() != "]":
                scanner.take(",")
                _refuse_end(scanner)
        scanner.take("]")
        scanner.take("}")
        if scanner.next():
            raise scanner.place.wrong("there is something behind the trace")
        ledger.close()
        check_facts(facts, seen, claimed)


def _refuse_end(scanner: Scanner) -> None:
    if scanner.next() == "]":
        raise scanner.place.wrong("an event is expected behind a comma")


def _event(scanner: Scanner) -> Event:
    if not scanner.next():
        raise scanner.place.wrong("the file ends before its events do: it is cut short")
    found = _object(scanner, "an event")
    if found.keys() != TYPES.keys():
        check_names(list(found), tuple(TYPES), scanner.place, "field of an event")
    return event_of(_values_of(found), scanner.place)


def _facts(scanner: Scanner) -> tuple[RunInfo, Location]:
    """What comes before the events, and where it ends."""
    if scanner.next() != "{":
        raise scanner.place.wrong("this is no saved trace: it does not begin with an object")
    scanner.take("{")
    _check_version(scanner)
    scanner.take(",")
    _take_key(scanner, "facts")
    found = _object(scanner, "the facts")
    facts, place = _facts_of(found, scanner.place), Location(scanner.place.path, scanner.place.line)
    scanner.take(",")
    _take_key(scanner, "events")
    return facts, place


def _check_version(scanner: Scanner) -> None:
    _take_key(scanner, "version")
    version = scanner.value()
    if type(version) is not int or version != VERSION:
        what = f"{shown(version)} is unknown; this program reads version {VERSION}"
        raise scanner.place.wrong(what, "version")


def _take_key(scanner: Scanner, wanted: str) -> None:
    found = scanner.value() if scanner.next() == '"' else ""
    if found != wanted:
        raise scanner.place.wrong(f"this is no saved trace: {wanted!r} is expected here")
    scanner.take(":")


def _object(scanner: Scanner, what: str) -> dict[str, Any]:
    if scanner.next() != "{":
        raise scanner.place.wrong(f"an object is expected, with {what}")
    found: dict[str, Any] = scanner.value()
    return found


def _facts_of(found: dict[str, Any], place: Location) -> RunInfo:
    check_names(list(found), tuple(_FACTS), place, "fact")
    for name, wanted in _FACTS.items():
        field = f"facts.{name}"
        check_type(found[name], wanted, field, place)
        if wanted is int:
            check_range(found[name], int(name in _AT_LEAST_ONE), field, place)
        if name in _CHOICES and found[name] not in _CHOICES[name]:
            raise place.wrong(f"{shown(found[name])} is none of: {', '.join(map(repr, _CHOICES[name]))}", field)
    facts = RunInfo(**found)
    check_alone(facts, place)
    return facts
