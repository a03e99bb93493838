"""Times planning at scale, phase by phase: random chunks, one long overwrite chain, one tall stack.

    python tools/bench_plan.py [-n 100000] [-o plan.json]

Random instances: sizes 1 to 4096 bytes, about 100 chunks alive at once, one program of as many steps as chunks.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from attrs import asdict, frozen

from allocator.bounds import lower_bound
from allocator.check.offsets import check
from allocator.derive.chunks import derive, to_problem
from allocator.io.files import write_whole
from allocator.progress import each
from allocator.solvers import STRATEGIES
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.steps import OverwriteForward, Program, Step
from engine.cli.progress import add_quiet, progress_shown, say
from tools.entry import run_script

T = TypeVar("T")
ALIVE = 100
PHASES = ("derive_s", "to_problem_s", "solve_s", "check_s", "bound_s")


@frozen
class Row:
    """One instance: seconds per phase, and how good the plan is."""

    instance: str
    chunks: int
    strategy: str
    derive_s: float
    to_problem_s: float
    solve_s: float
    check_s: float
    bound_s: float
    arena_bytes: int
    lower_bound: int

    @property
    def total_s(self) -> float:
        """The seconds of all phases together."""
        return self.derive_s + self.to_problem_s + self.solve_s + self.check_s + self.bound_s


def random_program(count: int, seed: int) -> Program:
    """Makes a program whose step t writes value t. Each value is read for the last time in a random later step."""
    draw = random.Random(seed)
    reads: list[list[int]] = [[] for _ in range(count + 2 * ALIVE)]
    for value in range(count):
        reads[value + draw.randint(1, 2 * ALIVE - 1)].append(value)
    steps = [Step(tuple(r), (t,) if t < count else ()) for t, r in enumerate(reads)]
    return Program(tuple(steps), tuple(draw.randint(1, 4096) for _ in range(count)))


def chain_program(count: int, _seed: int) -> Program:
    """Makes a program in which each step overwrites what the step before it wrote, one byte further on."""
    rest = (Step((v - 1,), (v,), (), (OverwriteForward(v, v - 1, 1),)) for v in range(1, count))
    return Program((Step(writes=(0,)), *rest), tuple(range(count, 0, -1)))


def stack_program(count: int, seed: int) -> Program:
    """Makes a program whose last step reads everything that the steps before it write."""
    draw = random.Random(seed)
    steps = (*(Step(writes=(v,)) for v in range(count)), Step(reads=tuple(range(count))))
    return Program(steps, tuple(draw.randint(1, 4096) for _ in range(count)))


INSTANCES = {"random": random_program, "chain": chain_program, "stack": stack_program}


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Does the work. Returns its result, and the seconds that it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def measure(instance: str, count: int, strategy: str, seed: int, alignment: int) -> Row:
    """Times all phases on one instance. Raises SystemExit where the plan is not valid."""
    program = INSTANCES[instance](count, seed)
    chunks, derive_s = timed(lambda: derive(program))
    problem, to_problem_s = timed(lambda: to_problem(chunks, alignment))
    answer, solve_s = timed(lambda: STRATEGIES[strategy].solve(problem, SolverOptions(seed)))
    offset = answer.offset
    arena = arena_bytes(problem, offset)
    fault, check_s = timed(lambda: check(problem, offset, arena))
    if fault is not None:
        raise SystemExit(f"{instance}: {fault.message}")
    bound, bound_s = timed(lambda: lower_bound(problem))
    return Row(instance, count, strategy, derive_s, to_problem_s, solve_s, check_s, bound_s, arena, bound)


def show(row: Row) -> str:
    """Returns one line of the table."""
    phases = "".join(f"{getattr(row, phase):>14.3f}" for phase in PHASES)
    ratio = row.arena_bytes / row.lower_bound
    return f"{row.instance:<8}{row.chunks:>9}  {row.strategy:<16}{phases}{row.total_s:>10.3f}{ratio:>10.4f}"


def main() -> None:
    """Prints the table; writes it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="numbers of chunks")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    parser.add_argument("--strategy", choices=tuple(STRATEGIES), default="pushdown_sorted")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alignment", type=int, default=1)
    add_quiet(parser)
    args = parser.parse_args()
    names = "".join(f"{phase:>14}" for phase in PHASES)
    print(f"{'instance':<8}{'chunks':>9}  {'strategy':<16}{names}{'total_s':>10}{'ratio':>10}")
    rows = []
    cases = [(instance, count) for count in args.n for instance in INSTANCES]
    with progress_shown(args.quiet):
        for instance, count in each("instance", cases, lambda case: f"{case[0]}, {case[1]:,} chunks"):
            rows.append(measure(instance, count, args.strategy, args.seed, args.alignment))
            say(show(rows[-1]))
    if args.output:
        records = [asdict(row) | {"total_s": row.total_s} for row in rows]
        data = {"seed": args.seed, "alignment": args.alignment, "rows": records}
        write_whole(args.output, (json.dumps(data, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
