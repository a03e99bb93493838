"""Writes a trace as an interactive page: one HTML file, which needs no network; see `engine.viewer`."""

from typing import BinaryIO

from engine.trace.rectangles import rectangles_of
from engine.trace.trace import RunInfo, Trace
from engine.viewer.page import write_page
from engine.viewer.payload import pack


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes the page of one plan. The memory for it grows with the number of chunks."""
    title = titled(trace.facts)
    write_page(f"{title} · arenaplan", [pack(rectangles_of(trace), title)], out)


def titled(facts: RunInfo) -> str:
    """Returns a title that differs between runs of one model."""
    ways = [facts.heap or "reference counting"] if facts.mode == "dynamic" else [facts.strategy, facts.policy]
    return " · ".join((facts.model or "a plan", *filter(None, ways)))
