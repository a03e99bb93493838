"""A plan in three memories, with copies that a copy engine makes of tensors and of weights."""

import numpy as np

import engine
import ops
from engine import ExecutionPlan, Graph

BOARD = [
    "fast=14KiB,10GB/s,copy-engine",
    "slow=6KiB,1GB/s,copy-engine",
    "flash=1MiB,0.1GB/s,read-only,copy-engine",
]


def copied_beside() -> ExecutionPlan:
    """Returns the plan: parts of three products leave the fast memory, and the weights come into it."""
    graph = Graph("stripes")
    y = waits = ops.relu(graph.input("x", (32, 32)))
    y = y * waits
    for layer in range(3):
        weight = graph.constant(np.full((32, 32), 0.1, np.float32), f"w{layer}")
        y = ops.concat([ops.tanh(y[8 * k : 8 * k + 8] @ weight) for k in range(4)], axis=0)
    graph.output(y * waits, "y")
    return engine.make_plan(graph, memories=BOARD, optimise=0, nodes=50)
