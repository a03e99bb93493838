"""Times what a new choice of lengths costs, and shows what stages and bounded plans cost in bytes.

    python -m tools.bench_stages [-o stages.json]

Milliseconds, the least of some runs, all judges on. "bind" puts numbers in place of names, "plan" is what a run with
lengths that are planned take before they run, "again" what one with the same lengths takes to find its plan in the
cache. The encoder has 12 layers and is narrow: widths do not matter to the planner. The last two tables are those of
tools/length_rows.py.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, field, frozen

import engine
from allocator.io.files import write_whole
from allocator.progress import each
from engine import Executable, Graph, zoo
from engine.cli.progress import add_quiet, progress_shown
from engine.graph.bindings import Bindings
from engine.stages.bind import input_shapes
from engine.stages.cache import PlanCache
from engine.stages.run import StagedExecutor
from engine.stages.stage import Stage, first_stage
from engine.text.tables import in_columns
from engine.zoo.encoder import EncoderSize, encoder
from ops.tensor.spec import Array
from tools.entry import run_script
from tools.length_rows import DecodingRow, LengthRow, decoding_rows, length_rows
from tools.staged_networks import CLASSES, WORDS, Decoder, tail

RUNS = 20
Lengths = Mapping[str, int]


@frozen
class Bench:
    """A network with names, lengths to try one after the other, and bounds."""

    name: str
    build: Callable[[], Graph]
    lengths: tuple[Lengths, ...]
    bounds: Mapping[str, tuple[int, int]] = field(factory=dict)


@frozen
class Row:
    """One network; milliseconds."""

    network: str
    operators: int
    bind: float
    plan: float
    again: float


@frozen
class Cost:
    """Bytes for some lengths, planned exactly and by the one plan for all lengths up to the bounds."""

    network: str
    lengths: str
    exact_bytes: int
    bounded_bytes: int
    factor: float


@frozen
class Staged:
    """A run whose sizes data decide: bytes of its arena, those of one plan that knew all sizes, and the loss."""

    example: str
    stages: int
    arena_bytes: int
    known_bytes: int
    loss: float


Table = Row | Cost | Staged | LengthRow | DecodingRow


def narrow_encoder() -> Graph:
    """Builds an encoder of twelve layers, whose batch and sequence are names."""
    return encoder(EncoderSize(layers=12, width=48, batch="batch", sequence="sequence"))


def _sizes(batches: Iterable[int], sequence: int = 0) -> tuple[Lengths, ...]:
    return tuple({"batch": b} | ({"sequence": sequence + b} if sequence else {}) for b in batches)


BENCHES = (
    Bench("encoder", narrow_encoder, _sizes(range(1, 9), 60), {"batch": (1, 8), "sequence": (1, 128)}),
    Bench("resnet50", lambda: zoo.resnet50(batch="batch"), _sizes(range(1, 9)), {"batch": (1, 8)}),
    Bench("mobilenet_v2", lambda: zoo.mobilenet_v2(batch="batch"), _sizes(range(1, 9)), {"batch": (1, 8)}),
)


def least(works: Iterable[Callable[[], object]]) -> float:
    """Returns the milliseconds of the fastest one."""
    seconds = []
    for work in works:
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return round(1e3 * min(seconds), 3)


def measure(bench: Bench, runs: int = RUNS) -> Row:
    """Times what new lengths cost in one network. Returns its row."""
    graph = bench.build()
    executor = staged_executor(engine.compile(graph))
    chosen = [bench.lengths[i % len(bench.lengths)] for i in range(runs)]

    def plan(lengths: Lengths) -> Callable[[], Stage]:
        return lambda: first_stage(executor.template, _facts(graph, lengths), executor.terms)

    def look_up(lengths: Lengths) -> Callable[[], object]:
        def find() -> object:
            cache.start()
            return cache.get((tuple(lengths.items()), ()), plan(lengths))

        return find

    cache = PlanCache(1)
    look_up(chosen[0])()
    return Row(
        bench.name,
        len(graph.operators),
        bind=least(partial(engine.bind, graph, lengths) for lengths in chosen),
        plan=least(map(plan, chosen)),
        again=least(look_up(chosen[0]) for _ in chosen),
    )


def staged_executor(exe: Executable) -> StagedExecutor:
    """Returns the executor of a graph whose lengths are names."""
    assert isinstance(exe.executor, StagedExecutor)
    return exe.executor


def _facts(graph: Graph, lengths: Lengths) -> Bindings:
    return Bindings(lengths, input_shapes(graph, lengths))


def bound_rows(bench: Bench) -> list[Cost]:
    """Returns what one plan for all lengths costs, for each choice of lengths."""
    exe = engine.compile(bench.build(), length_ranges=bench.bounds)
    return [
        Cost(
            bench.name,
            ", ".join(f"{n}={v}" for n, v in c.lengths.items()),
            c.exact_bytes,
            c.bounded_bytes,
            round(c.factor, 3),
        )
        for c in exe.length_range_costs()
    ]


def staged_rows() -> list[Staged]:
    """Runs the tail of a detector on 500 and 4000 boxes, and a greedy decoder on two prompts. Returns their bytes."""
    rows = []
    executable = engine.compile(tail())
    for count in (500, 4000):
        executable.run(boxes(count))
        rows.append(_staged(f"detector tail, {count} boxes", executable))
    decoder = Decoder.drawn()
    words = engine.compile(decoder.graph())
    for count, most in ((5, 30), (12, 60)):
        prompt = np.random.default_rng(count).integers(0, WORDS, count)
        words.run({"prompt": prompt, "end": np.asarray(-1), "most": np.asarray(most)})
        rows.append(_staged(f"greedy decoder, {count} to {most} tokens", words))
    return rows


def boxes(count: int) -> dict[str, Array]:
    """Returns seeded inputs of the tail of a detector."""
    rng = np.random.default_rng(0)
    arrays = rng.standard_normal((1, count, 4)) * 4, rng.random((1, CLASSES, count)), rng.standard_normal((count, 64))
    fed = {n: a.astype(np.float32) for n, a in zip(("boxes", "scores", "features"), arrays, strict=True)}
    return fed | {n: np.asarray(v, np.float32) for n, v in (("least", 0.3), ("sure", 0.6))}


def _staged(example: str, exe: Executable) -> Staged:
    report = exe.stage_report()
    return Staged(example, len(report.stages), report.arena_bytes, report.known_bytes, round(report.loss, 4))


def show(rows: Sequence[Table]) -> str:
    """Returns the rows as a table; numbers are aligned to the right."""
    records: list[dict[str, Any]] = [asdict(row) for row in rows]
    texts = [list(map(str, record.values())) for record in records]
    right = [i for i, value in enumerate(records[0].values()) if not isinstance(value, str)]
    return "\n".join(in_columns([list(records[0]), *texts], right=right))


def main() -> None:
    """Prints the tables; writes them as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    args = parser.parse_args()
    with progress_shown(args.quiet):
        tables: dict[str, Sequence[Table]] = {
            "plans": [measure(bench) for bench in each("plans", BENCHES, lambda bench: bench.name)],
            "bounded": [row for b in each("bounds", BENCHES, lambda bench: bench.name) for row in bound_rows(b)],
            "stages": staged_rows(),
            "lengths": length_rows(),
            "decoding": decoding_rows(),
        }
    print("\n\n".join(map(show, tables.values())))
    if args.output:
        data = {name: [asdict(row) for row in rows] for name, rows in tables.items()}
        write_whole(args.output, (json.dumps(data, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
