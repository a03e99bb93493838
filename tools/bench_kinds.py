"""How a strategy does on instances of nine kinds that nobody has tuned it to (tools/solver_instances.py).

    python -m tools.bench_kinds [--instances 200] [--strategy best] [--timeout 10s] [--alignment 64] [-o FILE]

Kinds take turns. The number of buffers is drawn, too: as many instances have 20 to 200 as have 200 to 2,000. For each
kind: instances, how many plans are proved to be the smallest, the worst gap between arena and bound, and the seconds of
processor of the mean and the slowest instance. With --alignment all buffers have that one in place of their own.
"""

import json
import time
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from attrs import asdict, evolve, frozen

from allocator.io.files import write_whole
from allocator.problem import Status
from allocator.progress import each
from allocator.solvers import BEST, solve
from engine.cli.options.values import STRATEGY_CHOICES, count, duration, positive
from engine.cli.progress import add_quiet, progress_shown
from engine.text.tables import in_columns
from tools.entry import run_script
from tools.solver_instances import KINDS, draw

LEAST, MOST = 20, 2_000


@frozen
class Row:
    """One instance: `draw(kind, buffers, seed)` makes it. `seconds` are those of the processor."""

    kind: str
    buffers: int
    seed: int
    arena_bytes: int
    lower_bound: int
    status: str
    seconds: float

    @property
    def gap(self) -> float:
        """Bytes of the arena above the bound, as a part of the bound."""
        return self.arena_bytes / self.lower_bound - 1


def drawn(instances: int, seed: int) -> Iterator[tuple[str, int, int]]:
    """Yields kind, buffers and seed of each instance."""
    rng, kinds = np.random.default_rng(seed), tuple(KINDS)
    for k in range(instances):
        buffers = round(float(np.exp(rng.uniform(np.log(LEAST), np.log(MOST)))))
        yield kinds[k % len(kinds)], buffers, int(rng.integers(2**31))


def measure(kind: str, buffers: int, seed: int, arguments: Namespace) -> Row:
    """Plans one instance."""
    problem = draw(kind, buffers, seed)
    if "alignment" in arguments:
        problem = evolve(problem, alignment=np.full(len(problem), arguments.alignment))
    limits = {key: getattr(arguments, key) for key in ("seconds", "nodes") if key in arguments}
    begin = time.process_time()
    plan = solve(problem, arguments.strategy, **limits)
    seconds = time.process_time() - begin
    return Row(kind, buffers, seed, plan.arena_bytes, plan.lower_bound, plan.status, seconds)


def table(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Returns the table: a row for each kind, and one for all of them."""
    groups = {kind: [row for row in rows if row.kind == kind] for kind in KINDS} | {"all": list(rows)}
    head = ("kind", "instances", "proved", "worst gap", "mean s", "most s")
    return [head, *((kind, *_told(group)) for kind, group in groups.items() if group)]


def _told(rows: Sequence[Row]) -> tuple[str, ...]:
    proved = sum(row.status == Status.OPTIMAL for row in rows)
    seconds = [row.seconds for row in rows]
    times = f"{sum(seconds) / len(rows):.3f}", f"{max(seconds):.3f}"
    return (str(len(rows)), str(proved), f"{max(row.gap for row in rows):.2%}", *times)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes the rows as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--instances", metavar="N", type=positive, default=200)
    parser.add_argument("--strategy", choices=STRATEGY_CHOICES, default=BEST)
    parser.add_argument("--timeout", dest="seconds", type=duration, default=SUPPRESS, help="of searches, such as 10s")
    parser.add_argument("--nodes", type=positive, default=SUPPRESS, help="of searches")
    parser.add_argument("--seed", type=count, default=0, help="of the instances")
    parser.add_argument("--alignment", metavar="BYTES", type=positive, default=SUPPRESS, help="of all buffers")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        solve(draw("mixed_alignment", MOST, 0), arguments.strategy, seconds=0.1)  # loads the kernels
        rows = [measure(*one, arguments) for one in each("instance", tuple(drawn(arguments.instances, arguments.seed)))]
    print("\n".join(in_columns(table(rows), right=range(1, 6))))
    if arguments.output is not None:
        data = {"seed": arguments.seed, "rows": [asdict(row) for row in rows]}
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
