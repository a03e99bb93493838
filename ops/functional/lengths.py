"""Lengths that functions on vars are given: numbers, dimensions, or vars of one integer, which the run decides."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ops.functional.apply import is_var
from ops.symbolic.guesses import Guess, factors
from ops.tensor.dims import Dim
from ops.tensor.errors import ShapeError
from ops.tensor.spec import Shape

Length = Any
"""A number, a dimension, or a var with one integer."""


def length(value: Length, guess: Guess = ()) -> int:
    """The same as an attribute. `guess` is what a var might hold. Raises ShapeError for a var of more elements."""
    if not is_var(value):
        found: int = value
        return found
    if value.spec.shape not in ((), (1,)):
        raise ShapeError(f"{value.spec} is no length: one integer is wanted")
    dim: int = value.graph.data_dim(value, 0, guess)
    return dim


def lengths(values: Iterable[Length], guess: Callable[[int], Guess] = lambda _: ()) -> tuple[int, ...]:
    """The same for several; `guess` tells what a var at that position might hold."""
    return tuple(length(v, guess(i) if is_var(v) else ()) for i, v in enumerate(values))


def new_shape(values: Sequence[Length], source: Shape, zero_copies: bool) -> tuple[int, ...]:
    """Lengths for as many elements as a shape has; one may be -1."""
    late = [i for i, v in enumerate(values) if is_var(v)]
    if not late:
        return tuple(values)
    known = [source[i] if zero_copies and n == 0 and i < len(source) else n for i, n in _known(values)]
    guesses = factors(source, len(late) + (-1 in known), [n for n in known if not isinstance(n, int) or n != -1])
    return lengths(values, dict(zip(late, guesses, strict=False)).__getitem__)


def _known(values: Sequence[Length]) -> list[tuple[int, Dim | int]]:
    return [(i, v) for i, v in enumerate(values) if not is_var(v)]
