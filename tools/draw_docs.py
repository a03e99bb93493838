"""Draws the pictures of the documentation: docs/images/drawn/NAME.svg is the variable NAME of the page that shows it.

    python -m tools.draw_docs [--check]

Pages are run as their tests run them, so a picture shows what the code beside it made: an execution plan or an
executable, which tell their own traces, a problem beside its plan, or a list of memory queues; where a command of the
page writes NAME.svg, that file. With --check nothing is written; the exit code is 1 if a picture is out of date.
"""

import contextlib
import re
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from allocator.bounds import peak_tick, profile
from allocator.kernels.freelist import NO_CHUNK
from allocator.problem import FREE as ANYWHERE
from allocator.problem import Bound, Plan, Problem
from allocator.solvers.megengine import PUSHDOWN
from engine.api import Executable
from engine.execution_plan import ExecutionPlan
from engine.exporters.svg import svg
from engine.pictures.options import PictureOptions
from engine.trace.rectangles import rectangles_of
from engine.trace.simulation import Memory
from engine.trace.trace import ALLOC, FREE, GROW, NOT_RUN, NOTHING, PEAK, Event, RunInfo, Trace
from tools.docs_pages import ROOT, courses, run_commands, run_page
from tools.entry import run_script

DRAWN = ROOT / "docs" / "images" / "drawn"
FRONT, IN_TEXT = (
    PictureOptions(width=820, height=300, caption=False),
    PictureOptions(width=760, height=250, curves=False, legend=False, caption=False),
)
"""On the first page of the site; beside the text of others."""
_SHOWN = re.compile(r"!\[[^\]]*\]\((?:\.\./)?images/drawn/(\w+)\.svg\)")


def pictures() -> Iterator[tuple[Path, str]]:
    """Yields each picture that a page shows: its file, and its SVG."""
    for pages in courses():
        if any(_SHOWN.search(page.read_text()) for page in pages):
            yield from _of_course(pages)


def _of_course(pages: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for page in pages:
            text = page.read_text()
            for _ in run_page(text, page.name, names):
                pass
            look = FRONT if page == ROOT / "docs/index.md" else IN_TEXT
            for name in _SHOWN.findall(text):
                yield DRAWN / f"{name}.svg", _written(text, name) or svg(rectangles_of(trace_of(names[name])), look)


def _written(text: str, name: str) -> str:
    """Runs the command of a page that writes NAME.svg. Returns the SVG; empty if there is no such command."""
    command = re.search(rf"^arenaplan .* -o {name}\.svg$", text, re.MULTILINE)
    if not command:
        return ""
    run_commands(command[0])
    return Path(f"{name}.svg").read_text(encoding="utf-8")


def trace_of(shown: Any) -> Trace:
    """Returns the trace of what a page made. Raises TypeError where it cannot be drawn."""
    if isinstance(shown, ExecutionPlan | Executable):
        return shown.trace()
    if isinstance(shown, tuple) and isinstance(shown[0], Problem):
        return trace_of_solution(*shown)
    if isinstance(shown, list):
        return trace_of_queue(shown)
    raise TypeError(f"a picture shows a plan, an executable, a problem and its plan, or memory queues, not {shown!r}")


def trace_of_queue(queue: Sequence[Memory]) -> Trace:
    """Returns the trace of a memory queue with an event in place of a tick: a block is a buffer while it stays.

    Buffers are called by their chunks, and have a colour a chunk.
    """
    since: dict[tuple[int, int, int], int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for tick, memory in enumerate([*queue, ()]):
        tops = accumulate((size for _, size in memory), initial=0)
        places = {(chunk, at, size) for (chunk, size), at in zip(memory, tops, strict=False) if chunk != NO_CHUNK}
        rows += [(since.pop(place), tick, *place) for place in sorted(since.keys() - places)]
        since |= dict.fromkeys(places - since.keys(), tick)
    begin, end, chunk, at, size = zip(*sorted(rows), strict=True)
    problem = Problem(begin, end, size, [1] * len(rows), [ANYWHERE] * len(rows))
    top = max(sum(size for _, size in memory) for memory in queue)
    return trace_of_solution(
        problem, Plan(at, top, Bound(top), PUSHDOWN.name), [f"buffer {number}" for number in chunk]
    )


def trace_of_solution(problem: Problem, plan: Plan, names: Sequence[str] = ()) -> Trace:
    """Returns the trace of a plan whose buffers belong to no tensor. Those of one name have one colour."""
    live, peak = profile(problem), peak_tick(problem)
    facts = RunInfo(
        "buffers", "static", strategy=plan.strategy, status=plan.status, arena_bytes=plan.arena_bytes,
        lower_bound=plan.lower_bound, bound_reason=plan.bound.reason, footprint_bytes=plan.arena_bytes,
        peak_bytes=int(live[peak]), peak_tick=peak, peak_operator=f"operator {peak}",
        possible_peak_bytes=int(live[peak]), ticks=len(live),
    )  # fmt: skip
    events = tuple(_events(problem, plan, peak, names))
    return Trace(facts, lambda: iter(events))


def _events(problem: Problem, plan: Plan, peak: int, names: Sequence[str]) -> Iterator[Event]:
    live, size = 0, problem.size.tolist()

    def event(tick: int, kind: str, chunk: int, amount: int) -> Event:
        at = int(plan.offset[chunk]) if chunk != NOTHING else NOTHING
        name = "" if chunk == NOTHING else names[chunk] if names else f"buffer {chunk}"
        operator = f"operator {tick}"
        schema = name if names else operator
        return Event(
            tick, kind, operator, schema, name, "", "", "", chunk, at, amount, 0, NOTHING,
            live, plan.arena_bytes, 1, NOT_RUN, NOT_RUN,
        )  # fmt: skip

    yield event(0, GROW, NOTHING, plan.arena_bytes)
    for tick in range(int(problem.end.max()) + 1):
        for kind, column, sign in ((FREE, problem.end, -1), (ALLOC, problem.begin, 1)):
            for chunk in (column == tick).nonzero()[0].tolist():
                live += sign * size[chunk]
                yield event(tick, kind, chunk, size[chunk])
        if tick == peak:
            yield event(tick, PEAK, NOTHING, live)


def main(argv: Sequence[str] | None = None) -> int:
    """Writes what is out of date, or names it."""
    parser = ArgumentParser("draw_docs", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 where something is out of date")
    check = parser.parse_args(argv).check
    drawn = dict(pictures())
    stale = [path for path, text in drawn.items() if not path.exists() or path.read_text() != text]
    left = [path for path in DRAWN.glob("*.svg") if path not in drawn]
    for path in [*stale, *left]:
        print(path.relative_to(ROOT))
    if check:
        return int(bool(stale or left))
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drawn[path])
    for path in left:
        path.unlink()
    return 0


if __name__ == "__main__":
    run_script(main)
