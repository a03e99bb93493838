"""Functions on arrays, declared as entries, for tests of the calls of their machine code."""

from typing import NamedTuple

from allocator.machine_code.arrays import Doubles, DoubleTable, Longs, Table
from allocator.machine_code.entry import ARRAYS, EXACT, entry


class Record(NamedTuple):
    """Arrays of each kind."""

    longs: Longs
    table: Table
    doubles: Doubles
    reals: DoubleTable


@entry(ARRAYS, fastmath=EXACT)
def weigh(record: Record, factor: int, more: Longs) -> int:
    """Returns a number that each argument and each length counts in."""
    total = len(record.longs) + 10 * len(more) + 100 * record.table.shape[0] + 1_000 * record.table.shape[1]
    for row in range(record.table.shape[0]):
        total += sum_of(record.table[row]) * factor
    for row in range(record.reals.shape[0]):
        for column in range(record.reals.shape[1]):
            record.reals[row, column] += record.doubles[column]
    return int(total + sum_of(record.longs) + sum_of(more))


def sum_of(numbers: Longs) -> int:
    """Returns a sum, as a function that is no entry."""
    total = 0
    for k in range(len(numbers)):
        total += int(numbers[k])
    return total


@entry(ARRAYS, fastmath=EXACT)
def write(numbers: Longs, value: int) -> None:
    """Writes a number everywhere."""
    for k in range(len(numbers)):
        numbers[k] = value


@entry(ARRAYS, fastmath=EXACT)
def named(name: str) -> int:
    """Takes what machine code cannot take."""
    return len(name)


@entry(ARRAYS, fastmath=EXACT)
def halved(number: int) -> float:
    """Returns what machine code cannot return."""
    return number / 2
