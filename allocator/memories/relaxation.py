"""A lower bound by Lagrangian relaxation: capacities may be exceeded, at a price for each byte and tick.

For any prices that are not negative, no assignment costs less than each unit where it costs least with its price, less
the price of all that memories hold (Geoffrion 1974; Fisher 1981). Prices follow the subgradient, in steps of Polyak
1969. That no two chunks share an address is left out, so the bound holds for all plans. In each tick a memory counts as
no larger than the largest total of chunks' sizes that fits into it.
"""

from collections.abc import Iterator
from typing import Self

import numpy as np
import numpy.typing as npt
from attrs import define, field

from allocator.cliques.subset_sum import largest_sum
from allocator.memories.problem import Mask, Seconds
from allocator.memories.units import Units
from allocator.problem import Column

Table = npt.NDArray[np.int64]
_WORK = 2**27
"""Bits that are shifted, in all ticks together, to find the largest totals of sizes: a tenth of a second."""
_MEMORY = 0.9
"""The part of the last direction that is kept: prices go to and fro less (deflected subgradients: Sherali, Choi and
Tuncbilek 2000, "A variable target value method for nondifferentiable optimization")."""
_STEP, _PRICE = 1_500, 3
"""A step in steps of branch and bound: by itself, and for each unit and tick that it looks at."""
_PATIENCE, _LEAST_FACTOR = 20, 1e-3
"""Steps without a better bound after which steps become half as long, and when they are too short."""


@define(eq=False)
class Relaxation:
    """Prices of each memory in each tick that matters, in seconds a byte; the best so far, with their `bound`.

    `regret`, by unit and memory: the seconds beyond those in the unit's fastest memory, infinity where it may not lie.
    `least`: the seconds of all units in their fastest memories. `capacities`: the bytes of each memory that units can
    fill, in each tick. `shares`, of the same shape as `regret`: how often, of late, a unit cost least in a memory with
    its price.
    """

    units: Units
    regret: Seconds
    least: float
    capacities: Table
    prices: Seconds
    bound: float
    shares: Seconds = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.shares = np.zeros(self.regret.shape)

    @classmethod
    def of(cls, units: Units) -> Self:
        """Returns what begins with no prices."""
        fastest = units.seconds.min(axis=1, keepdims=True)
        capacities, least = fillable(units), float(fastest.sum())
        return cls(units, units.seconds - fastest, least, capacities, np.zeros(capacities.shape), least)

    @property
    def price(self) -> int:
        """Returns the steps of branch and bound that take as long as a step of the relaxation."""
        return _STEP + _PRICE * (len(self.units) + len(self.units.ticks))

    @property
    def worst(self) -> float:
        """Returns what no assignment costs more than."""
        return self.least + float(np.where(np.isfinite(self.regret), self.regret, 0.0).max(axis=1).sum())

    def within(self, can: Mask) -> "Relaxation":
        """Returns the relaxation with fewer memories for some units, from the prices of this one.

        Where all that may lie in a memory fits, room has no price: without it the bound is no lower.
        """
        regret = np.where(can, self.regret, np.inf)
        is_scarce = np.array([self.units.load(row) for row in can.T]).reshape(self.prices.shape) > self.capacities
        prices = np.where(is_scarce, self.prices, 0.0)
        return Relaxation(self.units, regret, self.least, self.capacities, prices, self.bound)

    def priced(self, prices: Seconds) -> Seconds:
        """Returns the regret of each unit in each memory, with the price of its bytes."""
        parts = self.units.over_lives(prices)
        return self.regret + np.stack([self.units.of_units(row) for row in parts], axis=1)

    def steps(self, cost: float) -> Iterator[None]:
        """Raises the bound, step after step, at most to the cost of a plan. Ends where steps become too short."""
        prices, factor, since, heading = self.prices, 1.0, 0, np.zeros(self.prices.shape)
        rows = np.arange(len(self.regret))
        while factor > _LEAST_FACTOR and self.bound < cost:
            priced = self.priced(prices)
            memory = priced.argmin(axis=1)
            self.shares *= _MEMORY
            self.shares[rows, memory] += 1 - _MEMORY
            value = self.least + float(priced.min(axis=1).sum()) - float((prices * self.capacities).sum())
            since += 1
            if value > self.bound:
                self.bound, self.prices, since = value, prices, 0
            elif since >= _PATIENCE:
                factor, prices, since, heading = factor / 2, self.prices, 0, np.zeros(self.prices.shape)
                yield
                continue
            heading = self._slope(memory) + _MEMORY * heading
            heading[(prices == 0) & (heading < 0)] = 0
            length = float((heading * heading).sum())
            if length == 0:
                return
            step = factor * max(cost - value, 0.0) / length
            prices = np.maximum(0.0, prices + step * heading / np.maximum(self.capacities, 1))
            yield

    def _slope(self, memory: Column) -> Seconds:
        """Returns how far each memory is exceeded in each tick, in parts of its capacity."""
        load = np.array([self.units.load(memory == m) for m in range(len(self.prices))], float)
        slope: Seconds = (load.reshape(self.prices.shape) - self.capacities) / np.maximum(self.capacities, 1)
        return slope

    def order(self) -> Column:
        """Returns the units by what they lose if they do not lie where they cost least by the best prices."""
        priced = np.sort(self.priced(self.prices), axis=1)
        if priced.shape[1] == 1:
            return np.arange(len(priced))
        return np.argsort(-(priced[:, 1] - priced[:, 0]), kind="stable")


def fillable(units: Units) -> Table:
    """Returns the bytes of each memory that units can fill, by memory and tick that matters."""
    capacities = np.tile(units.capacities[:, None], (1, len(units.ticks)))
    scarce = [units.load(units.can[:, m]) > capacity for m, capacity in enumerate(units.capacities.tolist())]
    work = _WORK // max(1, sum(map(np.count_nonzero, scarce)))
    for m, ticks in enumerate(scarce):
        may_lie = units.can[:, m][units.part_unit]
        for tick in np.flatnonzero(ticks).tolist():
            alive = may_lie & (units.first <= tick) & (tick < units.last)
            capacities[m, tick] = largest_sum(units.size[alive].tolist(), int(units.capacities[m]), work)
    return capacities
