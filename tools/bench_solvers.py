"""Times strategies on instances: files and folders of files, and random ones.

    python -m tools.bench_solvers FOLDER x.csv --random 100000 --strategy pushdown best [-o solvers.json]

Seconds are the least of --repeat runs of the solver alone, compiled before ("best": with judge and bound). Without
--strategy all are run, but for those that would be too slow. --kind says what is drawn for --random
(tools/solver_instances.py). --startup times whole processes instead, from their start to the plan on the screen: with
an empty folder of compiled kernels (cold) and with a full one (warm, and the seconds of the processor: the least of
--repeat).
"""

import json
import math
import os
import platform
import re
import resource
import subprocess
import sys
import time
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from attrs import asdict, evolve, frozen

from allocator.bounds import proved_bound
from allocator.breadths import breadths
from allocator.check.offsets import check
from allocator.errors import AllocatorError
from allocator.io import formats
from allocator.io.files import write_whole
from allocator.io.instance import Instance
from allocator.problem import NO_CAPACITY, Bound, Plan, Problem, column
from allocator.progress import each
from allocator.solvers import BEST, STRATEGIES, solve
from allocator.solvers.base import NO_NODES, SolverOptions, arena_bytes
from engine.cli.options.values import STRATEGY_CHOICES, count, duration, positive
from engine.cli.progress import add_quiet, progress_shown, say
from tools.entry import run_script
from tools.solver_instances import GENERATORS, RANDOM, draw

T = TypeVar("T")
WARM_UP_BUFFERS, WARM_UP_SECONDS = 2_000, 0.1
_CAPACITY = re.compile(r"\.(\d+)\.[a-z]+$")
_COMMAND = "import sys; from engine.cli.main import main; sys.exit(main())"


@frozen
class Row:
    """One strategy on one instance. `breadth` is the most bytes alive at once. `note` says why there are no numbers."""

    instance: str
    buffers: int
    strategy: str
    arena_bytes: int = 0
    breadth: int = 0
    lower_bound: int = 0
    ratio: float = 0.0
    seconds: float = 0.0
    status: str = ""
    note: str = ""


@frozen
class Startup:
    """Seconds of whole processes; `processor_s` are those of the processor, which other programs change less."""

    instance: str
    buffers: int
    strategy: str
    cold_s: float
    warm_s: float
    processor_s: float


def instances(arguments: Namespace) -> Iterator[tuple[str, Instance, int]]:
    """Yields (name, instance, capacity) for each file and each number of random buffers that is asked for."""
    for path in arguments.paths:
        for file in sorted(path.rglob("*.csv")) if path.is_dir() else [path]:
            match = _CAPACITY.search(file.name) if arguments.capacity_from_name else None
            yield file.name, formats.read(file), int(match[1]) if match else NO_CAPACITY
    for buffers in arguments.random:
        problem = draw(arguments.kind, buffers, arguments.seed)
        yield f"{arguments.kind}_{buffers}", Instance(problem, map(str, range(buffers))), NO_CAPACITY


def beginning(problem: Problem, most: int) -> Problem:
    """Returns the first buffers of a problem, at most `most`; one with overwrites or conflicts is returned as it is."""
    if len(problem) <= most or len(problem.src) or problem.conflicts is not None:
        return problem
    columns = ("begin", "end", "size", "alignment", "pinned")
    return evolve(problem, **{name: getattr(problem, name)[:most] for name in columns})


def measure(name: str, problem: Problem, strategy: str, capacity: int, arguments: Namespace) -> Row:
    """Times one strategy on one instance, after a short run that compiles what it needs."""
    limits = {key: getattr(arguments, key) for key in ("seconds", "nodes") if key in arguments}
    row = Row(name, len(problem), strategy)
    try:
        solve(beginning(problem, WARM_UP_BUFFERS), strategy, capacity=capacity, **limits | {"seconds": WARM_UP_SECONDS})
        runs = [_run(problem, strategy, capacity, arguments.seed, limits) for _ in range(arguments.repeat)]
    except AllocatorError as error:
        return evolve(row, note=str(error))
    plan, seconds = runs[0][0], min(seconds for _, seconds in runs)
    ratio = plan.arena_bytes / plan.lower_bound if plan.lower_bound else 1.0
    return evolve(
        row,
        arena_bytes=plan.arena_bytes,
        breadth=int(breadths(problem).value.max(initial=0)),
        lower_bound=plan.lower_bound,
        ratio=ratio,
        seconds=seconds,
        status=str(plan.status),
    )


