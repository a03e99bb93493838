"""What leads to a budget: the steps one by one, with what each saves, costs in time, and does to bits."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from attrs import asdict, frozen

from engine.budgets.steps import KEPT, LAST_BITS, ROUNDED, Steps, changes_of
from engine.report.peak import PeakTensor
from engine.text.tables import in_columns, joined
from engine.text.units import format_bytes

AS_ASKED = "as asked"
AGAIN = "computing values again"


@frozen
class Run:
    """A way that was run. `seconds`: the least time. `difference`: of outputs over their largest value; 0: equal."""

    seconds: float
    difference: float


@frozen(eq=False)
class Way:
    """A plan with some steps taken. `again`: the share of operations that run again. `cost`: its time, estimated, over
    that of the plan as asked. `ran` is empty where it was not run."""

    steps: Steps
    arena_bytes: int
    lower_bound: int
    again: float
    cost: float
    ran: tuple[Run, ...] = ()

    @property
    def what(self) -> str:
        """The steps, in words."""
        words = [step.what for step in self.steps] + ([AGAIN] if self.again else [])
        return ", ".join(words) or AS_ASKED

    @property
    def how(self) -> str:
        """The steps as flags of the command line."""
        return " ".join(step.how for step in self.steps)

    @property
    def bits(self) -> str:
        """What the steps may do to bits: the coarsest of all."""
        said = {step.bits for step in self.steps}
        return next((bits for bits in (ROUNDED, LAST_BITS) if bits in said), KEPT)

    def to_json(self, asked: "Way") -> dict[str, Any]:
        """Returns plain data with stable keys."""
        seconds = [run.seconds for run in self.ran]
        return {
            "steps": [step.how for step in self.steps],
            "options": changes_of(self.steps),
            "arena_bytes": self.arena_bytes,
            "saves": asked.arena_bytes - self.arena_bytes,
            "lower_bound": self.lower_bound,
            "computed_again": self.again,
            "bits": self.bits,
            "seconds": seconds[0] if seconds else None,
            "estimated_time": self.cost,
            "difference": next((run.difference for run in self.ran if math.isfinite(run.difference)), None),
        }


@frozen(eq=False)
class Clash:
    """Two steps that work against each other: together they need more bytes than the better one alone."""

    both: Way
    better: Way


@frozen(eq=False)
class Smaller:
    """A smaller model: `what` is its length, on the command line `how`; with the options as asked."""

    what: str
    how: str
    arena_bytes: int


@frozen(eq=False)
class Ladder:
    """The way to a budget. `answer` is the cheapest way that fits, in time and then in changes of bits; empty where
    none was found: then `nearest` is the smallest plan, and `held_by` what is alive at its peak.

    `rungs` go from the plan as asked to the answer or the nearest, a step each. `alone` has each step by itself,
    `clashes` steps that work against each other, `smaller` the models of half, a quarter ... of a length that fit.
    `by_budget` has the ways that a budget leads to with the options as asked, each with its smallest arena.
    """

    model: str
    budget_bytes: int
    asked: Way
    answer: tuple[Way, ...]
    nearest: Way
    rungs: tuple[Way, ...]
    alone: tuple[Way, ...]
    clashes: tuple[Clash, ...]
    smaller: tuple[Smaller, ...]
    by_budget: tuple[Way, ...]
    held_by: tuple[PeakTensor, ...]
    is_run: bool

    @property
    def fits(self) -> bool:
        """True if a way fits."""
        return bool(self.answer)

    @property
    def best(self) -> Way:
        """The answer, or the nearest."""
        return next(iter(self.answer), self.nearest)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of `arenaplan.compile` and `arenaplan.make_plan` that lead to the answer or the nearest."""
        budget = self.budget_bytes if self.fits else self.best.arena_bytes
        return changes_of(self.best.steps) | {"budget": budget}

    def __repr__(self) -> str:
        """Returns one line; `print` shows the ladder."""
        size = format_bytes(self.best.arena_bytes)
        return f"<way of {self.model!r} to {self.budget_bytes} B: {'fits' if self.fits else 'at least'} {size}>"

    def __str__(self) -> str:
        return self.text()

    def to_json(self, command: str = "") -> dict[str, Any]:
        """Returns plain data with stable keys; `command` is the command line of the answer."""
        return {
            "model": self.model,
            "budget_bytes": self.budget_bytes,
            "fits": self.fits,
            "excess_bytes": max(self.best.arena_bytes - self.budget_bytes, 0),
            "best": self.best.to_json(self.asked),
            "options": dict(self.options),
            "command": command,
            "ladder": [self._rung(way, bound) for way, bound in needed_below(self.rungs)],
            "by_budget": [self._rung(way, bound) for way, bound in needed_below((self.asked, *self.by_budget))[1:]],
            "alone": [way.to_json(self.asked) for way in self.alone],
            "against_each_other": [
                {"steps": [s.how for s in c.both.steps], "arena_bytes": c.both.arena_bytes, "better": c.better.how,
                 "better_bytes": c.better.arena_bytes}
                for c in self.clashes
            ],
            "smaller": [asdict(one) for one in self.smaller],
            "held_by": [asdict(tensor) for tensor in self.held_by],
        }  # fmt: skip

    def _rung(self, way: Way, bound: int) -> dict[str, Any]:
        return way.to_json(self.asked) | {"needed_below": None if way is self.asked else bound}

    def text(self, command: str = "", most: int = 10) -> str:
        """Returns the verdict, the command line, the ladder and all else that was tried."""
        parts = [[*self._verdict(), *([f"  {command}"] if command else [])]]
        if len(self.rungs) > 1:
            head = "step by step" if self.fits else "step by step, as near as was found"
            parts.append([f"{head}:", *_table(self.rungs, self.asked, _new_steps(self.rungs))])
        if self.by_budget:
            ways = (self.asked, *self.by_budget)
            parts.append(["what a budget alone leads to:", *_table(ways, self.asked, [way.what for way in ways])])
        if self.held_by:
            parts.append([*self._holders(most)])
        if self.alone:
            parts.append(["each step alone:", *_table(self.alone, self.asked)])
        if self.clashes:
            parts.append(["these work against each other:", *map(self._against, self.clashes)])
        if self.smaller:
            parts.append(["smaller models that fit as asked:", *map(_smaller, self.smaller)])
        if self.alone:
            parts.append([_note(self.is_run)])
        return joined("\n".join(lines) + "\n" for lines in parts[:-1]) + joined(parts[-1])

    def _verdict(self) -> Iterator[str]:
        budget, best = format_bytes(self.budget_bytes), self.best
        if self.fits and not best.steps and not best.again:
            yield f"{self.model} fits in {budget} as asked: its arena has {_size(best)}"
        elif self.fits:
            yield f"{self.model} has {_size(self.asked)} as asked, and fits in {budget} with {_size(best)}: {best.what}"
        else:
            excess = format_bytes(best.arena_bytes - self.budget_bytes)
            yield (
                f"{self.model} has {_size(self.asked)} as asked, and no combination of steps was found that fits in "
                f"{budget}: the nearest has {_size(best)}, {excess} too much: {best.what}"
            )

    def _holders(self, most: int) -> Iterator[str]:
        best = self.best
        proved = best.lower_bound > self.budget_bytes and not best.again
        rest = ", and no plan of these calls in this order needs less than the budget" if proved else ""
        yield f"what holds it: alive at the peak of that plan{rest}:"
        rows = [(t.name, t.operator, "x".join(map(str, t.shape)), format_bytes(t.bytes)) for t in self.held_by[:most]]
        yield from (f"  {line}" for line in in_columns(rows, {3}))

    def _against(self, clash: Clash) -> str:
        more = ", more than as asked" if clash.both.arena_bytes > self.asked.arena_bytes else ""
        return (
            f"  {clash.both.how}: {format_bytes(clash.both.arena_bytes)}{more}; "
            f"{clash.better.how} alone: {format_bytes(clash.better.arena_bytes)}"
        )


