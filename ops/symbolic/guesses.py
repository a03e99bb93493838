"""Numbers that data might hold, one for each sample of the dimensions, where only data decide a size.

They need not be likely, but an operator must take them, and no two samples should agree in what may well differ.
"""

from collections.abc import Sequence
from math import prod

from ops.tensor.dims import ROUND, SAMPLES, Dim, sample_of

Guess = tuple[int, ...]
"""A number for each sample."""

_LAST = SAMPLES - 1
_LARGEST_DIVISOR = 2**12
"""The largest divisor that is tried. Products of long lengths may have two large factors, which nobody can wait for."""


def numbers_to(most: Dim | int, least: int = 0, turn: int = 0) -> Guess:
    """Returns a number from `least` to `most` for each sample, ever smaller, at last `least`; `turn` varies them."""
    limits = [sample_of(most, j) for j in range(SAMPLES)]
    return tuple(_part(n, j, turn) if j < _LAST else min(least, n) for j, n in enumerate(limits))


def _part(most: int, sample: int, turn: int) -> int:
    """Returns a part of a number, never all of it if it is above 1; a round one in the first samples."""
    share = SAMPLES + turn % 5
    part = max(most * (share - 1 - sample) // share, 1)
    unit = 64 if part >= 256 else 4 if part >= 16 else 1
    return min(part - part % unit if sample < ROUND else part, most)


def small_numbers(turn: int = 0) -> Guess:
    """Returns numbers from 0 to 3; 0 in the last sample."""
    return tuple((j + turn) % 3 + 1 if j < _LAST - 1 else 0 for j in range(SAMPLES))


def repeats(turn: int = 0) -> Guess:
    """Returns numbers from 1 to 5; 1 in the last sample."""
    return tuple((2 * j + turn) % 5 + 1 if j < _LAST else 1 for j in range(SAMPLES))


def choices(count: int, of: int) -> tuple[Guess, ...]:
    """Returns `count` different numbers from 0 to before `of`."""
    return tuple(tuple((i + j) % max(of, 1) for j in range(SAMPLES)) for i in range(count))


def parts(whole: Dim | int, count: int) -> tuple[Guess, ...]:
    """Returns `count` numbers that add up to the whole."""
    shares = [_shares(sample_of(whole, j), count, j) for j in range(SAMPLES)]
    return tuple(zip(*shares, strict=True))


def _shares(whole: int, count: int, sample: int) -> list[int]:
    first = [whole * (1 + (i + sample) % 3) // (3 * count) for i in range(count - 1)]
    return [*first, whole - sum(first)]


def factors(shape: Sequence[Dim | int], count: int, fixed: Sequence[Dim | int] = ()) -> tuple[Guess, ...]:
    """Returns `count` lengths which, with the `fixed` ones, give as many elements as a shape has."""
    rows = []
    for j in range(SAMPLES):
        rest = prod(sample_of(d, j) for d in fixed)
        lengths = [sample_of(d, j) for d in shape]
        whole = prod(lengths)
        rows.append(_factors(lengths if rest == 1 else [whole // rest] if rest else [0], count, j))
    return tuple(zip(*rows, strict=True))


def _factors(lengths: Sequence[int], count: int, sample: int) -> list[int]:
    if prod(lengths) == 0:
        return [2 + sample if (i + sample) % count else 0 for i in range(count)]
    products = [1] * count
    primes = sorted((p for n in lengths for p in _primes(n)), reverse=True)
    together = (
        1 if sample < ROUND else 2 + sample % 2
    )  # one after the other, those of (2, 2) are the same in all samples
    for i, prime in enumerate(primes if count else ()):
        products[(i // together + sample) % count] *= prime
    return products


def _primes(number: int) -> list[int]:
    """Returns the prime factors, by trial division up to `_LARGEST_DIVISOR`; what is left is one factor."""
    primes, divisor = [], 2
    while divisor * divisor <= number and divisor <= _LARGEST_DIVISOR:
        while number % divisor == 0:
            primes.append(divisor)
            number //= divisor
        divisor += 1
    return [*primes, number] if number > 1 else primes
