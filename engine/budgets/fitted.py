"""The largest lengths that fit a budget, as a table, as data and as a picture."""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from engine.pictures.matplotlib import new_figure
from engine.text.errors import EngineError
from engine.text.palette import PAINTS
from engine.text.tables import in_columns, joined
from engine.text.units import counted, format_bytes

_UNIT = 2**20


@frozen(eq=False)
class Point:
    """The arena at some lengths; `refused` says why the model does not allow them, and is empty where it does."""

    lengths: Mapping[str, int]
    arena_bytes: int
    refused: str = ""

    def fits(self, budget: int) -> bool:
        """Returns whether the arena keeps within a budget."""
        return not self.refused and self.arena_bytes <= budget

    @property
    def what(self) -> str:
        """The lengths, as --dim takes them."""
        return ",".join(f"{name}={length}" for name, length in self.lengths.items())

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        size = None if self.refused else self.arena_bytes
        return {"lengths": dict(self.lengths), "arena_bytes": size, "refused": self.refused}


@frozen(eq=False)
class Fit:
    """The largest lengths that fit a budget: one point where one of the `names` varies, a frontier where two do.

    `largest` is empty where not even the least lengths fit. `planned` has all that was planned, in order of lengths;
    `uneven` has pairs of points of which the larger one needs fewer bytes.
    """

    model: str
    budget_bytes: int
    names: tuple[str, ...]
    largest: tuple[Point, ...]
    planned: tuple[Point, ...]
    uneven: tuple[tuple[Point, Point], ...]

    def __repr__(self) -> str:
        """Returns one line; `print` shows the table."""
        largest = "; ".join(point.what for point in self.largest) or "nothing"
        return f"<{self.model!r} within {self.budget_bytes} B: {largest}>"

    def __str__(self) -> str:
        return self.text()

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return {
            "model": self.model,
            "budget_bytes": self.budget_bytes,
            "names": list(self.names),
            "fits": bool(self.largest),
            "largest": [point.to_json() for point in self.largest],
            "planned": [point.to_json() for point in self.planned],
            "uneven": [[less.to_json(), more.to_json()] for less, more in self.uneven],
        }

    def text(self) -> str:
        """Returns the answer, the table of what was planned, and where the arena does not grow evenly."""
        return joined([self._verdict(), "", *self._table(), "", *self._evenness()])

    def _verdict(self) -> str:
        budget = format_bytes(self.budget_bytes)
        if not self.largest:
            least = self.planned[0]
            return (
                f"{self.model} does not fit in {budget}: the arena of {least.what} has {least.arena_bytes} bytes "
                f"({format_bytes(least.arena_bytes)})"
            )
        if len(self.names) > 1:
            return f"{self.model} in {budget}: the largest {self.names[1]} for each {self.names[0]}"
        (point,) = self.largest
        size = f"{point.arena_bytes} bytes ({format_bytes(point.arena_bytes)})"
        rest = ", and is the largest that was asked for" if point is self.planned[-1] else ""
        return f"{self.model} fits in {budget} up to {point.what}: the arena has {size}{rest}"

    def _table(self) -> Iterator[str]:
        shown = self.largest if len(self.names) > 1 else self.planned
        rows = [(*self.names, "arena", "of budget", "")]
        for point in shown:
            size = "-" if point.refused else format_bytes(point.arena_bytes)
            share = "-" if point.refused else f"{point.arena_bytes / max(self.budget_bytes, 1):.1%}"
            mark = point.refused[:60] or ("<- the largest that fits" if point in self.largest else "")
            mark = "" if len(self.names) > 1 else mark
            rows.append((*map(str, point.lengths.values()), size, share, mark))
        yield from (f"  {line}" for line in in_columns(rows, set(range(len(self.names) + 2))))

    def _evenness(self) -> Iterator[str]:
        for less, more in self.uneven:
            yield (
                f"the arena does not grow evenly: {more.what} needs {format_bytes(more.arena_bytes)}, "
                f"{less.what} needs {format_bytes(less.arena_bytes)}"
            )
        if not self.uneven:
            yield f"the arena grows evenly: no larger length needs less, in {counted(len(self.planned), 'plan')}"


def fit_chart(fit: Fit) -> Any:
    """Returns a matplotlib Figure: arenas over lengths with the budget as a line, or the frontier of two lengths.

    Raises EngineError where matplotlib is not installed.
    """
    figure = new_figure(8, 4.5)
    axes = figure.subplots()
    if len(fit.names) > 1:
        if not fit.largest:
            raise EngineError("there is nothing to draw: no lengths fit")
        points = [tuple(point.lengths.values()) for point in fit.largest]
        axes.plot([p[0] for p in points], [p[1] for p in points], "o-", color=PAINTS["live_line"].light)
        axes.set_xlabel(fit.names[0])
        axes.set_ylabel(f"largest {fit.names[1]} in {format_bytes(fit.budget_bytes)}")
        axes.set_xscale("log", base=2)
    else:
        accepted = [point for point in fit.planned if not point.refused]
        sizes = [point.arena_bytes / _UNIT for point in accepted]
        axes.plot(
            [point.lengths[fit.names[0]] for point in accepted], sizes, "o-", ms=4, color=PAINTS["live_line"].light
        )
        axes.axhline(fit.budget_bytes / _UNIT, ls="--", color=PAINTS["budget"].light, label="budget")
        axes.set_xlabel(fit.names[0])
        axes.set_ylabel("arena, MiB")
        axes.legend(frameon=False)
    axes.set_title(f"{fit.model} within {format_bytes(fit.budget_bytes)}")
    return figure
