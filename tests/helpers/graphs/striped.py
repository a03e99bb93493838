"""A network whose weights are each read several times in a row, as the stripes of a cascade read them."""

import numpy as np

import ops
from engine import Graph

BOARD = ("fast=14KiB,10GB/s", "flash=1MiB,0.1GB/s,read-only")
"""The fast memory holds the tensors of the network and one weight."""


def striped(layers: int = 3, stripes: int = 4) -> Graph:
    """Returns layers with one weight of 4 KiB each, "w0" and so on, which multiplies stripe after stripe of rows."""
    rng, graph = np.random.default_rng(0), Graph("striped")
    y = graph.input("x", (8 * stripes, 32))
    for layer in range(layers):
        weight = graph.constant(rng.standard_normal((32, 32)).astype(np.float32), f"w{layer}")
        y = ops.concat([ops.tanh(y[8 * k : 8 * k + 8] @ weight) for k in range(stripes)], axis=0)
    graph.output(y, "y")
    return graph