def _size(way: Way) -> str:
    return f"{way.arena_bytes} bytes ({format_bytes(way.arena_bytes)})"


def _smaller(one: Smaller) -> str:
    return f"  {one.what}  {format_bytes(one.arena_bytes)}  [{one.how}]"


def _note(is_run: bool) -> str:
    if is_run:
        return "time: least of some runs on one thread; with ~ estimated. bits: of outputs on random inputs"
    return "time: estimated from operations and kernels; this plan does not run here"


def needed_below(ways: Sequence[Way]) -> list[tuple[Way, int]]:
    """Returns each way with the bytes below which a budget needs it: the smallest arena of those before it."""
    smallest = accumulate((way.arena_bytes for way in ways), min)
    return list(zip(ways, (ways[0].arena_bytes, *smallest), strict=False))


def _new_steps(ways: Sequence[Way]) -> list[str]:
    """Returns in words, for each way, the steps that the one before has not."""
    before = chain(((),), (way.steps for way in ways))
    words = ([s.what for s in way.steps if s not in last] for way, last in zip(ways, before, strict=False))
    return [", ".join(new) or (AGAIN if way.again else AS_ASKED) for way, new in zip(ways, words, strict=True)]


def _table(ways: Sequence[Way], asked: Way, texts: Sequence[str] = ()) -> list[str]:
    """Returns a line for each way; with texts for them, also the bytes below which each is needed."""
    rows = [("step", *(("needed below",) if texts else ()), "arena", "saves", "time", "bits", "")]
    for (way, bound), text in zip(needed_below(ways), texts or [way.what for way in ways], strict=True):
        saved = format_bytes(asked.arena_bytes - way.arena_bytes)
        below = (("" if way is asked else format_bytes(bound)),) if texts else ()
        shown = f"[{way.how}]" if way.steps else ""
        rows.append((text, *below, format_bytes(way.arena_bytes), saved, _time(way, asked), _bits(way), shown))
    return [f"  {line}" for line in in_columns(rows, range(1, 5 if texts else 4))]


def _time(way: Way, asked: Way) -> str:
    again = f" ({way.again:.0%} again)" if way.again else ""
    if not way.ran:
        return f"~{way.cost:.1f} x{again}"
    (run,) = way.ran
    factor = run.seconds / asked.ran[0].seconds if asked.ran else way.cost
    return f"{run.seconds * 1e3:.1f} ms, {factor:.2f} x{again}"


def _bits(way: Way) -> str:
    if not way.ran:
        return way.bits
    difference = way.ran[0].difference
    return "every bit the same" if difference == 0.0 else f"differ by {difference:.0e}"
