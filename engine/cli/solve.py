"""`arenaplan solve`: place the buffers of a file, or check where somebody else has placed them."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, evolve

from allocator.errors import FormatError, ProblemError
from allocator.io import c_header, formats
from allocator.io.files import write_whole
from allocator.io.formats import BY_SUFFIX, JSON, READERS, WRITERS, named_like
from allocator.io.instance import LARGEST, Instance, in_names, pinned
from allocator.problem import FREE, NO_CAPACITY, Plan, Problem, Status
from allocator.solvers import BEST
from engine import searches
from engine.cli.interrupts import interrupt_ends_search
from engine.cli.options.values import STRATEGY_CHOICES, add_json, add_limits, count, positive, print_json, size
from engine.cli.options.workers import add_workers, is_shared
from engine.cli.strategies import Entry, StrategyComparison, compare_strategies, ratio, table, timed_solve, to_json
from engine.cli.validation import check_one_memory, validated
from engine.text.errors import BudgetError, OptionError, UndecidedError
from engine.text.json_text import json_text
from engine.workers.names import HERE

HELP = "place the buffers of a file"
ALL = "all"
_OF_ZOO, _OF_MODEL = "zoo:", ".onnx"
"""How names of networks of the zoo begin, and those of ONNX files end: neither is a file of buffers."""
_ITSELF = Path()


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    parser.add_argument("file", metavar="FILE", type=Path, help="buffers with lifetimes, such as MiniMalloc's CSV")
    parser.add_argument("--pinned", action="store_true", help="keep the offsets that FILE gives")
    parser.add_argument(
        "--alignment", metavar="BYTES", type=positive, default=1, help="least alignment of every buffer (default 1)"
    )
    parser.add_argument(
        "--padding", metavar="BYTES", type=count, default=0, help="unused bytes behind each buffer (default 0)"
    )
    _add_search(parser)
    _add_files(parser)
    add_json(parser)


def _add_search(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        choices=(*STRATEGY_CHOICES, ALL),
        default=BEST,
        metavar="STRATEGY",
        help=f"how offsets are found: {', '.join(STRATEGY_CHOICES)} (default {BEST}: the best result of all); "
        f"or {ALL}, which runs every strategy and compares them",
    )
    parser.add_argument(
        "--capacity",
        "--budget",
        metavar="SIZE",
        type=size,
        default=NO_CAPACITY,
        help='most bytes of the arena, such as "8 MiB"; the first plan that fits is good enough',
    )
    add_limits(parser)
    parser.add_argument("--seed", metavar="N", type=count, default=0, help="seed of everything random (default 0)")
    add_workers(parser, default=HERE)


def _add_files(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        "--format",
        dest="source",
        metavar="FORMAT",
        choices=tuple(READERS),
        default="",
        help=f"format of FILE, by default the one that the file suggests: {', '.join(READERS)}",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=Path,
        help="write the buffers with their offsets; OUT.json has what --json prints",
    )
    parser.add_argument(
        "--to",
        metavar="FORMAT",
        choices=tuple(WRITERS),
        default="",
        help=f"format of OUT, by default the one that its name suggests: {', '.join(WRITERS)}",
    )
    parser.add_argument(
        "--prefix",
        metavar="NAME",
        default=c_header.PREFIX,
        help=f"with -o OUT.h: what all names in it begin with (default {c_header.PREFIX})",
    )
    parser.add_argument(
        "--validate",
        metavar="PLAN",
        type=Path,
        nargs="?",
        const=_ITSELF,
        help="place nothing; check the offsets in PLAN, or in FILE itself, and say which rule they break",
    )


def run(arguments: Namespace) -> int:
    """Prints the size of the arena, and the offsets where they are asked for."""
    until = time.monotonic() + arguments.timeout
    _check_no_model(arguments.file)
    _check_output(arguments)
    _check_workers(arguments)
    instance = formats.read(arguments.file, arguments.source)
    if arguments.validate != _ITSELF:
        check_one_memory(instance, arguments.file, "check its own offsets with --validate, and no PLAN")
    problem = _asked(instance, arguments)
    with interrupt_ends_search():
        comparison = _solve(instance, problem, arguments, until)
    plan, seconds = comparison.best.plan, comparison.best.seconds
    is_comparison = len(comparison.entries) + len(comparison.skipped) > 1
    if is_comparison and not arguments.json:
        print(table(comparison), flush=True)
    _check_fit(plan)
    data = _told(instance, str(arguments.file), plan, seconds)
    more = {"strategies": to_json(comparison)} if is_comparison else {}
    printed = data | more | {"offsets": dict(zip(instance.ids, plan.offset.tolist(), strict=True))}
    if arguments.output is not None and _is_json(arguments):
        write_whole(arguments.output, json_text(printed).encode())
    elif arguments.output is not None:
        aligned = evolve(instance.problem, alignment=problem.alignment)
        placed = evolve(instance, problem=aligned, offset=plan.offset)
        formats.write(arguments.output, placed, arguments.to, prefix=arguments.prefix)
    if arguments.json:
        print_json(printed)
    else:
        print(_text(data), end="")
    return 0


def _check_no_model(path: Path) -> None:
    """Raises OptionError for what `arenaplan plan` reads."""
    if str(path).startswith(_OF_ZOO) or path.suffix.lower() == _OF_MODEL:
        raise OptionError(f"{path} is a model, and solve reads files of buffers; arenaplan plan {path} plans it")


def _check_output(arguments: Namespace) -> None:
    """Raises OptionError where nothing says what OUT is to be."""
    path: Path | None = arguments.output
    if path is not None and not arguments.to and not _is_json(arguments) and not named_like(path):
        suffixes = ", ".join((*BY_SUFFIX, JSON))
        raise OptionError(f"{path}: the name of OUT ends in one of {suffixes}; or say with --to what it is")


def _check_workers(arguments: Namespace) -> None:
    """Raises OptionError for workers that would have nothing to share."""
    if is_shared(arguments) and arguments.validate is not None:
        raise OptionError("--workers and --on share a search; leave out --validate")


def _is_json(arguments: Namespace) -> bool:
    """Returns whether OUT is what --json prints."""
    path: Path = arguments.output
    return not arguments.to and not named_like(path) and path.suffix.lower() == JSON


def _asked(instance: Instance, arguments: Namespace) -> Problem:
    """Returns the problem in the file, with the alignment, padding and pinned offsets that the options add."""
    try:
        problem = pinned(instance) if arguments.pinned else instance.problem
        if arguments.pinned and (problem.pinned == FREE).all():
            raise FormatError("no buffer has an offset that it could be pinned to")
        if arguments.alignment == 1 and not arguments.padding:
            return problem
        is_root = np.ones(len(problem), bool)
        is_root[problem.src] = False
        wanted = np.where(is_root, arguments.alignment, 1)
        if (problem.alignment * wanted.astype(float) >= LARGEST).any():
            raise OptionError(f"an alignment of {arguments.alignment} bytes on top of those of the file is too large")
        padding = np.where(is_root & (problem.size > 0), arguments.padding, 0)
        return evolve(problem, alignment=np.lcm(problem.alignment, wanted), size=problem.size + padding)
    except (FormatError, ProblemError) as error:
        raise type(error)(f"{arguments.file}: {in_names(str(error), instance.ids)}") from error


def _solve(instance: Instance, problem: Problem, arguments: Namespace, until: float) -> StrategyComparison:
    """Solves by each strategy of --strategy, each within the time that is left: one entry, but for --strategy all."""
    if arguments.validate is not None:
        return StrategyComparison((_judged(instance, problem, arguments),), ())
    seconds = max(until - time.monotonic(), 0.0)
    limits = {"capacity": arguments.capacity, "seconds": seconds, "nodes": arguments.nodes}
    try:
        if is_shared(arguments):
            return StrategyComparison((_shared(problem, arguments, limits),), ())
        if arguments.strategy == ALL:
            return compare_strategies(problem, arguments.seed, limits)
        return StrategyComparison((timed_solve(problem, arguments.strategy, arguments.seed, limits),), ())
    except ProblemError as error:
        raise ProblemError(f"{arguments.file}: {in_names(str(error), instance.ids)}") from error


def _shared(problem: Problem, arguments: Namespace, limits: Mapping[str, Any]) -> Entry:
    begin = time.perf_counter()
    plan = searches.solve_shared(problem, arguments.seed, arguments.on, arguments.workers, **limits)
    return Entry(plan, time.perf_counter() - begin)


def _judged(instance: Instance, problem: Problem, arguments: Namespace) -> Entry:
    begin = time.perf_counter()
    source, offset = arguments.file, instance.offset
    if arguments.validate != _ITSELF:
        source = arguments.validate
        offset = formats.read_offsets(source, instance)
    plan = validated(instance, problem, offset, source, arguments.capacity)
    return Entry(plan, time.perf_counter() - begin)


def _check_fit(plan: Plan) -> None:
    arena, capacity, bound = plan.arena_bytes, plan.capacity, plan.lower_bound
    needs = f"the arena needs {arena} bytes, {capacity} are available: {arena - capacity} bytes too much"
    if plan.status is Status.INFEASIBLE:
        raise BudgetError(f"{needs}; no plan fits, as the lower bound is {bound} bytes", arena, capacity, bound)
    if plan.status is Status.UNKNOWN:
        raise UndecidedError(f"{needs}; the lower bound is {bound} bytes, so another plan may fit: none was found")


def _told(instance: Instance, file: str, plan: Plan, seconds: float) -> dict[str, Any]:
    witness = asdict(plan.bound.witness) | {"chunks": [instance.ids[chunk] for chunk in plan.bound.witness.chunks]}
    data = {
        "file": file,
        "buffers": len(plan.offset),
        "arena_bytes": plan.arena_bytes,
        "lower_bound": plan.lower_bound,
        "bound_reason": plan.bound.reason,
        "witness": witness,
        "gap": ratio(plan) - 1,
        "strategy": plan.strategy,
        "status": plan.status,
        "seconds": seconds,
    }
    return data if plan.capacity == NO_CAPACITY else data | {"capacity": plan.capacity}


def _text(data: Mapping[str, Any]) -> str:
    arena, bound = data["arena_bytes"], data["lower_bound"]
    gap = "nothing to place"
    if bound:
        over = f"arena is {data['gap']:.2%} above; the bound may be unattainable"
        gap = "met: no arena is smaller" if arena == bound else over
    lines = [
        f"{data['file']}: {data['buffers']} buffers",
        f"  arena        {arena} B   strategy {data['strategy']}, {data['status']}",
        f"  lower bound  {bound} B   {gap}",
        f"  time         {data['seconds']:.3f} s",
    ]
    if "capacity" in data:
        lines.insert(2, f"  capacity     {data['capacity']} B   {data['capacity'] - arena} bytes are left")
    return "\n".join((*lines, ""))
