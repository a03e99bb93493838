"""Options that several subcommands have, and how their texts are read."""

import json
import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allocator.policies import POLICIES
from allocator.problem import NO_CAPACITY
from allocator.solvers import BEST, STRATEGIES
from allocator.solvers.base import NO_NODES
from engine.api import PlanOptions
from engine.cli.options.dims import named_lengths
from engine.lower.backends import CHOICES, DEFAULT
from engine.lower.order import GIVEN, ORDERS
from engine.system.threads import AS_THEY_ARE
from engine.text.errors import OptionError
from engine.text.units import parse_bytes, parse_seconds
from engine.zoo import NETWORKS

STRATEGY_CHOICES = (BEST, *STRATEGIES)

_DIGITS = 9
"""Of the largest integer that an option takes."""


def add_model(parser: ArgumentParser) -> None:
    """MODEL and what an importer must know of it."""
    names = ", ".join(NETWORKS)
    what = f"an ONNX file, or a network of the zoo, such as zoo:resnet50 or 'zoo:resnet50?batch=8&image=64': {names}"
    parser.add_argument("file", metavar="MODEL", type=Path, help=what)
    parser.add_argument(
        "--shape",
        metavar="NAME=D,D,...",
        type=named_shape,
        action="append",
        default=[],
        help="shape of an input that leaves dimensions open, or of the zoo's x, such as x=1,3,224,224; a dimension may "
        "get a name: x=batch,3,224,224; repeatable",
    )
    parser.add_argument(
        "--dim",
        metavar="NAME=N,...",
        type=named_lengths,
        action="extend",
        default=[],
        help="lengths of dimensions that are names, such as batch=4,seq=128; repeatable",
    )
    parser.add_argument(
        "--constant",
        metavar="NAME=FILE.npy",
        type=named_path,
        action="append",
        default=[],
        help="an input that is fixed to an array, needed where it decides shapes; repeatable",
    )


def add_planning(parser: ArgumentParser) -> None:
    """How to plan."""
    parser.add_argument("--alignment", metavar="BYTES", type=positive, default=64, help="a power of two (default 64)")
    parser.add_argument("--padding", metavar="BYTES", type=count, default=0, help="behind each chunk (default 0)")
    parser.add_argument("--no-reuse", action="store_true", help="give no byte to a second tensor")
    parser.add_argument("--no-overwrite", action="store_true", help="let no operator write over its input")
    parser.add_argument("--no-views", action="store_true", help="copy where an output could be a view")
    parser.add_argument("--no-nest", action="store_true", help="compute no tensor inside another, as a concat's inputs")
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default=GIVEN,
        help="of operators; memory: fewest bytes alive at once (default given)",
    )
    parser.add_argument(
        "--backend",
        choices=CHOICES,
        default=DEFAULT,
        help=f"whose kernels compute; auto: oneDNN's where it is installed, then numba's (default {DEFAULT})",
    )
    parser.add_argument("--no-prepack", action="store_true", help="keep no packed copies of weights: smaller, slower")
    add_solving(parser)
    parser.add_argument(
        "--no-recompute", action="store_true", help="run no operator twice, even where the budget is not met otherwise"
    )


def add_parallel(parser: ArgumentParser) -> None:
    """Whether operators may run at once."""
    parser.add_argument(
        "--parallel",
        metavar="POLICY",
        default="",
        help=f"make the plan safe for operators that run at once: {', '.join(POLICIES)} (or another number)",
    )


def add_solving(parser: ArgumentParser) -> None:
    """How to solve, and what a result may need."""
    parser.add_argument(
        "--strategy",
        choices=STRATEGY_CHOICES,
        default=BEST,
        metavar="STRATEGY",
        help=f"how addresses are found: {', '.join(STRATEGY_CHOICES)} (default {BEST}: of all)",
    )
    add_limits(parser)
    parser.add_argument(
        "--budget", metavar="SIZE", type=size, default=NO_CAPACITY, help='most bytes of the arena, such as "8 MiB"'
    )
    parser.add_argument("--seed", metavar="N", type=count, default=0, help="of everything random (default 0)")


def add_limits(parser: ArgumentParser) -> None:
    """When a search ends."""
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        default=math.inf,
        help="of strategies that search, such as 10s, 500ms or 2m",
    )
    parser.add_argument(
        "--nodes",
        metavar="N",
        type=positive,
        default=NO_NODES,
        help="most steps of strategies that search: with a seed the same plan on every machine",
    )


def add_running(parser: ArgumentParser) -> None:
    """With what to run."""
    parser.add_argument(
        "--weights",
        choices=("file", "random"),
        default="file",
        help="the file's own, or seeded random ones for models that ship without (default file)",
    )
    parser.add_argument(
        "--input",
        metavar="NAME=FILE.npy",
        type=named_path,
        action="append",
        default=[],
        help="an input array; inputs that are not given are drawn at random; repeatable",
    )
    parser.add_argument(
        "--threads",
        metavar="N",
        type=count,
        default=AS_THEY_ARE,
        help="threads that compute, BLAS through threadpoolctl; with --parallel, operators at once (default: all)",
    )


def add_json(parser: ArgumentParser) -> None:
    """Text for people or data for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON; sizes in bytes, times in seconds")


def plan_options(arguments: Namespace) -> PlanOptions:
    """The planner's options that were given."""
    return PlanOptions(
        strategy=arguments.strategy,
        alignment=arguments.alignment,
        padding=arguments.padding,
        seed=arguments.seed,
        timeout=arguments.timeout,
        nodes=arguments.nodes,
        views=not arguments.no_views,
        overwrite=not arguments.no_overwrite,
        reuse=not arguments.no_reuse,
        prepack=not arguments.no_prepack,
        parallel=arguments.parallel,
        nest=not arguments.no_nest,
        order=arguments.order,
        backend=arguments.backend,
    )


def print_json(data: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps({key: _finite(value) for key, value in data.items()}, indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def named_shape(text: str) -> tuple[str, tuple[int | str, ...]]:
    """NAME=D,D,...; NAME= is a scalar. A dimension is an integer or a name."""
    name, dims = _named(text, "x=1,3,224,224")
    try:
        return name, tuple(map(_dim, dims.split(","))) if dims.strip() else ()
    except ValueError as error:
        wanted = "neither an integer nor a name; write for example x=1,3,224"
        raise ArgumentTypeError(f"{text!r} has a dimension that is {wanted}") from error


def _dim(text: str) -> int | str:
    return text.strip() if text.strip().isidentifier() else int(text)


def named_path(text: str) -> tuple[str, Path]:
    """NAME=FILE."""
    name, path = _named(text, "x=x.npy")
    return name, Path(path)


def count(text: str) -> int:
    """An integer from 0 on."""
    return _integer(text, 0)


def positive(text: str) -> int:
    """An integer from 1 on."""
    return _integer(text, 1)


def size(text: str) -> int:
    """Bytes, with a unit or without."""
    try:
        return parse_bytes(text)
    except OptionError as error:
        raise ArgumentTypeError(str(error)) from error


def duration(text: str) -> float:
    """Seconds, from a text such as 10s, 500ms, 2m, 1h, or a plain number of seconds."""
    try:
        return parse_seconds(text)
    except OptionError as error:
        raise ArgumentTypeError(str(error)) from error


def _named(text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ArgumentTypeError(f"{text!r} is no NAME=VALUE; write for example {example}")
    return name, value


def _integer(text: str, least: int) -> int:
    if not text.isdecimal() or len(text) > _DIGITS or int(text) < least:
        raise ArgumentTypeError(f"{text[:40]!r} is no integer from {least} on, or too large a one")
    return int(text)
