"""What a file says of a whole trace, against itself and against what its events tell."""

from collections.abc import Iterator

from engine.readers.facts import Totals
from engine.readers.place import Location, shown
from engine.readers.values import MOST_THREADS, MOST_TICKS
from engine.trace.trace import RunInfo

_Fault = tuple[str, str]
"""The name of a fact, and what is wrong with it."""


def check_alone(facts: RunInfo, place: Location) -> None:
    """Before any event is read. Raises TraceFormatError."""
    for name, what in _odd(facts):
        raise place.wrong(what, f"facts.{name}")


def check_facts(facts: RunInfo, seen: Totals, place: Location) -> None:
    """At the end of the events. Raises TraceFormatError.

    How many ticks there are is not known for sure: nothing is allocated or freed while views are made of constants.
    """
    for name, what in (*_unequal(facts, seen), *_too_small(facts, seen), *_of_another_kind(facts, seen)):
        raise place.wrong(what, f"facts.{name}")


def _odd(facts: RunInfo) -> Iterator[_Fault]:
    if facts.alignment & (facts.alignment - 1):
        yield "alignment", f"{facts.alignment} is no power of two"
    if facts.lower_bound > facts.arena_bytes:
        yield "lower_bound", f"{facts.lower_bound}, above the arena of {facts.arena_bytes}"
    if facts.possible_peak_bytes < facts.peak_bytes:
        yield "possible_peak_bytes", f"{facts.possible_peak_bytes}, below the peak of {facts.peak_bytes}"
    if facts.heap and facts.mode == "static":
        yield "heap", "a static run has one arena, and no heap"
    if facts.mode == "static" and facts.arena_bytes != facts.footprint_bytes:
        yield "arena_bytes", f"{facts.arena_bytes}, but the memory of this static run has {facts.footprint_bytes}"
    for name, most in (("ticks", MOST_TICKS), ("threads", MOST_THREADS if facts.is_timed else 1)):
        if getattr(facts, name) > most:
            yield name, f"{getattr(facts, name)}, where {most} is the most"


def _unequal(facts: RunInfo, seen: Totals) -> Iterator[_Fault]:
    most, tick, operator = seen.peak
    told = {"peak_bytes": most, "peak_tick": tick, "peak_operator": operator}
    told |= {"footprint_bytes": seen.footprint, "stages": seen.stages}
    for name, found in told.items():
        if getattr(facts, name) != found:
            yield name, f"{shown(getattr(facts, name))}, but the events tell {shown(found)}"


def _too_small(facts: RunInfo, seen: Totals) -> Iterator[_Fault]:
    for name in ("ticks", "threads"):
        if getattr(facts, name) < getattr(seen, name):
            yield name, f"{getattr(facts, name)}, but the events tell of {getattr(seen, name)}"


def _of_another_kind(facts: RunInfo, seen: Totals) -> Iterator[_Fault]:
    if not seen.is_empty and facts.is_timed != seen.is_timed:
        yield "clock", f"{facts.clock!r}, but the events have {'times' if seen.is_timed else 'no times'}"
    if seen.has_places and facts.mode == "dynamic" and not facts.heap:
        yield "mode", "a dynamic run without a heap, but the events have addresses"
    if seen.has_no_places and facts.mode == "static":
        yield "mode", "a static run, but events are without addresses"
