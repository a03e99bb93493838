"""`arenaplan solve`: place the buffers of a MiniMalloc CSV."""

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from allocator.errors import FormatError, ProblemError
from allocator.io import minimalloc
from allocator.io.files import write_whole
from allocator.problem import FREE, Plan, Problem
from allocator.solvers import solve
from engine.cli.common import add_json, add_solving, positive, print_json
from engine.errors import BudgetError

NAME, HELP = "solve", "place the buffers of a MiniMalloc CSV"


def add_arguments(parser: ArgumentParser) -> None:
    """Options of this subcommand."""
    parser.add_argument("file", metavar="FILE.csv", type=Path, help="buffers with lifetimes, in MiniMalloc's format")
    parser.add_argument(
        "--alignment", metavar="BYTES", type=positive, default=1, help="of every buffer at least (default 1)"
    )
    parser.add_argument("--pinned", action="store_true", help="keep the offsets that the file gives")
    add_solving(parser)
    parser.add_argument("-o", "--output", metavar="OUT.csv", type=Path, help="write the buffers with their offsets")
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Prints the size of the arena, and the offsets where they are asked for."""
    given, ids = _read(arguments.file, arguments.pinned)
    problem = evolve(given, alignment=np.maximum(given.alignment, arguments.alignment))
    begin = time.perf_counter()
    plan = solve(problem, arguments.strategy, arguments.seed)
    elapsed = time.perf_counter() - begin
    _fit(plan, arguments.budget)
    if arguments.output is not None:
        write_whole(arguments.output, minimalloc.render(problem, ids, plan.offset).encode())
    told = _told(arguments, len(problem), plan, elapsed)
    if arguments.json:
        print_json(told | {"offsets": dict(zip(ids, plan.offset.tolist(), strict=True))})
    else:
        print(_text(told), end="")
    return 0


def _read(path: Path, pinned: bool) -> tuple[Problem, tuple[str, ...]]:
    try:
        problem, ids = minimalloc.read(path, pinned=pinned)
    except (FormatError, ProblemError) as error:
        raise type(error)(f"{path}: {error}") from error
    if pinned and (problem.pinned == FREE).all():
        raise FormatError(f"{path}: no buffer has an offset that it could be pinned to")
    return problem, ids


def _told(arguments: Namespace, buffers: int, plan: Plan, elapsed: float) -> dict[str, Any]:
    return {
        "file": str(arguments.file),
        "buffers": buffers,
        "arena_bytes": plan.arena_bytes,
        "lower_bound": plan.lower_bound,
        "strategy": plan.strategy,
        "status": plan.status,
        "seconds": elapsed,
    }


def _text(told: dict[str, Any]) -> str:
    arena, bound = told["arena_bytes"], told["lower_bound"]
    gap = "nothing to place"
    if bound:
        over = f"arena is {arena / bound - 1:.2%} above; the bound may be unattainable"
        gap = "met: no arena is smaller" if arena == bound else over
    return (
        f"{told['file']}: {told['buffers']} buffers\n"
        f"  arena        {arena} B   strategy {told['strategy']}, {told['status']}\n"
        f"  lower bound  {bound} B   {gap}\n"
        f"  time         {told['seconds']:.3f} s\n"
    )


def _fit(plan: Plan, budget: int) -> None:
    if plan.arena_bytes > budget:
        excess = plan.arena_bytes - budget
        message = f"the arena needs {plan.arena_bytes} bytes, {budget} are available: {excess} bytes too much"
        raise BudgetError(message, plan.arena_bytes, budget)
