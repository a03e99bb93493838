"""Draws a run with letters: time from left to right, addresses from bottom to top, a letter for each chunk.
Several memories stand upon each other, the first at the bottom.

Each column shows the time in its span at which the live bytes are at their maximum. Without addresses it shows live
bytes only.
"""

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import BinaryIO, TypeVar

import numpy as np
from attrs import frozen

from engine.exporters.map_cells import IDLE, Raster, raster, spans
from engine.exporters.summary import foot, head, sized
from engine.text.names import escaped
from engine.text.screen import BOLD, DIM, FILE, Screen, padded, shortened, visible_width
from engine.text.units import format_bytes
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.trace.trace import NOWHERE, Trace

USUAL_WIDTH = 80
_LETTERS = ascii_lowercase + ascii_uppercase
_COLOURS = (110, 179, 108, 174, 139, 73, 222, 146, 216, 151, 181, 117)
"""Colours of xterm's 256 that are light enough for black letters."""
_LEVELS, _ASCII_LEVELS = " ▁▂▃▄▅▆▇█", " .:-=+*%@"
_INDENT = 4
_LISTED = 8
"""The largest number of chunks of the peak that are listed below the picture."""
_MARGIN = 13
_SHORTEST_NAME = 3
T = TypeVar("T")


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes the picture to a file, for a width of 80."""
    show(trace, out, FILE)


def show(trace: Trace, out: BinaryIO, screen: Screen) -> None:
    """Writes the picture as wide as the terminal. All chunks are held in memory."""
    rectangles = rectangles_of(trace)
    width = max((screen.width or USUAL_WIDTH) - _MARGIN - 1, 8)
    grid = raster(rectangles, width, max(min(width // 4, 32), 6))
    picture = _Picture(rectangles, grid, screen)
    for line in head(trace.facts):
        screen.put(screen.styled(shortened(line, width + _MARGIN, "..."), BOLD), out)
    screen.put("", out)
    for line in picture.lines():
        screen.put(line, out)


@frozen(eq=False)
class _Paint:
    """The letter with which a chunk is drawn, and the number of its colour."""

    letter: str
    colour: int


@frozen(eq=False)
class _Picture:
    """A picture of text lines."""

    rectangles: Rectangles
    raster: Raster
    screen: Screen

    def lines(self) -> Iterator[str]:
        """Yields the lines from top to bottom."""
        paints = _paints(self.raster)
        yield from self._rows(paints)
        yield from self._axis()
        yield from self._curve()
        yield ""
        yield from map(self._bold, foot(self.rectangles.facts))
        if self.rectangles.has_places and self.rectangles.facts.peak_bytes:
            yield from self._legend(paints)

    def _bold(self, text: str) -> str:
        return self.screen.styled(text, BOLD)

    def _rows(self, paints: Mapping[int, _Paint]) -> Iterator[str]:
        cells = self.raster.cells
        names, above = _names(self.rectangles, cells), len(cells)
        for band in reversed(self.raster.bands):
            if band.title:
                yield self._margin("") + self._bold(shortened(escaped(band.title), cells.shape[1], "..."))
            last, above = above - 1, above - band.rows
            for row in range(last, above - 1, -1):
                mark = format_bytes(band.bytes) if row == last else "0" if row == above else ""
                if self.rectangles.has_places:
                    drawn = self._places(cells[row].tolist(), names.get(row, {}), paints)
                else:
                    drawn = self._levels(row * self.raster.row_bytes)
                yield self._margin(mark) + drawn

    def _margin(self, text: str, corner: str = "") -> str:
        line = corner or ("│" if self.screen.has_blocks else "|")
        return self.screen.styled(f"{text:>{_MARGIN - 2}} {line}", DIM)

    def _places(self, row: list[int], names: Mapping[int, str], paints: Mapping[int, _Paint]) -> str:
        """Returns the cells of a row, with names over letters."""
        letters = [paints[chunk].letter if chunk != IDLE else "." for chunk in row]
        if self.screen.has_colour:
            letters = [" " if chunk != IDLE else self._idle for chunk in row]
        for at, name in names.items():
            letters[at : at + len(name)] = name
        return "".join(self._painted("".join(letters[i:j]), row[i], paints) for i, j in _runs(row))

    @property
    def _idle(self) -> str:
        return "·" if self.screen.has_blocks else "."

    def _painted(self, text: str, chunk: int, paints: Mapping[int, _Paint]) -> str:
        if chunk == IDLE:
            return self.screen.styled(text, DIM)
        return self.screen.styled(text, f"38;5;16;48;5;{paints[chunk].colour}")

    def _levels(self, low: float) -> str:
        """Returns a row of bars of live bytes, for runs without addresses."""
        levels = _LEVELS if self.screen.has_blocks else _ASCII_LEVELS
        share = (self.raster.live - low) / self.raster.row_bytes
        return "".join(levels[i] for i in np.clip(np.ceil(share * 8), 0, 8).astype(int).tolist())

    def _axis(self) -> Iterator[str]:
        """Yields the time axis and the mark of the peak."""
        columns, peak = len(self.raster.moments), self.raster.peak
        line = "─" if self.screen.has_blocks else "-"
        yield self._margin("", "└" if self.screen.has_blocks else "+") + self.screen.styled(line * columns, DIM)
        end = float(spans(self.rectangles)[1].max(initial=0))
        unit, last = ("ms", f"{1e3 * end:.3f}") if self.rectangles.facts.is_timed else ("tick", f"{end:.0f}")
        yield self.screen.styled(f"{unit:>{_MARGIN - 2}}  0{last:>{max(columns - 1, len(last) + 1)}}", DIM)
        if self.rectangles.facts.peak_bytes:
            yield " " * (_MARGIN + peak) + self.screen.styled("^", "1;33")

    def _curve(self) -> Iterator[str]:
        levels = _LEVELS if self.screen.has_blocks else _ASCII_LEVELS
        most = max(int(self.raster.live.max(initial=0)), 1)
        drawn = "".join(levels[i] for i in (-(-self.raster.live * 8 // most)).tolist())
        yield self.screen.styled(f"{'alive':>{_MARGIN - 2}}  ", DIM) + self.screen.styled(drawn, "33")

    def _legend(self, paints: Mapping[int, _Paint]) -> Iterator[str]:
        """Yields the chunks that are alive at the peak, the largest first."""
        start, stop = spans(self.rectangles)
        moment, size = self.raster.moments[self.raster.peak], self.rectangles.size
        alive = np.flatnonzero((start <= moment) & (moment < stop) & (size > 0))
        alive = alive[np.argsort(-size[alive], kind="stable")].tolist()
        shown = alive[:_LISTED]
        if not shown:  # in a run that takes no time, no chunk is alive for longer than a moment
            return
        details = [
            f"{sized(int(size[chunk]))} at {self._address(int(self.rectangles.offset[chunk]))}" for chunk in shown
        ]
        space = (self.screen.width or USUAL_WIDTH) - _INDENT - max(map(len, details)) - 3
        names = [shortened(escaped(self.rectangles.name[chunk]), max(space, 8), "...") for chunk in shown]
        wide = max(map(visible_width, names))
        for chunk, name, detail in zip(shown, names, details, strict=True):
            yield f"  {self._sign(chunk, paints)} {padded(name, wide)}  {self.screen.styled(detail, DIM)}"
        if len(alive) > _LISTED:
            rest = sum(size[alive[_LISTED:]].tolist())
            yield f"    and {len(alive) - _LISTED:,} more with {format_bytes(rest)}"

    def _address(self, offset: int) -> str:
        facts = self.rectangles.facts
        memory = facts.memory_at(offset)
        if memory == NOWHERE:
            return f"{offset:,}"
        return f"{offset - facts.memories[memory].start:,} of {escaped(facts.memories[memory].name)}"

    def _sign(self, chunk: int, paints: Mapping[int, _Paint]) -> str:
        """Returns the sign of a chunk in the picture; a blank if the chunk is too small to be seen."""
        if chunk not in paints:
            return " "
        return self._painted(" " if self.screen.has_colour else paints[chunk].letter, chunk, paints)


def _runs(row: list[int]) -> Iterator[tuple[int, int]]:
    """Yields the begin and the end of each run of equal neighbours."""
    start = 0
    for i in range(1, len(row) + 1):
        if i == len(row) or row[i] != row[start]:
            yield start, i
            start = i


def _paints(of: Raster) -> dict[int, _Paint]:
    """Returns the paint of each chunk: letters and colours in turn, but no two neighbours share one."""
    near = _neighbours(of)
    paints: dict[int, _Paint] = {}
    for number, chunk in enumerate(sorted(near)):
        taken = [paints[other] for other in near[chunk] if other in paints]
        letter = _free(_LETTERS, number, {p.letter for p in taken})
        paints[chunk] = _Paint(letter, _free(_COLOURS, number, {p.colour for p in taken}))
    return paints


def _free(choices: Sequence[T], first: int, taken: set[T]) -> T:
    """Returns the first choice from number `first` on that is not taken; if all are taken, choice `first`."""
    turned = [choices[(first + i) % len(choices)] for i in range(len(choices))]
    return next((choice for choice in turned if choice not in taken), turned[0])


def _neighbours(of: Raster) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {chunk: set() for chunk in np.unique(of.cells).tolist() if chunk != IDLE}
    for one, other in ((of.cells[:, :-1], of.cells[:, 1:]), (of.cells[:-1], of.cells[1:])):
        apart = (one != other) & (one != IDLE) & (other != IDLE)
        for a, b in set(zip(one[apart].tolist(), other[apart].tolist(), strict=True)):
            near[a].add(b)
            near[b].add(a)
    return near


def _names(of: Rectangles, cells: "np.ndarray[tuple[int, int], np.dtype[np.int64]]") -> dict[int, dict[int, str]]:
    """Returns names by row and column: each name once, in the middle one of its chunk's rows, if it fits there."""
    names: dict[int, dict[int, str]] = {}
    rows: dict[int, list[tuple[int, int, int]]] = {}
    for number, row in enumerate(cells.tolist()):
        for start, stop in _runs(row):
            if row[start] != IDLE and stop - start >= _SHORTEST_NAME:
                rows.setdefault(row[start], []).append((number, start, stop))
    for chunk, stretches in rows.items():
        number, start, stop = stretches[len(stretches) // 2]
        name = escaped(of.name[chunk])
        space = stop - start - 2 * (len(name) < stop - start - 1)
        if name.isascii() and len(name) <= space and visible_width(name) >= 1:
            shown = f" {name} " if len(name) + 2 <= stop - start else name
            names.setdefault(number, {})[start + (stop - start - len(shown)) // 2] = shown
    return names
