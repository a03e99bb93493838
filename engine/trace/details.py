"""What is known of a run beyond its events: who reads what, how operators are set, weights, moves, and cascades."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import evolve, field, frozen

from allocator.problem import Column, column

COPY_ENGINE = "copy engine"
"""The name of the lane of copies that run beside operators."""
NO_MEMORY = -1
"""The memory of a weight, and its offset there, where there is one arena."""


@frozen
class Weight:
    """A weight of the model, outside the arena; the operators of `ticks` read it, as it is or prepacked.

    Of several memories it lies in the one of number `memory`, `offset` bytes behind its first byte; `reason` says why.
    """

    name: str
    shape: str
    dtype: str
    bytes: int
    ticks: tuple[int, ...]
    memory: int = NO_MEMORY
    offset: int = NO_MEMORY
    reason: str = ""


@frozen
class Move:
    """A copy of a tensor from one memory to another.

    The call of `tick` writes it to the chunk `chunk`, from the chunk `source`, or from the weight of that number.
    `is_beside`: a copy engine makes it beside calls.
    """

    tick: int
    chunk: int
    source: int
    is_weight: bool
    is_beside: bool = False


@frozen
class StripeRun:
    """The ticks [begin, end), in which a stripe of a cascade runs; where calls of others interrupt it, it has several.

    `cascade` names the first and the last operator of the cascade of that `number`. The stripe is the one of number
    `stripe`, from 0 on, of `count`; it computes `rows` [first, last) of the result, or columns.
    """

    number: int
    cascade: str
    stripe: int
    count: int
    rows: tuple[int, int]
    begin: int
    end: int
    is_columns: bool = False


@frozen(eq=False)
class Details:
    """The reads of a run, the attributes of its operators as text, by tick, and its weights.

    In the tick `read_tick[i]`, the chunk `read_chunk[i]` is read, by the operator of that tick; in the last one, by the
    caller. Where there are several memories, `reasons` says by chunk why it lies in its own, a sentence a line, and
    `moves` are the copies from one to another. `stripes` has the stripes of cascades, in order.
    """

    read_tick: Column = field(converter=column)
    read_chunk: Column = field(converter=column)
    attributes: Mapping[int, str]
    weights: tuple[Weight, ...]
    reasons: Mapping[int, str] = field(factory=dict)
    moves: tuple[Move, ...] = ()
    stripes: tuple[StripeRun, ...] = ()

    def moved(self, by: int, numbers: Column) -> "Details":
        """Returns the details of a stage that begins at a tick; its chunk c has the number `numbers[c]`.

        A stage has one memory and no cascades.
        """
        return Details(
            self.read_tick + by,
            numbers[self.read_chunk],
            {tick + by: text for tick, text in self.attributes.items()},
            tuple(evolve(w, ticks=tuple(t + by for t in w.ticks)) for w in self.weights),
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
        weights[key] = evolve(weight, ticks=before + weight.ticks)
    return Details(
        np.concatenate([s.read_tick for s in stages]) if stages else [],
        np.concatenate([s.read_chunk for s in stages]) if stages else [],
        {tick: text for s in stages for tick, text in s.attributes.items()},
        tuple(weights.values()),
    )
