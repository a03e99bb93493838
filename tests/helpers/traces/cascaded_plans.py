"""A small plan with a cascade."""

from functools import cache

import numpy as np

import engine
import ops
from engine import ExecutionPlan, Graph


@cache
def cascaded_plan() -> ExecutionPlan:
    """Returns the plan of three convolutions, the images between which are wide, computed in stripes."""
    rng, graph = np.random.default_rng(0), Graph("stripes")
    x = graph.input("x", (1, 4, 48, 16))
    for channels in (16, 16, 2):
        w = graph.constant(rng.standard_normal((channels, x.shape[1], 3, 3)).astype(np.float32))
        x = ops.relu(ops.conv2d(x, w, pads=(1, 1, 1, 1)))
    graph.output(x, "y")
    return engine.make_plan(graph, cascade=True)
