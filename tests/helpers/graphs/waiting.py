"""A network with a tensor that waits: it is read often, then not for a while, then often again."""

import ops
from engine import Graph

BOARD = ("fast=2KiB,10GB/s", "slow=64KiB,1GB/s")
"""The fast memory holds two tensors of the network: the one that waits, or those of the products in between."""


def waiting(products: int = 4, reads: int = 3) -> Graph:
    """Returns a graph of tensors of 1 KiB; "relu_0" is read `reads` times before the products, and as often after."""
    graph = Graph("waiting")
    y = waits = ops.relu(graph.input("x", (16, 16)))
    for _ in range(reads):
        y = y * waits
    for _ in range(products):
        y = ops.tanh(y @ y)
    for _ in range(reads):
        y = y * waits
    graph.output(y, "y")
    return graph
