"""Times how traces are written and read, and what memory that takes, one format after the other in fresh processes.

    python -m tools.bench_trace [FORMAT ...] [--events 1000000] [-o trace.json]

The trace is one of columns, as planners make them. Seconds are those of a processor; "growth" is by how much the peak
resident set is above what the columns take. "none" makes events and writes nothing; "read csv" and "read json" read and
check what was written.
"""

import json
import subprocess
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from attrs import asdict, frozen

from allocator.io.files import write_whole
from allocator.progress import each
from engine import Trace, read_trace
from engine.cli.progress import add_quiet, progress_shown
from engine.exporters import FORMATS
from engine.system import process_memory
from engine.text.tables import in_columns
from engine.trace.build import build_trace
from engine.trace.event_table import CODE, EventTable, TensorLabel, rows_of
from engine.trace.trace import ALLOC, BEGIN, END, FREE, GROW, RunInfo
from tools.entry import run_script

NONE, READ = "none", "read "
FORMATS_TIMED = (NONE, "table", "csv", "json", "massif", "perfetto", "pytorch", "chrome", f"{READ}csv", f"{READ}json")
"""The formats that stream, or should."""
_LIVE = 64
"""Chunks that are alive at once, at most."""
_SLOT = 1 << 16
_IN_TICK = (GROW, FREE, BEGIN, ALLOC, END)


@frozen
class Row:
    """One format; seconds and bytes."""

    format: str
    events: int
    seconds: float
    file_bytes: int
    growth_bytes: int

    @property
    def speed(self) -> float:
        """Events written or read in a second."""
        return self.events / self.seconds


def columns(events: int) -> Trace:
    """Makes a trace: one operator a tick, each writes a tensor that lives for some ticks in one of 64 slots."""
    count = max(events // 4, 1)
    chunk = np.arange(count)
    size = 64 + chunk * 7919 % (_SLOT - 64)
    end = np.minimum(chunk + 1 + chunk * 31 % (_LIVE - 1), count)
    of_chunks = {"chunk": chunk, "label": chunk + 1, "bytes": size}
    parts = [
        rows_of(1, kind=CODE[GROW], bytes=_LIVE * _SLOT),
        *(rows_of(count, kind=CODE[kind], tick=chunk) for kind in (BEGIN, END)),
        rows_of(count, kind=CODE[ALLOC], tick=chunk, **of_chunks),
        rows_of(count, kind=CODE[FREE], tick=end, **of_chunks),
    ]
    rows = np.concatenate(parts)
    rows["operator"] = rows["tick"]
    rank = np.array([_IN_TICK.index(kind) if kind in _IN_TICK else 0 for kind in CODE])
    operators = tuple((f"layer_{i}/conv", "conv") for i in range(count + 1))
    labels = (
        TensorLabel(),
        *(TensorLabel(f"layer_{i}/output", "1x64x8x8", "float32", "activation") for i in range(count)),
    )
    order = np.lexsort((rank[rows["kind"]], rows["tick"]))
    table = EventTable(rows[order], operators, labels, chunk % _LIVE * _SLOT, np.zeros(count))
    return build_trace(table, RunInfo(model="columns", mode="static", arena_bytes=_LIVE * _SLOT, ticks=count))


def measure(name: str, events: int) -> Row:
    """Measures one format in this process, which should be a fresh one."""
    source = columns(events)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "trace"
        if name.startswith(READ):
            _write(name.removeprefix(READ), source, file)
            source = read_trace(file)
        process_memory.give_back()
        process_memory.reset_peak()
        before, begin = process_memory.resident_bytes() or 0, time.process_time()
        if name == NONE or name.startswith(READ):
            deque(source, maxlen=0)
        else:
            _write(name, source, file)
        seconds = time.process_time() - begin
        growth = max((process_memory.peak_bytes() or 0) - before, 0)
        size = file.stat().st_size if file.exists() else 0
    return Row(name, events, round(seconds, 3), size, growth)


def _write(name: str, trace: Trace, file: Path) -> None:
    with file.open("wb") as out:
        FORMATS[name].write(trace, out)


def measure_afresh(name: str, events: int) -> Row:
    """Measures one format in a fresh process."""
    command = [sys.executable, "-m", "tools.bench_trace", name, "--events", str(events), "--here"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Row(**json.loads(done.stdout))


def show(rows: Sequence[Row]) -> str:
    """Returns the rows as a table."""
    titles = ["format", "events/s", "seconds", "file", "growth"]
    texts = [
        [
            r.format,
            f"{r.speed:,.0f}",
            f"{r.seconds:.1f}",
            f"{r.file_bytes / 1e6:.0f} MB",
            f"{r.growth_bytes / 1e6:.1f} MB",
        ]
        for r in rows
    ]
    return "\n".join(in_columns([titles, *texts], right=range(1, len(titles))))


def main() -> int:
    """Prints a table; writes it as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    formats = (*FORMATS_TIMED, *(name for name in FORMATS if name not in FORMATS_TIMED))
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=f"of: {', '.join(formats)}")
    parser.add_argument("--events", type=int, default=1_000_000, help="how many, about (default 1000000)")
    parser.add_argument("--here", action="store_true", help="measure one format in this process, and print JSON")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    args = parser.parse_args()
    names = args.formats or FORMATS_TIMED
    if unknown := [name for name in names if name not in formats]:
        parser.error(f"no format {unknown[0]!r}; there are {', '.join(formats)}")
    if args.here:
        print(json.dumps(asdict(measure(names[0], args.events))))
        return 0
    with progress_shown(args.quiet):
        rows = [measure_afresh(name, args.events) for name in each("formats", names, str)]
    print(show(rows))
    if args.output:
        write_whole(args.output, (json.dumps([asdict(row) for row in rows], indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
