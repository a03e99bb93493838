"""Runs a body turn by turn: what it carries from one turn to the next lies in two sets of buffers that swap places.

The first turn reads the operator's own inputs; each later one reads what the last one wrote, and writes the other set.
One set is the operator's outputs. Where the number of turns is known beforehand, the last turn writes them; else the
first turn writes the temporaries, and one copy is made behind an odd number of turns. So wherever the first turn writes
temporaries, an output may take the bytes of the input that it carries on.
"""

from collections.abc import Callable

from attrs import frozen

from ops.common.thunks import copier, in_turn, nothing
from ops.schema.schema import Thunk
from ops.tensor.spec import Array

UNKNOWN = -1
"""A number of turns that is known only by running."""
Arrays = tuple[Array, ...]


def swaps_first(turns: int) -> bool:
    """Returns whether the first turn writes temporaries, and not the outputs."""
    return turns == UNKNOWN or turns % 2 == 0


def needs_swap(turns: int) -> bool:
    """Returns whether there are temporaries at all: one turn writes the outputs, none copies to them."""
    return turns == UNKNOWN or turns > 1


@frozen(eq=False)
class Carried:
    """The values that go round: inputs, outputs, and temporaries (none where they are not needed)."""

    inputs: Arrays
    outputs: Arrays
    swap: Arrays


@frozen(eq=False)
class Turns:
    """A body bound once for each two sets of buffers that it reads and writes.

    `begin` is the first turn, `odd` the second, fourth and so on. `keep` stands for no turn at all, and `settle` comes
    behind an odd number of turns.
    """

    begin: Thunk
    odd: Thunk
    even: Thunk
    keep: Thunk
    settle: Thunk

    def turn(self, number: int) -> None:
        """Runs one turn; they come in order, counted from 0."""
        if number == 0:
            self.begin()
        elif number % 2:
            self.odd()
        else:
            self.even()

    def finish(self, turns: int) -> None:
        """Moves the last values to the outputs, after so many turns."""
        if turns == 0:
            self.keep()
        elif turns % 2:
            self.settle()


def bind_turns(turns: int, carried: Carried, bind: Callable[[Arrays, Arrays], Thunk]) -> Turns:
    """Binds a body by `bind(what it reads, what it writes)`, as often as there are different turns."""
    one, other = (carried.swap, carried.outputs) if swaps_first(turns) else (carried.outputs, carried.swap)
    pairs = ((carried.inputs, one), (one, other), (other, one))
    different = 3 if turns == UNKNOWN else min(turns, 3)
    begin, odd, even = (bind(*pair) if i < different else nothing for i, pair in enumerate(pairs))
    keep = in_turn(*map(copier, carried.inputs, carried.outputs))
    settle = in_turn(*map(copier, one, carried.outputs)) if turns == UNKNOWN else nothing
    return Turns(begin, odd, even, keep, settle)
