"""Lengths that functions on vars are given: numbers, dimensions, or vars of one integer, which the run decides."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ops.common.apply import is_var
from ops.symbolic.guesses import Guess, factors
from ops.tensor.errors import ShapeError
from ops.tensor.spec import Shape

Length = Any
"""A number, a dimension, or a var with one integer."""


def length(value: Length, guess: Guess = ()) -> int:
    """Returns a length as an attribute takes it. `guess` is what a var might hold.

    Raises ShapeError for a var of more than one element.
    """
    attribute: int = value
    if is_var(value):
        if value.spec.shape not in ((), (1,)):
            raise ShapeError(f"{value.spec} is no length: one integer is wanted")
        attribute = value.graph.data_dim(value, 0, guess)
    return attribute


def lengths(values: Iterable[Length], guess: Callable[[int], Guess] = lambda _: ()) -> tuple[int, ...]:
    """Returns several lengths as an attribute takes them; `guess` tells what a var at a position might hold."""
    return tuple(length(v, guess(i) if is_var(v) else ()) for i, v in enumerate(values))


def new_shape(values: Sequence[Length], source: Shape, zero_copies: bool) -> tuple[int, ...]:
    """Returns the lengths of a shape for the elements of `source`; one may be -1."""
    late = [i for i, v in enumerate(values) if is_var(v)]
    if not late:
        return tuple(values)
    fixed = [
        source[i] if zero_copies and n == 0 and i < len(source) else n for i, n in enumerate(values) if not is_var(n)
    ]
    guesses = factors(source, len(late) + (-1 in fixed), [n for n in fixed if not isinstance(n, int) or n != -1])
    return lengths(values, dict(zip(late, guesses, strict=False)).__getitem__)
