"""Times the page that shows plans: how large it is, how long it takes to load, to draw and to zoom.

    python -m tools.bench_viewer [-o viewer.json] [--tensors 10000 50000 100000]

Milliseconds in headless Chromium without a graphics processor, in a window of 1440 x 900, the median of some runs.
"load" begins when the browser is told to open the file and ends when the page can be used. "draw" draws all of it anew,
pixels included. "zoom" goes from a turn of the wheel to the next frame. "make" writes the file, from events on.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.exporters import html
from engine.text.tables import in_columns
from tools.chromium import chromium, what_is_missing
from tools.entry import run_script
from tools.synthetic_trace import synthetic_trace

TENSORS = (10_000, 50_000, 100_000)
RUNS = 5
_WATCH = """
new MutationObserver(() => { if (document.body?.dataset.ready) window.readyAt ??= performance.now(); })
  .observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: ["data-ready"]});
"""
"""Notes when the page is ready, in milliseconds since it was opened."""
_DRAW = """() => {
  const begin = performance.now();
  arenaplan.redraw();
  for (const canvas of document.querySelectorAll("canvas")) canvas.getContext("2d").getImageData(0, 0, 1, 1);
  return performance.now() - begin;
}"""
"""Reading a pixel waits until all are drawn."""
_ZOOM = """factor => new Promise((done) => {
  const begin = performance.now();
  const plot = document.getElementById("plot");
  const { left, top, width, height } = plot.getBoundingClientRect();
  const at = { clientX: left + width / 2, clientY: top + height / 2, deltaY: factor, bubbles: true, cancelable: true };
  plot.dispatchEvent(new WheelEvent("wheel", at));
  requestAnimationFrame(() => {
    plot.getContext("2d").getImageData(0, 0, 1, 1);
    done(performance.now() - begin);
  });
})"""


@frozen
class Row:
    """One page; milliseconds, but for `megabytes`."""

    tensors: int
    megabytes: float
    make: float
    load: float
    draw: float
    zoom: float


def measure(browser: Any, tensors: int, runs: int = RUNS) -> Row:
    """Measures the page of a trace of `tensors` tensors."""
    trace = synthetic_trace(tensors)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        begin = time.perf_counter()
        with file.open("wb") as out:
            html.write(trace, out)
        make = 1e3 * (time.perf_counter() - begin)
        load = median(lambda: _load(browser, file), runs)
        page = _opened(browser, file)
        draw = median(lambda: page.evaluate(_DRAW), runs)
        turns = iter([-240, 240] * runs)
        zoom = median(lambda: page.evaluate(_ZOOM, next(turns)), 2 * runs)
        page.context.close()
        size = file.stat().st_size
    return Row(tensors, round(size / 1e6, 2), round(make), round(load), round(draw, 1), round(zoom, 1))


def median(work: Callable[[], float], runs: int) -> float:
    """Does the work `runs` times. Returns the median of its results."""
    return statistics.median(work() for _ in range(runs))


def _opened(browser: Any, file: Path) -> Any:
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(_WATCH)
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready=true]")
    return page


def _load(browser: Any, file: Path) -> float:
    page = _opened(browser, file)
    ready: float = page.evaluate("readyAt")
    page.context.close()
    return ready


def show(rows: Sequence[Row]) -> str:
    """Returns the rows as a table."""
    records: list[dict[str, Any]] = [asdict(row) for row in rows]
    texts = [[f"{value:,}" for value in record.values()] for record in records]
    return "\n".join(in_columns([list(records[0]), *texts], right=range(len(records[0]))))


def main() -> int:
    """Prints a table; writes it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    parser.add_argument("--tensors", type=int, nargs="+", default=TENSORS, help="sizes of plans")
    add_quiet(parser)
    args = parser.parse_args()
    if why := what_is_missing():
        print(f"bench_viewer: {why}", file=sys.stderr)
        return 1
    with progress_shown(args.quiet), chromium() as browser:
        rows = [measure(browser, count) for count in each("pages", args.tensors, lambda count: f"{count:,} tensors")]
    print(show(rows))
    if args.output:
        write_whole(args.output, (json.dumps([asdict(row) for row in rows], indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
