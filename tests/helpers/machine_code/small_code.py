"""Small compiled functions for tests of how machine code is made, kept and loaded."""

import math

from allocator.machine_code.entry import CALL, entry
from allocator.machine_code.memory import longs
from ops.native.memory import doubles


@entry(CALL)
def twice(number: int) -> int:
    """Returns twice the number."""
    return 2 * number


@entry(CALL)
def thrice(number: int) -> int:
    """Returns three times the number."""
    return 3 * number


@entry(CALL)
def power(address: int) -> int:
    """Writes x ** 2.5 behind x, with a function of the C library."""
    numbers = doubles(address, 2)
    numbers[1] = math.pow(numbers[0], 2.5)
    return 0


@entry(CALL)
def pick(address: int) -> int:
    """Returns one of some constants, which the compiler puts into a table."""
    number = longs(address, 1)[0]
    if number == 0:
        return 1_000_003
    if number == 1:
        return 77
    if number == 2:
        return -5
    if number == 3:
        return 123_456_789_012
    return 4


@entry(CALL)
def allocate(count: int) -> int:
    """Wants the runtime of numba, which no machine code has."""
    total = 0
    for number in list(range(count)):
        total += number
    return total
