"""Several memories: what it is worth to let tensors change their memory between two uses, on networks of the zoo.

    python -m tools.bench_moves [--parts 0.25,0.5] [--nodes 2000] [-o moves.json]
    python -m tools.bench_moves --drawn 36 [--nodes 2000] [-o drawn.json]

Each network has a fast memory of a part of its arena, a slow one, and flash for its weights; those that training
changes lie in the first two. For each: the seconds of transfers without copies, with copies in their turn, with tensors
that are computed again, too, and with a copy engine that makes copies beside computation; what these copies take, and
what calls wait for them. Networks are small: what counts is how their tensors wait.

With --drawn, instances of tools/bench_memories.py: each buffer is written in its first tick, read in its last one and
in up to three between. For each number of rounds of ruin and recreate: the geometric mean of what the routes cost, by
load alone, over the cost of the assignment that they begin with, and the mean seconds of processor.
"""

import json
import time
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from attrs import asdict, frozen

import engine
from allocator.io.files import write_whole
from allocator.memories.assign import assign
from allocator.memories.changes import STAYS
from allocator.memories.problem import MemoryProblem
from allocator.memories.routes import Visits, find_routes
from allocator.memories.units import Units
from allocator.progress import each
from engine import Graph, zoo
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.report.memories import Transfers
from engine.text.tables import in_columns
from tools.bench_budgets import trained
from tools.bench_memories import drawn, drawn_problem
from tools.benchmark_tables import moves_table
from tools.entry import run_script

NETWORKS: Mapping[str, Callable[[], Graph]] = {
    "unet": partial(zoo.unet, image=64, width=8),
    "mobilenet_v2": partial(zoo.mobilenet_v2, image=96),
    "squeezenet": partial(zoo.squeezenet, image=64),
    "densenet121": partial(zoo.densenet121, image=32),
    "encoder": zoo.encoder,
    "resnet18, training": lambda: trained(zoo.resnet18(batch=2, image=32, training=True)),
    "unet, training": lambda: trained(zoo.unet(image=32, width=8, training=True)),
}
FLASH = "flash"
ROUNDS = (0, 30, 100, 300, 1000)
"""The rounds of the search for routes that are compared."""


@frozen
class Row:
    """One network with a fast memory of a part of its arena; transfers in seconds, with those of flash.

    `copies` are seconds with copies in their turn; `moved` with `recomputed` tensors that are computed again, too, and
    `moves` copies of `moved_bytes`. With a copy engine that are `engine` seconds: the copies take `copy_seconds`, and
    calls wait `waiting_seconds`. `seconds`: of processor, for each of the three plans.
    """

    network: str
    part: float
    without: float
    copies: float
    moved: float
    moves: int
    moved_bytes: int
    recomputed: int
    engine: float
    copy_seconds: float
    waiting_seconds: float
    seconds: tuple[float, ...]


def measure(network: str, part: float, nodes: int) -> Row:
    """Plans one network."""
    graph = NETWORKS[network]()
    arena = engine.make_plan(graph, nodes=nodes).arena_bytes
    board = [
        f"fast={max(int(arena * part), 1)},4GB/s",
        f"slow={4 * arena},0.4GB/s,latency=100ns",
        f"{FLASH}=1GiB,0.1GB/s,read-only",
    ]
    with_engine = [f"{memory},copy-engine" if not memory.startswith(FLASH) else memory for memory in board]
    options: dict[str, Any] = {"place": {"constants": FLASH}} if graph.constants else {}
    planned, seconds = list[Transfers](), list[float]()
    for memories, recompute in ((board, False), (board, True), (with_engine, True)):
        begin = time.process_time()
        plan = engine.make_plan(graph, memories=memories, recompute=recompute, nodes=nodes, **options)
        planned += plan.report().transfers
        seconds.append(time.process_time() - begin)
    copies, moved, beside = planned
    return Row(
        network=network,
        part=part,
        without=copies.unmoved_seconds,
        copies=copies.seconds,
        moved=moved.seconds,
        moves=len(moved.moves),
        moved_bytes=moved.moved_bytes,
        recomputed=len(moved.recomputed),
        engine=beside.seconds,
        copy_seconds=beside.copy_seconds,
        waiting_seconds=beside.waiting_seconds,
        seconds=tuple(seconds),
    )


