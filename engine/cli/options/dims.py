"""Lengths for dimensions that are names: what --dim says, beside what a model leaves open."""

from argparse import ArgumentTypeError
from pathlib import Path

from engine.graph.graph import Graph
from engine.stages.template import template
from engine.text.errors import EngineError

_DIGITS = 9
"""The most digits of a length."""


def named_lengths(text: str) -> tuple[tuple[str, int], ...]:
    """Reads NAME=N, or several with commas between them."""
    return tuple((name, _length(value, text)) for name, value in _pairs(text, "batch=4,seq=128"))


def named_length_ranges(text: str) -> tuple[tuple[str, tuple[int, int]], ...]:
    """Reads NAME=LEAST:GREATEST, or several with commas between them."""
    ranges = []
    for name, value in _pairs(text, "batch=1:8,seq=1:512"):
        low, colon, high = value.partition(":")
        if not colon:
            raise ArgumentTypeError(f"{text!r} has no least and greatest length; write for example {name}=1:8")
        ranges.append((name, (_length(low, text), _length(high, text))))
    return tuple(ranges)


def check_known(graph: Graph, model: Path) -> None:
    """Raises EngineError where sizes become known only while the network runs."""
    if graph.is_symbolic:
        decided = sorted(template(graph).data - graph.inputs.keys())
        shown = ", ".join(map(repr, decided[:3])) + (" ..." if len(decided) > 3 else "")
        raise EngineError(
            f"{model} has sizes that its own data decide ({shown}), so there is no one plan of it; "
            f"compare it without --parallel, --measure and --passes"
        )


def _pairs(text: str, example: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not name or not equals for name, equals, _ in pairs):
        raise ArgumentTypeError(f"{text!r} is no NAME=VALUE; write for example {example}")
    return [(name.strip(), value) for name, _, value in pairs]


def _length(text: str, whole: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS:
        raise ArgumentTypeError(f"{whole[:60]!r} has a length that is no integer from 0 on, or too large a one")
    return int(text)
