"""How the strategy `best` does on the networks of the zoo, forward only and in training, at several batches.

    python -m tools.bench_zoo [NAME ...] [--batch 1 3 8] [-o zoo.json]

For each network: its plans, how many of them are proved to be the smallest, the worst number of bytes between arena and
bound, and the milliseconds of processor that the solver, the bound and the judge take for the slowest plan. Lowering
and orders of operators are not in them.
"""

import json
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from attrs import asdict, frozen

from allocator.io.files import write_whole
from allocator.progress import each
from allocator.solvers import solve
from engine import make_plan
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.models.batches import at_batch, training_at_batch
from engine.models.named import NamedModel
from engine.models.zoo import PREFIX, can_train
from engine.text.tables import in_columns
from engine.zoo import NETWORKS
from tools.benchmark_tables import zoo_table
from tools.entry import run_script

REPEAT = 3


@frozen
class Row:
    """One plan of a network. `seconds` are those of the processor, the least of REPEAT runs."""

    network: str
    mode: str
    batch: int
    buffers: int
    arena_bytes: int
    lower_bound: int
    status: str
    seconds: float


def measure(network: str, batch: int) -> list[Row]:
    """Plans a network forward only, and a step of its training where it has one."""
    model = Path(PREFIX + network)
    named = NamedModel(model)
    graphs = {"forward": at_batch(named, batch, is_forward=True)}
    if can_train(model):
        graphs["training"] = training_at_batch(named, batch)
    rows = []
    for mode, graph in graphs.items():
        problem = make_plan(graph).problem
        seconds = []
        for _ in range(REPEAT):
            begin = time.process_time()
            plan = solve(problem)
            seconds.append(time.process_time() - begin)
        figures = len(problem), plan.arena_bytes, plan.lower_bound, plan.status
        rows.append(Row(network, mode, batch, *figures, min(seconds)))
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes the rows as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("networks", metavar="NAME", nargs="*", help="default: all of them")
    parser.add_argument("--batch", type=positive, nargs="+", default=[1, 3, 8], help="default 1 3 8")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        cases = [(name, batch) for name in arguments.networks or NETWORKS for batch in arguments.batch]
        rows = [row for case in each("network", cases) for row in measure(*case)]
    records = [asdict(row) for row in rows]
    print("\n".join(in_columns([tuple(line) for line in zoo_table(records)], right=range(1, 6))))
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps({"rows": records}, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
