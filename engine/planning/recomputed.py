"""What is computed again so that a plan keeps within its budget."""

from attrs import field, frozen

from engine.graph.graph import Graph
from engine.text.plurals import agreed


@frozen
class Recomputed:
    """`operators` are those that run once more, by name. `flops` are the operations that this costs in one run, as the
    schemas estimate them, and `share` what that is of the operations without. `plain_bytes`: the arena without.

    `before` is the graph in which every operator runs once; `sequence` has what runs, in order, by its names in there.
    """

    operators: tuple[str, ...]
    flops: int
    share: float
    plain_bytes: int
    before: Graph = field(repr=False)
    sequence: tuple[str, ...] = field(repr=False)

    @property
    def told(self) -> str:
        """What the budget costs, in words; it may be met by the order alone."""
        if not self.operators:
            return "in another order, nothing runs again"
        again = agreed(len(self.operators), "operator", "runs again", "run again")
        return f"{again}, {self.share:.1%} more operations"
