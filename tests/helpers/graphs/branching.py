"""Small random graphs with branches, weights and several outputs."""

import random

import numpy as np

import ops
from engine.graph.graph import Graph


def branching_graph(seed: int, operators: int) -> Graph:
    """Returns a graph of so many operators, products with weights and additions, whose tensors are [4, 16]."""
    rng, values = random.Random(seed), np.random.default_rng(seed)
    graph = Graph(f"branching_{seed}")
    vars = [graph.input("x", (4, 16)), graph.input("z", (4, 16))]
    shared = graph.constant(values.standard_normal((16, 16)).astype(np.float32), "shared")
    for number in range(operators):
        first, second = rng.choice(vars), rng.choice(vars[-3:])
        kind = rng.randrange(4)
        if kind == 0:
            weight = shared if rng.random() < 0.3 else values.standard_normal((16, 16)).astype(np.float32)
            vars.append(ops.matmul(second, weight))
        elif kind == 1:
            vars.append(ops.tanh(second))
        else:
            vars.append(first + second if kind == 2 else first * second)
        assert len(graph.operators) == number + 1
    read = {var for op in graph.operators for var in op.inputs}
    for number, var in enumerate(v for v in vars[2:] if v not in read):
        graph.output(var, f"y{number}")
    return graph
