"""Seeded weights, which graphs of one network share: a second batch size costs no second copy."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from weakref import WeakValueDictionary

import numpy as np
from attrs import field, frozen

from engine.graph.graph import Graph
from engine.graph.var import Var
from ops.tensor.spec import Array

_LIVING: WeakValueDictionary[tuple[object, ...], Array] = WeakValueDictionary()
"""What was drawn and is still held by some graph, by all that decides its numbers."""


@frozen(eq=False)
class Weights:
    """Draws one array after the other into a graph: as constants, or as parameters where it is for training."""

    graph: Graph
    seed: int
    training: bool = False
    _numbers: Iterator[int] = field(factory=itertools.count, init=False)
    _layers: Counter[str] = field(factory=Counter, init=False)

    def layer(self, kind: str) -> str:
        """A name for the next layer of that kind, such as conv_3: that of its operator too."""
        self._layers[kind] += 1
        return f"{kind}_{self._layers[kind] - 1}"

    def draw(self, name: str, *shape: int, scale: float, mean: float = 0.0, trainable: bool = True) -> Var:
        """Float32 of standard deviation `scale`, under that name, such as conv_3/weight."""
        return self.keep(name, drawn(self.seed, next(self._numbers), shape, scale, mean), trainable=trainable)

    def keep(self, name: str, array: Array, *, trainable: bool = True) -> Var:
        """The array as a constant or as a parameter."""
        if self.training:
            return self.graph.parameter(array, name, trainable=trainable)
        return self.graph.constant(array, name)


def drawn(seed: int, number: int, shape: tuple[int, ...], scale: float, mean: float = 0.0) -> Array:
    """The arguments decide what is in it; read-only, so that a graph holds the very array, not a copy of it."""
    key = (seed, number, shape, scale, mean)
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
