"""What is known of a run beyond its events: who reads what, how operators are set, and weights outside the arena."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from allocator.problem import Column, column


@frozen
class Weight:
    """A weight of the model, outside the arena; the operators of `ticks` read it, as it is or prepacked."""

    name: str
    shape: str
    dtype: str
    bytes: int
    ticks: tuple[int, ...]


@frozen(eq=False)
class Details:
    """The reads of a run, the attributes of its operators as text, by tick, and its weights.

    In the tick `read_tick[i]`, the chunk `read_chunk[i]` is read, by the operator of that tick; in the last one, by the
    caller.
    """

    read_tick: Column = field(converter=column)
    read_chunk: Column = field(converter=column)
    attributes: Mapping[int, str]
    weights: tuple[Weight, ...]

    def moved(self, by: int, numbers: Column) -> "Details":
        """Returns the details of a stage that begins at a tick; its chunk c has the number `numbers[c]`."""
        return Details(
            self.read_tick + by,
            numbers[self.read_chunk],
            {tick + by: text for tick, text in self.attributes.items()},
            tuple(Weight(w.name, w.shape, w.dtype, w.bytes, tuple(t + by for t in w.ticks)) for w in self.weights),
        )


FindDetails = Callable[[], Details]
"""Makes the details when they are asked for: most formats of traces show none."""


def no_details() -> Details:
    """Returns the details of a run of which nothing is known but its events."""
    return Details([], [], {}, ())


def joined(stages: Sequence[Details]) -> Details:
    """Returns the details of stages as those of one run. A weight of several stages counts once."""
    weights = dict[tuple[str, int], Weight]()
    for weight in (w for stage in stages for w in stage.weights):
        key = weight.name, weight.bytes
        before = weights[key].ticks if key in weights else ()
        weights[key] = Weight(weight.name, weight.shape, weight.dtype, weight.bytes, before + weight.ticks)
    return Details(
        np.concatenate([s.read_tick for s in stages]) if stages else [],
        np.concatenate([s.read_chunk for s in stages]) if stages else [],
        {tick: text for s in stages for tick, text in s.attributes.items()},
        tuple(weights.values()),
    )
