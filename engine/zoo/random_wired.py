"""A randomly wired network (Xie et al. 2019): WS(4, 0.75) in the small regime, 32 nodes a stage.

A stage is a random graph of Watts and Strogatz; its edges run from the lower number of a node to the higher. A node is
a weighted sum, a ReLU, a separable convolution and a normalization. Those without predecessor read what the stage is
given, with stride 2; what the stage gives is the mean of those without successor.
"""

from typing import Annotated

import numpy as np

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.zoo.classifier import begin
from engine.zoo.layers import conv_norm_relu, convolution, normalization
from engine.zoo.network import Batch, Count, Least, Seed, Size, checked
from engine.zoo.weights import Weights

CHANNELS, LAST = 78, 1280
NODES, NEIGHBOURS, REWIRED = 32, 4, 0.75
_LINEAR = 1.0
"""Gain of weights that follow no ReLU."""

Edges = tuple[tuple[int, ...], ...]
"""The predecessors of each node, which have lower numbers."""


@checked
def random_wired(
    batch: Batch = 1,
    image: Size = 224,
    seed: Seed = 0,
    training: bool = False,
    *,
    wiring: Count = 0,
    nodes: Annotated[int, Least(NEIGHBOURS + 1)] = NODES,
) -> Graph:
    """Returns a graph. Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits.

    `seed` is that of the weights; `wiring` decides the edges, and a stage has that many `nodes`, at least 5. The weight
    of an edge is drawn near 1/2, where the paper has the sigmoid of a learnt number. `training`: see `zoo`.
    """
    net = begin("random_wired", batch, image, seed, training)
    x = conv_norm_relu(net.x, CHANNELS // 2, 3, net.weights, stride=2, gain=_LINEAR)
    x = normalization(convolution(x, CHANNELS, 3, net.weights, stride=2), net.weights)
    for stage, width in enumerate((CHANNELS, 2 * CHANNELS, 4 * CHANNELS)):
        x = _stage(x, wired(wiring, stage, nodes), width, net.weights)
    x = conv_norm_relu(ops.relu(x), LAST, 1, net.weights)
    return net.classify(ops.flatten(ops.global_average_pool(x)))


def wired(wiring: int, stage: int, nodes: int = NODES) -> Edges:
    """Returns the edges of a ring of nodes with their next neighbours, with some ends moved at random."""
    rng = np.random.default_rng((wiring, stage))
    neighbours: list[set[int]] = [{(i + d) % nodes for d in _beside()} for i in range(nodes)]
    for step in range(1, NEIGHBOURS // 2 + 1):
        for node in range(nodes):
            end = (node + step) % nodes
            free = sorted(set(range(nodes)) - neighbours[node] - {node})
            if rng.random() < REWIRED and free:
                _move(neighbours, node, end, int(rng.choice(free)))
    return tuple(tuple(sorted(n for n in neighbours[node] if n < node)) for node in range(nodes))


def _beside() -> list[int]:
    half = range(1, NEIGHBOURS // 2 + 1)
    return [*half, *(-d for d in half)]


def _move(neighbours: list[set[int]], node: int, end: int, to: int) -> None:
    neighbours[node] ^= {end, to}
    neighbours[end].discard(node)
    neighbours[to].add(node)


def _stage(x: Var, edges: Edges, channels: int, weights: Weights) -> Var:
    outputs: list[Var] = []
    for inputs in edges:
        y, stride = (_mixed([outputs[i] for i in inputs], weights), 1) if inputs else (x, 2)
        outputs.append(_node(y, channels, stride, weights))
    read = {i for inputs in edges for i in inputs}
    return ops.mean(*(y for i, y in enumerate(outputs) if i not in read))


def _mixed(inputs: list[Var], weights: Weights) -> Var:
    """Adds a weighted sum, with one weight for each edge; one input passes unchanged."""
    if len(inputs) == 1:
        return inputs[0]
    name = weights.layer("edges")
    parts = [x * weights.draw(f"{name}/weight_{i}", 1, scale=0.1, mean=0.5) for i, x in enumerate(inputs)]
    return ops.sum(*parts)


def _node(x: Var, channels: int, stride: int, weights: Weights) -> Var:
    x = convolution(ops.relu(x), x.shape[1], 3, weights, stride=stride, group=x.shape[1])
    return normalization(convolution(x, channels, 1, weights, gain=_LINEAR), weights)
