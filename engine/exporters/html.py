"""A trace as a page that shows it: one HTML file, which needs no network; see `engine.viewer`."""

from typing import BinaryIO

from engine.trace.rectangles import rectangles_of
from engine.trace.trace import RunInfo, Trace
from engine.viewer.page import write_page
from engine.viewer.payload import pack


def write(trace: Trace, out: BinaryIO) -> None:
    """The page of one plan. Its memory grows with the number of chunks, not with what the file will be."""
    title = titled(trace.facts)
    write_page(f"{title} · arenaplan", [pack(rectangles_of(trace), title)], out)


def titled(facts: RunInfo) -> str:
    """A line that tells runs of one model apart."""
    ways = [facts.heap or "reference counting"] if facts.mode == "dynamic" else [facts.strategy, facts.policy]
    return " · ".join((facts.model or "a plan", *filter(None, ways)))
