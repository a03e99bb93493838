"""How many operators read a tensor turned, and how many as it was: counted once, not looked for again and again."""

from collections import Counter
from collections.abc import Collection, Sequence

from attrs import define, field

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.layout.turned import Turned


def turned_inputs(operator: Operator, found: Turned) -> Sequence[Var]:
    """What an operator reads turned; each once."""
    return tuple(dict.fromkeys(operator.inputs[i] for i in found.reads))


@define(eq=False)
class TurnedReads:
    """Of each var, the operators that read it turned and those that read it plain; some do both.

    A join of n inputs is added in O(n), and so it is when it is given up or taken in again.
    """

    turned: Counter[Var] = field(factory=Counter)
    plain: Counter[Var] = field(factory=Counter)

    def add(self, operator: Operator, reads: Collection[int], times: int = 1) -> None:
        """Counts an operator that reads turned what stands at these positions; -1 times takes it back."""
        positions = frozenset(reads)
        for var in dict.fromkeys(operator.inputs[i] for i in reads):
            self.turned[var] += times
        for var in dict.fromkeys(v for i, v in enumerate(operator.inputs) if i not in positions):
            self.plain[var] += times

    def change(self, operator: Operator, before: Collection[int], after: Collection[int]) -> None:
        """Counts an operator with other positions than before."""
        self.add(operator, before, -1)
        self.add(operator, after)
