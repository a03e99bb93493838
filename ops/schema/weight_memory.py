"""The memory of constants, each array counted once: weights, the copies that kernels make, and what stays in memory."""

from collections.abc import Hashable, Mapping

from attrs import field, frozen

Sizes = Mapping[Hashable, int]
"""Bytes of arrays by identity: arrays with one identity are one in memory."""


@frozen
class WeightMemory:
    """The constants of a graph, outside of the arena.

    `weights` are those of the model. `prepacked` are copies that kernels make of them before the first run. `kept` are
    the arrays that stay in memory beside these copies: weights that kernels read as they are, and arrays that the graph
    holds in memory. The data of others are given back to the file that they come from.
    """

    weights: Sizes = field(factory=dict)
    prepacked: Sizes = field(factory=dict)
    kept: Sizes = field(factory=dict)

    def __or__(self, other: "WeightMemory") -> "WeightMemory":
        """Returns both together; what they share counts once."""
        return WeightMemory(
            {**self.weights, **other.weights},
            {**self.prepacked, **other.prepacked},
            {**self.kept, **other.kept},
        )

    @property
    def weights_bytes(self) -> int:
        """Returns the bytes of the weights of the model."""
        return sum(self.weights.values())

    @property
    def prepacked_bytes(self) -> int:
        """Returns the bytes of the copies that kernels make."""
        return sum(self.prepacked.values())

    @property
    def resident_weights_bytes(self) -> int:
        """Returns the bytes that stay in memory: kept weights and prepacked copies."""
        return self.prepacked_bytes + sum(self.kept.values())