@frozen
class Drawn:
    """An instance of tools/bench_memories.py with visits: what routes cost after some rounds, over the assignment."""

    kind: str
    buffers: int
    seed: int
    board: str
    rounds: int
    cost: float
    seconds: float


def visited(kind: str, buffers: int, seed: int, board: str) -> tuple[MemoryProblem, Visits]:
    """Draws an instance in which each buffer is visited in some ticks; the same arguments give the same one."""
    whole, rng, rows = drawn_problem(kind, buffers, seed, board), np.random.default_rng(seed), list[tuple[int, ...]]()
    chunks = whole.chunks
    for chunk, (begin, end, size) in enumerate(
        zip(*(c.tolist() for c in (chunks.begin, chunks.end, chunks.size)), strict=True)
    ):
        between = rng.integers(begin, end, int(rng.integers(0, 4))).tolist()
        ticks = sorted({begin, end - 1, *between})
        for tick in ticks:
            nbytes = STAYS if tick == end - 1 else size
            rows.append((chunk, tick, size * (tick > begin), size * (tick == begin), 1, nbytes, nbytes))
    visits = Visits(*(np.array(rows).T))
    read, written, calls = (
        np.bincount(visits.unit, weight, len(chunks)) for weight in (visits.read, visits.written, visits.calls)
    )
    return MemoryProblem(chunks, whole.memories, read, written, calls), visits


def measure_drawn(kind: str, buffers: int, seed: int, board: str, nodes: int) -> list[Drawn]:
    """Finds routes of one instance, with each number of rounds."""
    problem, visits = visited(kind, buffers, seed, board)
    plan, units, rows = assign(problem, nodes=nodes), Units.of(problem), list[Drawn]()
    for rounds in ROUNDS:
        begin = time.process_time()
        cost = find_routes(units, plan.memory, visits, rounds=rounds).seconds / plan.cost
        rows.append(Drawn(kind, buffers, seed, board, rounds, cost, time.process_time() - begin))
    return rows


def drawn_table(rows: Sequence[Drawn]) -> list[tuple[str, ...]]:
    """Returns the table: a row for each number of rounds."""
    lines: list[tuple[str, ...]] = [("rounds", "/ assignment", "mean s")]
    for rounds in ROUNDS:
        some = [row for row in rows if row.rounds == rounds]
        mean, seconds = geometric_mean([row.cost for row in some]), sum(row.seconds for row in some) / len(some)
        lines.append((str(rounds), f"{mean:.3f}", f"{seconds:.2f}"))
    return lines


def _parts(text: str) -> tuple[float, ...]:
    try:
        parts = tuple(map(float, text.split(",")))
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no list of numbers") from error
    if not all(0 < part <= 1 for part in parts):
        raise ArgumentTypeError(f"{text!r}: each part is above 0, and at most 1")
    return parts


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes the rows as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--networks", metavar="NAME", nargs="+", choices=tuple(NETWORKS), default=tuple(NETWORKS))
    parser.add_argument("--parts", type=_parts, default=(0.25, 0.5), help="of the arena, for the fast memory")
    parser.add_argument("--nodes", type=positive, default=2_000, help="of searches")
    parser.add_argument("--drawn", metavar="N", type=positive, help="instances in place of networks")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    nodes, rows = arguments.nodes, list[Any]()
    with progress_shown(arguments.quiet):
        if arguments.drawn is None:
            pairs = [(network, part) for network in arguments.networks for part in arguments.parts]
            rows = [measure(*pair, nodes) for pair in each("network", pairs)]
            lines = in_columns(list(moves_table([asdict(row) for row in rows])), right=range(1, 11))
        else:
            instances = tuple(drawn(arguments.drawn, 0))
            rows = [row for one in each("instance", instances) for row in measure_drawn(*one, nodes)]
            lines = in_columns(drawn_table(rows), right=range(3))
    print("\n".join(lines))
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps({"rows": [asdict(row) for row in rows]}, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
