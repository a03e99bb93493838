"""Options that need nothing of the planner, so that `arenaplan solve` starts quickly: values, limits, JSON output."""

import math
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allocator.solvers import BEST, STRATEGIES
from allocator.solvers.base import NO_NODES
from engine.text.errors import OptionError
from engine.text.json_text import json_text
from engine.text.options import NODES, TIMEOUT
from engine.text.units import parse_bytes, parse_seconds

STRATEGY_CHOICES = (BEST, *STRATEGIES)

_DIGITS = 9
"""Digits of the largest integer that an option takes."""


def add_limits(parser: ArgumentParser) -> None:
    """Adds the options that say when a search ends."""
    parser.add_argument("--timeout", metavar="TIME", type=duration, default=math.inf, help=TIMEOUT)
    parser.add_argument("--nodes", metavar="N", type=positive, default=NO_NODES, help=NODES)


def add_json(parser: ArgumentParser) -> None:
    """Adds the option for JSON output."""
    parser.add_argument("--json", action="store_true", help="print JSON; sizes in bytes, times in seconds")


def print_json(data: Mapping[str, Any]) -> None:
    """Prints one JSON object on stdout."""
    print(json_text(data), end="")


def named_shape(text: str) -> tuple[str, tuple[int | str, ...]]:
    """Reads NAME=D,D,...; NAME= is a scalar. A dimension is an integer or a name."""
    name, dims = _named(text, "x=1,3,224,224")
    try:
        return name, tuple(map(_dim, dims.split(","))) if dims.strip() else ()
    except ValueError as error:
        wanted = "neither an integer nor a name; write for example x=1,3,224"
        raise ArgumentTypeError(f"{text!r} has a dimension that is {wanted}") from error


def _dim(text: str) -> int | str:
    return text.strip() if text.strip().isidentifier() else int(text)


def named_path(text: str) -> tuple[str, Path]:
    """Reads NAME=FILE."""
    name, path = _named(text, "x=x.npy")
    return name, Path(path)


def named_rule(text: str) -> tuple[str, str]:
    """Reads OPERATOR=RULE."""
    return _named(text, "acme.MyOp=like:0")


def count(text: str) -> int:
    """Reads an integer from 0 on."""
    return _integer(text, 0)


def positive(text: str) -> int:
    """Reads an integer from 1 on."""
    return _integer(text, 1)


def share(text: str) -> float:
    """Reads a number from 0 on."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number from 0 on")
    return number


def size(text: str) -> int:
    """Reads bytes, with a unit or without."""
    try:
        return parse_bytes(text)
    except OptionError as error:
        raise ArgumentTypeError(str(error)) from error


def duration(text: str) -> float:
    """Reads seconds from a text such as 10s, 500ms, 2m, 1h, or a plain number of seconds."""
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
