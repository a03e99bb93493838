"""Several memories: what transfers cost against simple assignments, and how near the bound that is, on drawn instances.

    python -m tools.bench_memories [--instances 36] [--timeout 10s] [--nodes N] [--seed 0] [-o memories.json]

Kinds of tools/solver_instances.py and boards take turns; the buffers are 20 to 500. The memories of a board have parts
of the instance's bound, and the largest always has room. Each buffer is written once and read by one to four calls. For
each kind: the geometric mean of the cost over that of both baselines, the mean and the largest gap to the bound, and
the seconds of processor of the mean instance.
"""

import json
import time
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import asdict, frozen

from allocator.bounds import lower_bound
from allocator.io.files import write_whole
from allocator.memories.assign import assign
from allocator.memories.memory import Memory
from allocator.memories.plan import BaselineName, MemoryPlan
from allocator.memories.problem import MemoryProblem
from allocator.progress import each
from engine.cli.options.values import count, duration, positive
from engine.cli.progress import add_quiet, progress_shown
from engine.text.tables import in_columns
from tools.benchmark_tables import memories_table
from tools.entry import run_script
from tools.solver_instances import KINDS, draw

LEAST, MOST = 20, 500
_SLOWEST_SHARE = 4.0
BOARDS: Mapping[str, tuple[tuple[float, float, float, float], ...]] = {
    "tcm, sram, psram": ((0.1, 4e9, 4e9, 0.0), (0.5, 1e9, 1e9, 5e-8), (_SLOWEST_SHARE, 8e7, 5e7, 5e-7)),
    "sram, dram": ((0.4, 4e9, 4e9, 0.0), (_SLOWEST_SHARE, 8e8, 8e8, 2e-7)),
    "scratchpad, dram": ((0.15, 1e11, 1e11, 0.0), (_SLOWEST_SHARE, 2e10, 2e10, 1e-7)),
}
"""Memories of each board, the fastest first: the part of the bound that it has, read and write bandwidth, latency."""


@frozen
class Row:
    """One instance: `drawn_problem(kind, buffers, seed, board)` makes it. Costs are seconds of transfers."""

    kind: str
    buffers: int
    seed: int
    board: str
    cost: float
    bound: float
    status: str
    first_come: float
    density: float
    seconds: float

    @property
    def gap(self) -> float:
        """The cost above the bound, as a part of the cost."""
        return max(0.0, 1 - self.bound / self.cost)


def drawn(instances: int, seed: int) -> Iterator[tuple[str, int, int, str]]:
    """Yields kind, buffers, seed and board of each instance."""
    rng, kinds, boards = np.random.default_rng(seed), tuple(KINDS), tuple(BOARDS)
    for k in range(instances):
        buffers = round(float(np.exp(rng.uniform(np.log(LEAST), np.log(MOST)))))
        yield kinds[k % len(kinds)], buffers, int(rng.integers(2**31)), boards[k // len(kinds) % len(boards)]


def drawn_problem(kind: str, buffers: int, seed: int, board: str) -> MemoryProblem:
    """Draws an instance; the same arguments give the same one."""
    chunks, rng = draw(kind, buffers, seed), np.random.default_rng(seed)
    bound, largest = lower_bound(chunks), int(chunks.size.max())
    memories = tuple(
        Memory(name.strip(), max(1, int(bound * share), largest * (share >= 1)), read, write, latency, alignment=1)
        for name, (share, read, write, latency) in zip(board.split(","), BOARDS[board], strict=True)
    )
    readers = rng.integers(1, 5, len(chunks))
    return MemoryProblem(chunks, memories, chunks.size * readers, chunks.size, readers + 1)


def measure(kind: str, buffers: int, seed: int, board: str, arguments: Namespace) -> Row:
    """Plans one instance."""
    problem = drawn_problem(kind, buffers, seed, board)
    limits = {key: getattr(arguments, key) for key in ("seconds", "nodes") if key in arguments}
    begin = time.process_time()
    plan = assign(problem, **limits)
    seconds = time.process_time() - begin
    first, density = _cost(plan, BaselineName.FIRST_COME), _cost(plan, BaselineName.DENSITY)
    return Row(kind, buffers, seed, board, plan.cost, plan.bound, plan.status, first, density, seconds)


def _cost(plan: MemoryPlan, name: BaselineName) -> float:
    return next(baseline.cost for baseline in plan.baselines if baseline.name == name)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes the rows as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--instances", metavar="N", type=positive, default=36)
    parser.add_argument(
        "--timeout", dest="seconds", type=duration, default=SUPPRESS, help="of an instance, such as 10s"
    )
    parser.add_argument("--nodes", type=positive, default=SUPPRESS, help="of searches")
    parser.add_argument("--seed", type=count, default=0, help="of the instances")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        rows = [measure(*one, arguments) for one in each("instance", tuple(drawn(arguments.instances, arguments.seed)))]
    facts = [asdict(row) | {"gap": row.gap} for row in rows]
    table = list(memories_table(facts))
    print("\n".join(in_columns(table, right=range(1, len(table[0])))))
    if arguments.output is not None:
        data = {"seed": arguments.seed, "rows": facts}
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
