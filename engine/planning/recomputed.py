"""The operators that run again so that a plan keeps within its budget."""

from attrs import field, frozen

from engine.graph.graph import Graph
from engine.text.units import agreed


@frozen
class Recomputed:
    """What runs again. `operators` has the names of those that run once more; `flops` estimates the operations that
    this adds to a run, and `share` is their part of all other operations. `plain_bytes`: the arena without it.

    `before` is the graph in which every operator runs once; `sequence` has the names, in that graph, of all that runs.
    """

    operators: tuple[str, ...]
    flops: int
    share: float
    plain_bytes: int
    before: Graph = field(repr=False)
    sequence: tuple[str, ...] = field(repr=False)

    @property
    def text(self) -> str:
        """What the budget costs, in words; another order alone may be enough to meet it."""
        if not self.operators:
            return "in another order, nothing runs again"
        again = agreed(len(self.operators), "operator", "runs again", "run again")
        return f"{again}, {self.share:.1%} more operations"
