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
    """Input "x": float32 [batch, 3, image, image]. Output "y": [batch, 1000], logits. `seed` is that of the weights.

    `wiring` decides who reads whom; a stage has that many `nodes`, from 5 on. The weight of an edge is drawn about 1/2,
    where the paper has the sigmoid of what is learnt. `training`: see `zoo`.
    """
    net = begin("random_wired", batch, image, seed, training)
    x = conv_norm_relu(net.x, CHANNELS // 2, 3, net.weights, stride=2, gain=_LINEAR)
    x = normalization(convolution(x, CHANNELS, 3, net.weights, stride=2), net.weights)
    for stage, width in enumerate((CHANNELS, 2 * CHANNELS, 4 * CHANNELS)):
        x = _stage(x, wired(wiring, stage, nodes), width, net.weights)
    x = conv_norm_relu(ops.relu(x), LAST, 1, net.weights)
    return net.classify(ops.flatten(ops.global_average_pool(x)))


def wired(wiring: int, stage: int, nodes: int = NODES) -> Edges:
    """A ring in which each node knows its next neighbours; then the far end of an edge moves with some probability."""
    rng = np.random.default_rng((wiring, stage))
    known: list[set[int]] = [{(i + d) % nodes for d in _beside()} for i in range(nodes)]
    for step in range(1, NEIGHBOURS // 2 + 1):
        for node in range(nodes):
            end = (node + step) % nodes
            free = sorted(set(range(nodes)) - known[node] - {node})
            if rng.random() < REWIRED and free:
                _move(known, node, end, int(rng.choice(free)))
    return tuple(tuple(sorted(n for n in known[node] if n < node)) for node in range(nodes))


def _beside() -> list[int]:
    half = range(1, NEIGHBOURS // 2 + 1)
    return [*half, *(-d for d in half)]


def _move(known: list[set[int]], node: int, end: int, to: int) -> None:
    known[node] ^= {end, to}
    known[end].discard(node)
    known[to].add(node)


def _stage(x: Var, edges: Edges, channels: int, weights: Weights) -> Var:
    made: list[Var] = []
    for inputs in edges:
        y, stride = (_mixed([made[i] for i in inputs], weights), 1) if inputs else (x, 2)
        made.append(_node(y, channels, stride, weights))
    read = {i for inputs in edges for i in inputs}
    return ops.mean(*(y for i, y in enumerate(made) if i not in read))


def _mixed(inputs: list[Var], weights: Weights) -> Var:
    """A sum with a weight an edge; one input passes as it is."""
    if len(inputs) == 1:
        return inputs[0]
    name = weights.layer("edges")
    parts = [x * weights.draw(f"{name}/weight_{i}", 1, scale=0.1, mean=0.5) for i, x in enumerate(inputs)]
    return ops.sum(*parts)


def _node(x: Var, channels: int, stride: int, weights: Weights) -> Var:
    x = convolution(ops.relu(x), x.shape[1], 3, weights, stride=stride, group=x.shape[1])
    return normalization(convolution(x, channels, 1, weights, gain=_LINEAR), weights)