def _run(problem: Problem, strategy: str, capacity: int, seed: int, limits: dict[str, Any]) -> tuple[Plan, float]:
    if strategy not in STRATEGIES:
        return _timed(lambda: solve(problem, strategy, seed, capacity=capacity, **limits))
    bound = proved_bound(problem)
    goal = max(bound.nbytes, capacity) if capacity != NO_CAPACITY else bound.nbytes
    until = time.monotonic() + limits.get("seconds", math.inf)
    task = SolverOptions(seed, until, limits.get("nodes", NO_NODES), goal)
    answer, seconds = _timed(lambda: STRATEGIES[strategy].solve(problem, task))
    offset = column(answer.offset)
    arena = arena_bytes(problem, offset)
    fault = check(problem, offset, arena)
    if fault is not None:
        raise SystemExit(f"{strategy}: {fault.message}")
    return Plan(offset, arena, bound.raised(Bound(answer.lower_bound)), strategy, capacity), seconds


def startup(name: str, instance: Instance, strategy: str, arguments: Namespace) -> Startup:
    """Times whole processes of the command `arenaplan solve`, which also read the instance."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "instance.csv"
        formats.write(file, instance)
        command = [sys.executable, "-c", _COMMAND, "solve", str(file), "--strategy", strategy]
        command += ["--timeout", str(arguments.seconds)] if "seconds" in arguments else []
        command += ["--nodes", str(arguments.nodes)] if "nodes" in arguments else []
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"NUMBA_CACHE_DIR": f"{folder}/compiled"}
        (cold, _), *later = [_timed_process(command, environment) for _ in range(1 + arguments.repeat)]
    warm, processor = (min(seconds) for seconds in zip(*later, strict=True))
    return Startup(name, len(instance.problem), strategy, cold, warm, processor)


def _timed_process(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Runs a process. Returns its seconds, and those of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, seconds = _timed(lambda: subprocess.run(command, env=environment, check=True, capture_output=True))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def show(row: Row) -> str:
    """Returns one line of the table."""
    start = f"{row.instance:<22}{row.buffers:>9}  {row.strategy:<22}"
    if row.note:
        return f"{start}  {row.note}"
    return f"{start}{row.arena_bytes:>14}{row.ratio:>10.4f}{row.seconds:>12.6f}  {row.status}"


def show_startup(row: Startup) -> str:
    """Returns one line of the table of --startup."""
    times = f"{row.cold_s:>14.3f}{row.warm_s:>10.3f}{row.processor_s:>15.3f}"
    return f"{row.instance:<22}{row.buffers:>9}  {row.strategy:<22}{times}"


def run(arguments: Namespace) -> dict[str, Any]:
    """Measures and prints, row by row. Returns the rows with the machine and the seed, for JSON."""
    timed = (
        f"{'cold_s':>14}{'warm_s':>10}{'processor_s':>15}"
        if arguments.startup
        else f"{'arena_bytes':>14}{'ratio':>10}{'seconds':>12}  status"
    )
    print(f"{'instance':<22}{'buffers':>9}  {'strategy':<22}{timed}")
    rows: list[Any] = []
    for name, instance, capacity in instances(arguments):
        for strategy in each(f"{name}: strategy", arguments.strategy or (*STRATEGIES, BEST)):
            too_many = strategy in STRATEGIES and len(instance.problem) > STRATEGIES[strategy].traits.most_chunks
            if too_many and not arguments.strategy:
                continue
            if arguments.startup:
                rows.append(startup(name, instance, strategy, arguments))
            else:
                rows.append(measure(name, instance.problem, strategy, capacity, arguments))
            say(show_startup(rows[-1]) if arguments.startup else show(rows[-1]))
    data = {"machine": f"{platform.machine()}, Python {platform.python_version()}", "seed": arguments.seed}
    return data | {"startup" if arguments.startup else "rows": [asdict(row) for row in rows]}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes it as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="*", help="files, and folders of CSVs")
    parser.add_argument(
        "--random", metavar="N", type=positive, nargs="+", default=[], help="random instances of N buffers"
    )
    parser.add_argument("--kind", choices=GENERATORS, default=RANDOM, help=f"of random instances (default {RANDOM})")
    parser.add_argument("--strategy", choices=STRATEGY_CHOICES, nargs="+", default=[], help="default: all of them")
    parser.add_argument("--repeat", type=positive, default=1, help="runs of which the least counts (default 1)")
    parser.add_argument("--timeout", dest="seconds", type=duration, default=SUPPRESS, help="of searches, such as 10s")
    parser.add_argument("--nodes", type=positive, default=SUPPRESS, help="of searches")
    parser.add_argument("--seed", type=count, default=0)
    parser.add_argument("--capacity-from-name", action="store_true", help="A.1048576.csv has a capacity of 1048576")
    parser.add_argument("--startup", action="store_true", help="time whole processes")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        data = run(arguments)
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
