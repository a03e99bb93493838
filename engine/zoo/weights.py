"""Seeded weights, which graphs of one network share: a second batch size costs no second copy."""

import itertools
import math
from collections.abc import Iterator
from weakref import WeakValueDictionary

import numpy as np
from attrs import field, frozen

from ops.spec import Array

_LIVING: WeakValueDictionary[tuple[object, ...], Array] = WeakValueDictionary()
"""What was drawn and is still held by some graph, by all that decides its numbers."""


@frozen(eq=False)
class Weights:
    """Draws one array after the other. Seed, number in the row, shape, scale and mean decide what is in it."""

    seed: int
    _numbers: Iterator[int] = field(factory=itertools.count, init=False)

    def draw(self, *shape: int, scale: float, mean: float = 0.0) -> Array:
        """Float32 of standard deviation `scale`; read-only, so that a graph holds the very array, not a copy of it."""
        key = (self.seed, next(self._numbers), shape, scale, mean)
        array = _LIVING.get(key)
        if array is None:
            array = _draw(np.random.default_rng(key[:2]), shape, scale, mean)
            _LIVING[key] = array
        return array


def _draw(rng: np.random.Generator, shape: tuple[int, ...], scale: float, mean: float) -> Array:
    """Evenly distributed, which is five times as fast as normally: VGG16 has 138 million weights."""
    array = rng.random(shape, dtype=np.float32)
    array -= np.float32(0.5)
    array *= np.float32(math.sqrt(12) * scale)
    if mean:
        array += np.float32(mean)
    array.flags.writeable = False
    return array
