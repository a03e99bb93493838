"""How often a strategy finds a plan within a capacity at which one is known, on instances like a compiler's.

    python -m tools.bench_capacity [--instances 20] [--strategy best] [--timeout 10s] [--seed 0] [-o capacity.json]

Instances have 100 to 500 buffers and a plan of 1,048,576 bytes (`compiler_lives` in tools/solver_instances.py), which
the strategy does not see. Each is planned with that capacity, and with 1 and 5 % more. For each capacity: instances,
plans within it, those of them within two seconds, the worst arena as a part of the capacity, and the seconds of
processor of the mean and the slowest instance.
"""

import json
import time
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from attrs import asdict, frozen

from allocator.io.files import write_whole
from allocator.progress import each
from allocator.solvers import BEST, solve
from engine.cli.options.values import STRATEGY_CHOICES, count, duration, positive
from engine.cli.progress import add_quiet, progress_shown
from engine.text.tables import in_columns
from tools.benchmark_tables import capacity_table
from tools.entry import run_script
from tools.solver_instances import COMPILER_LIVES, HEIGHT, draw

LEAST, MOST = 100, 500
SHARES = (1.0, 1.01, 1.05)
"""Capacities, as parts of the bytes in which a plan is known."""


@frozen
class Row:
    """One instance, `draw(COMPILER_LIVES, buffers, seed)`, with one capacity. `seconds` are those of the processor."""

    buffers: int
    seed: int
    capacity: int
    arena_bytes: int
    lower_bound: int
    seconds: float


def drawn(instances: int, seed: int) -> Iterator[tuple[int, int]]:
    """Yields buffers and seed of each instance."""
    rng = np.random.default_rng(seed)
    for _ in range(instances):
        yield round(float(np.exp(rng.uniform(np.log(LEAST), np.log(MOST))))), int(rng.integers(2**31))


def measure(buffers: int, seed: int, capacity: int, arguments: Namespace) -> Row:
    """Plans one instance."""
    problem = draw(COMPILER_LIVES, buffers, seed)
    limits = {key: getattr(arguments, key) for key in ("seconds", "nodes") if key in arguments}
    begin = time.process_time()
    plan = solve(problem, arguments.strategy, capacity=capacity, **limits)
    return Row(buffers, seed, capacity, plan.arena_bytes, plan.lower_bound, time.process_time() - begin)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes the rows as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--instances", metavar="N", type=positive, default=20)
    parser.add_argument("--strategy", choices=STRATEGY_CHOICES, default=BEST)
    parser.add_argument("--timeout", dest="seconds", type=duration, default=SUPPRESS, help="of searches, such as 10s")
    parser.add_argument("--nodes", type=positive, default=SUPPRESS, help="of searches")
    parser.add_argument("--seed", type=count, default=0, help="of the instances")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    works = [(*one, round(share * HEIGHT)) for share in SHARES for one in drawn(arguments.instances, arguments.seed)]
    with progress_shown(arguments.quiet):
        solve(draw(COMPILER_LIVES, MOST, 0), arguments.strategy, seconds=0.1)  # loads the kernels
        rows = [asdict(measure(*work, arguments)) for work in each("instance", tuple(works))]
    print("\n".join(in_columns([tuple(line) for line in capacity_table(rows)], right=range(7))))
    if arguments.output is not None:
        data = {"seed": arguments.seed, "rows": rows}
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
