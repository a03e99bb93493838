"""Lengths that functions on vars are given: numbers, dimensions, or vars of one integer, which the run decides."""

from collections.abc import Callable
from typing import Any

from ops.common.apply import is_var
from ops.symbolic.guesses import Guess, factors
from ops.tensor.errors import ShapeError
from ops.tensor.spec import Shape, several

Length = Any
"""A number, a dimension, or a var with one integer."""
Lengths = Any
"""One length, several of them, or a var of integers whose number is known."""


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


def lengths(values: Lengths, guess: Callable[[int], Guess] = lambda _: ()) -> tuple[int, ...]:
    """Returns several lengths as an attribute takes them; `guess` tells what a var at a position might hold."""
    return tuple(length(v, guess(i) if is_var(v) else ()) for i, v in enumerate(several(values)))


def new_shape(values: Lengths, source: Shape, zero_copies: bool) -> tuple[int, ...]:
    """Returns the lengths of a shape for the elements of `source`; one may be -1."""
    wanted = several(values)
    late = [i for i, v in enumerate(wanted) if is_var(v)]
    if not late:
        return wanted
    fixed = [
        source[i] if zero_copies and n == 0 and i < len(source) else n for i, n in enumerate(wanted) if not is_var(n)
    ]
    guesses = factors(source, len(late) + (-1 in fixed), [n for n in fixed if not isinstance(n, int) or n != -1])
    return lengths(wanted, dict(zip(late, guesses, strict=False)).__getitem__)
