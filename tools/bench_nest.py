"""What it saves to compute tensors inside others, and by the order: bytes of the arena, copies, time; in one process.

    python -m tools.bench_nest [densenet121:1 inception_v3:8:train ...] [--runs 5] [-o nest.json]

A network is a name of the zoo, a batch, and "train" for a step of SGD with momentum: forward, backward and updates.
Parameters and momentum lie in the arena too. `--runs 0` only plans.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
from attrs import asdict, evolve, frozen

import engine
from allocator.io.files import write_whole
from allocator.progress import each
from engine import Executable, Graph
from engine.cli.progress import add_quiet, progress_shown, say
from engine.lower.order import MEMORY
from engine.planning.options import Options
from engine.planning.planner import plan_graph
from engine.report.report import report
from engine.text.tables import in_columns
from engine.zoo import NETWORKS
from tools.entry import run_script

CASES = (
    *("densenet121:1", "inception_v3:1", "inception_bn:1", "squeezenet:1", "unet:1", "random_wired:1"),
    *("densenet121:8", "inception_v3:8", "densenet121:1:train", "densenet121:8:train", "inception_v3:1:train"),
    *("inception_v3:8:train", "inception_bn:8:train", "squeezenet:8:train", "unet:1:train", "random_wired:8:train"),
)


@frozen
class Row:
    """One network: bytes of the arena without and with nesting, what was not copied, least milliseconds.

    `ordered_bytes` and `both_bytes` are those of the arena in the memory order, without and with nesting.
    `joined` and `joined_bytes`: inputs that were computed where they are joined; `copies`: those that the plan has put
    in. A time of 0 was not taken.
    """

    network: str
    batch: int
    train: bool
    plain_bytes: int
    nested_bytes: int
    joined: int
    joined_bytes: int
    copies: int
    overwritten: int
    overwritten_bytes: int
    plain_plan_ms: float
    nested_plan_ms: float
    plain_run_ms: float
    nested_run_ms: float
    ordered_bytes: int
    both_bytes: int

    @property
    def saved(self) -> float:
        """The share of the arena that nesting saves."""
        return 1 - self.nested_bytes / self.plain_bytes


def _case(text: str) -> str:
    """Reads a network with its batch. Raises ArgumentTypeError."""
    name, _, rest = text.partition(":")
    batch, _, train = rest.partition(":")
    if name not in NETWORKS or not batch.isdecimal() or train not in ("", "train"):
        raise argparse.ArgumentTypeError(f"{text!r} is no network with a batch, such as {CASES[0]} or {CASES[-1]}")
    return text


def built(name: str, batch: int, train: bool) -> Graph:
    """Builds a network of the zoo, or a step of training it."""
    graph = NETWORKS[name](batch=batch, training=train)
    if train:
        engine.train_step(graph, graph.outputs["loss"], engine.SGD(0.01, momentum=0.9))
    return graph


def least(work: Callable[[], object], runs: int) -> float:
    """Returns the milliseconds of the fastest run; 0 if there are no runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return round(1e3 * min(times, default=0.0), 3)


def run_times(graph: Graph, runs: int) -> tuple[float, float]:
    """Returns the least milliseconds of a run without nesting and with it; the two run in turn. (0, 0) for no runs."""
    if not runs:
        return 0.0, 0.0
    both: list[Executable] = [engine.compile(graph, nest=nest, optimise=0) for nest in (False, True)]
    rng = np.random.default_rng(0)
    feeds = {
        n: np.zeros(v.shape, v.dtype) if v.dtype == np.int64 else rng.normal(size=v.shape).astype(v.dtype)
        for n, v in graph.inputs.items()
    }
    for executable in both:
        executable.run(feeds)
    pairs = [[least(partial(e.run, feeds), 1) for e in both] for _ in range(runs)]
    return min(f[0] for f in pairs), min(f[1] for f in pairs)


def measure(case: str, runs: int) -> Row:
    """Plans and runs one network, with nesting and without. Returns its row."""
    name, batch, *train = case.split(":")
    graph = built(name, int(batch), bool(train))
    options = [Options(nest=nest) for nest in (False, True)]
    plain, nested = (plan_graph(graph, option) for option in options)
    ordered, both = (plan_graph(graph, evolve(option, order=MEMORY)).arena_bytes for option in options)
    plan_times = [least(partial(plan_graph, graph, option), min(runs, 3)) for option in options]
    run_least = run_times(graph, runs)
    saved = report(nested).savings
    return Row(
        name,
        int(batch),
        bool(train),
        plain.arena_bytes,
        nested.arena_bytes,
        saved.nested.tensors,
        saved.nested.bytes,
        saved.copies.tensors,
        saved.overwrites.tensors,
        saved.overwrites.bytes,
        plan_times[0],
        plan_times[1],
        run_least[0],
        run_least[1],
        ordered,
        both,
    )


def show(rows: Iterable[Row]) -> str:
    """Returns the rows as a table."""
    names = (
        "network",
        "batch",
        "train",
        "arena without",
        "arena",
        "saved",
        "in the memory order, without",
        "with",
        "joined in place",
        "bytes",
        "copies left",
        "plan ms without",
        "with",
        "run ms without",
        "with",
    )
    texts = [
        (
            row.network,
            str(row.batch),
            "yes" if row.train else "",
            f"{row.plain_bytes:,}",
            f"{row.nested_bytes:,}",
            f"{row.saved:.1%}",
            f"{row.ordered_bytes:,}",
            f"{row.both_bytes:,}",
            str(row.joined),
            f"{row.joined_bytes:,}",
            str(row.copies),
            f"{row.plain_plan_ms:.0f}",
            f"{row.nested_plan_ms:.0f}",
            f"{row.plain_run_ms:.1f}",
            f"{row.nested_run_ms:.1f}",
        )
        for row in rows
    ]
    return "\n".join(in_columns([names, *texts], right=range(1, len(names))))


def main() -> None:
    """Prints the table; writes it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", type=_case, default=CASES, help="NAME:BATCH or NAME:BATCH:train")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    args = parser.parse_args()
    rows = []
    with progress_shown(args.quiet):
        for case in each("network", args.networks):
            rows.append(measure(case, args.runs))
            say(show(rows[-1:]))
    print(show(rows))
    if args.output:
        write_whole(args.output, (json.dumps({"rows": [asdict(row) for row in rows]}, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
