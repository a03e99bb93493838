"""A plan in three memories in which a tensor and a weight are copied from one to another."""

import numpy as np

import engine
import ops
from engine import ExecutionPlan, Graph
from ops.movement.copy import COPY

BOARD = ["sram=64KiB,4GB/s", "dram=1MiB,0.5GB/s,latency=50ns", "flash=1MiB,0.1GB/s,read-only"]
PLACES = {"far": "dram", "near": "sram", "w": "flash", "fetched": "sram", "unread": "flash"}


def moved_tensors() -> ExecutionPlan:
    """Returns the plan: `far` lies in dram and its copy `near` in sram, `w` in flash and its copy `fetched` in sram."""
    graph = Graph("moved")
    far = graph.input("far", (32, 32))
    (near,) = graph.add(COPY, [far], name="near")
    (fetched,) = graph.add(COPY, [graph.constant(np.ones((32, 32), np.float32), "w")], name="fetched")
    unread = graph.constant(np.ones((32, 32), np.float32) * 2, "unread")
    graph.output(ops.tanh(near) @ (fetched + unread), "y")
    return engine.make_plan(graph, memories=BOARD, place=PLACES, optimise=0, overwrite=False)
