"""The rows of a sweep as a table, and what they say together: what each option changes, and which rows are best."""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import frozen

from engine.sweeps.measures import MEASURES
from engine.sweeps.rows import ERROR, MODEL, OK, STATUS, TASK, Row
from engine.sweeps.task import PLAN, is_of_model
from engine.text.tables import in_columns, indented_table, joined, latex
from engine.text.units import counted, format_bytes

ARENA = "arena_bytes"
RUN, PLANNING = "run_seconds", "plan_seconds"
TEX = ".tex"
TABLES = (".csv", TEX)
"""Suffixes of the files that a table can be written to."""


@frozen(eq=False)
class Effect:
    """What one value of an option does, over all tasks that differ in that option alone.

    `times_least` is the geometric mean of its arena over the least arena of those tasks; `least_in` says in how many of
    the `groups` it is the least.
    """

    name: str
    value: Any
    times_least: float
    least_in: int
    groups: int


@frozen(eq=False, slots=False)
class Table:
    """The rows of a sweep, in the order of its tasks. `varied` are the names that take several values.

    `measure` names what they tell (`engine.sweeps.measures`).

    `rows` are records: pandas.DataFrame(table.rows) and polars.DataFrame(table.rows) take them.
    """

    columns: tuple[str, ...]
    varied: tuple[str, ...]
    rows: tuple[Row, ...]
    measure: str = PLAN

    def __repr__(self) -> str:
        return f"<table of {counted(len(self.rows), 'row')}, {len(self.rows) - len(self.good)} with an error>"

    @cached_property
    def good(self) -> tuple[Row, ...]:
        """The rows without an error."""
        return tuple(row for row in self.rows if row[STATUS] == OK)

    @property
    def time(self) -> str:
        """Returns which column of times counts: that of runs, where there were runs."""
        return RUN if any(row.get(RUN) is not None for row in self.good) else PLANNING

    @cached_property
    def pareto(self) -> tuple[Row, ...]:
        """The rows that no other row of the same model and lengths beats in both arena and time."""
        return tuple(row for front in self.fronts for row in front)

    @property
    def fronts(self) -> tuple[tuple[Row, ...], ...]:
        """Returns the rows of `pareto`, those of one model and the same lengths together, the smallest first."""
        return tuple(_front(rows, self.time) for rows in self._by_work.values())

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Returns what each value of each option does to the arena."""
        return tuple(effect for name in self.varied for effect in self._effects(name))

    def text(self) -> str:
        """Returns the rows as text, with notes and errors below all rows.

        A star stands before the rows of `pareto`, where some rows do the same work.
        """
        best = {row[TASK] for row in self.pareto if self._are_alike}
        stars = (
            [[""], *(["*" if row[TASK] in best else ""] for row in self.good)] if best else [[]] * (len(self.good) + 1)
        )
        cells = [[*star, *line] for star, line in zip(stars, self._cells(), strict=True)]
        lines = in_columns(cells, {place + len(stars[0]) for place in self._right()}) if self.good else []
        errors = [f"{_title(row, self.varied)}: {row[ERROR]}" for row in self.rows if row[STATUS] != OK]
        notes = MEASURES[self.measure].notes if self.good else ()
        return joined([*lines, *notes, *errors])

    def written(self, suffix: str) -> str:
        """Returns the rows without an error as the text of a file: .csv with numbers, .tex as a tabular of LaTeX."""
        if suffix == TEX:
            return latex(self._cells(), self._right())
        text = io.StringIO()
        rows = [[row.get(name) for name in self.shown_columns] for row in self.good]
        csv.writer(text, lineterminator="\n").writerows([self.shown_columns, *rows])
        return text.getvalue()

    def _cells(self) -> list[list[str]]:
        """Returns the texts of the head and of the rows without an error."""
        shown = self.shown_columns
        head = [name.removesuffix("_bytes").removesuffix("_seconds").replace("_", " ") for name in shown]
        return [head, *([_cell(name, row.get(name)) for name in shown] for row in self.good)]

    def _right(self) -> set[int]:
        """Returns the columns that are numbers."""
        return {place for place, name in enumerate(self.shown_columns) if name not in (MODEL, "proof", *self.varied)}

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """Returns the columns that the text shows: the model, what is varied, and those with values."""
        has = [name for name in MEASURES[self.measure].shown if any(row.get(name) is not None for row in self.good)]
        return (MODEL, *self.varied, *has)

    def summary(self, most: int = 20) -> str:
        """Returns in lines what each option changes, and the best rows; at most so many of these.

        A preset varies no option of planning, so that there is no change to tell.
        """
        effects = self.effects if self.measure == PLAN else ()
        lines = [*_effect_lines(effects), *self._front_lines(most)]
        failed = len(self.rows) - len(self.good)
        if failed:
            lines.append(f"{counted(failed, 'row')} of {len(self.rows)} with an error")
        return joined(lines)

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        best = [row[TASK] for row in self.pareto]
        effects = [
            {"name": e.name, "value": e.value, "times_least": e.times_least, "least_in": e.least_in, "groups": e.groups}
            for e in self.effects
        ]
        return {"columns": self.columns, "rows": self.rows, "pareto": best, "effects": effects}

    @property
    def _by_work(self) -> Mapping[tuple[Any, ...], Sequence[Row]]:
        """Returns the rows that do the same work: they differ in options of planning alone."""
        alike, work = defaultdict[tuple[Any, ...], list[Row]](list), (MODEL, *filter(is_of_model, self.varied))
        for row in self.good:
            if row.get(ARENA) is not None and row.get(self.time) is not None:
                alike[tuple(row[name] for name in work)].append(row)
        return alike

    @property
    def _are_alike(self) -> bool:
        """Returns whether some rows do the same work, so that one can be better than another."""
        return any(len(alike) > 1 for alike in self._by_work.values())

    def _effects(self, name: str) -> Iterator[Effect]:
        groups = defaultdict[tuple[Any, ...], dict[Any, int]](dict)
        rest = (MODEL, *(other for other in self.varied if other != name))
        for row in self.good:
            if row.get(ARENA):
                groups[tuple(row[other] for other in rest)][row[name]] = row[ARENA]
        alike = [group for group in groups.values() if len(group) > 1]
        for value in dict.fromkeys(value for group in alike for value in group):
            ratios = [group[value] / min(group.values()) for group in alike if value in group]
            mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
            yield Effect(name, value, mean, sum(ratio == 1 for ratio in ratios), len(ratios))

    def _front_lines(self, most: int) -> list[str]:
        rows = self.pareto
        if not self._are_alike:
            return []
        shown = (MODEL, *self.varied, ARENA, self.time)
        time = "a run" if self.time == RUN else "planning"
        cells = [[_cell(name, row[name]) for name in shown] for row in rows[:most]]
        head = [MODEL, *self.varied, "arena", time]
        lines = [f"no other row of the same model and lengths has a smaller arena and less time of {time}:"]
        lines += indented_table(head, cells, {len(head) - 2, len(head) - 1})
        return [*lines, f"  ... and {len(rows) - most} more"] if len(rows) > most else lines


def _front(rows: Sequence[Row], time: str) -> tuple[Row, ...]:
    """Returns the rows that no other row beats in bytes and time, the smallest first."""
    front, least = list[Row](), math.inf
    for row in sorted(rows, key=lambda row: (row[ARENA], row[time])):
        if row[time] < least:
            front.append(row)
            least = row[time]
    return tuple(front)


def _effect_lines(effects: Sequence[Effect]) -> list[str]:
    if not effects:
        return []
    head = ["option", "value", "arena, times the least", "least in"]
    cells = [[e.name, str(e.value), f"{e.times_least:.3f}", f"{e.least_in} of {e.groups}"] for e in effects]
    return ["what an option changes, all else being equal:", *indented_table(head, cells, {2, 3})]


def _title(row: Row, varied: Sequence[str]) -> str:
    return " ".join([row[MODEL], *(f"{name}={row[name]}" for name in varied)])


def _cell(name: str, value: Any) -> str:
    """Returns a value as text, in a unit that fits it."""
    if value is None:
        return "-"
    if name.endswith(("_bytes", "_bound")):
        return format_bytes(value)
    if name.endswith("_seconds"):
        return f"{value * 1e3:,.1f} ms"
    return f"{value:.2%}" if name in ("gap", "saved", "both_over_none") else str(value)
