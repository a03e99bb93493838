"""From values to pixels, and round numbers for axes."""

import math
from typing import TypeVar

from attrs import frozen

from ops.tensor.spec import Array

Number = TypeVar("Number", float, Array)

_UNITS = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))
_TIMES = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


@frozen
class Scale:
    """Values from 0 to `last` at pixels from `start` to `stop`."""

    last: float
    start: float
    stop: float

    def at(self, value: Number) -> Number:
        """The pixel of a value."""
        return value * ((self.stop - self.start) / self.last) + self.start

    def length(self, value: Number) -> Number:
        """Pixels of a difference of values."""
        return value * (abs(self.stop - self.start) / self.last)


def round_step(last: float, most: int) -> float:
    """The smallest of 1, 2, 5, 10, 20, 50, ... of which no more than `most` are in `last`."""
    rough = last / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def round_values(last: float, most: int) -> list[float]:
    """Multiples of a round step from 0 to `last`."""
    step = round_step(last, most)
    return [i * step for i in range(math.floor(last / step * (1 + 1e-9)) + 1)]


def byte_values(last: float, most: int) -> list[tuple[float, str]]:
    """Round sizes up to `last` bytes, and how they are written."""
    name, unit = next((n, u) for n, u in _UNITS if last >= u or u == 1)
    values = round_values(last / unit, most)
    return [(v * unit, f"{v:g} {name}" if v else "0") for v in values if unit > 1 or v == int(v)]


def tick_values(last: float, most: int) -> list[tuple[float, str]]:
    """Round ticks up to `last`."""
    return [(v, f"{v:,.0f}") for v in round_values(last, most) if v == int(v)]


def time_values(last: float, most: int) -> list[tuple[float, str]]:
    """Round times up to `last` seconds."""
    name, unit = next(((n, u) for n, u in _TIMES if last >= u), _TIMES[-1])
    return [(v * unit, f"{v:g} {name}" if v else "0") for v in round_values(last / unit, most)]
