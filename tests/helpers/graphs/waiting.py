"""A network with a tensor that waits: it is read often, then not for a while, then often again."""

import numpy as np

import ops
from engine import SGD, Graph, train_step

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


def drawn_waiting(seed: int, operators: int = 16) -> Graph:
    """Draws a graph of tensors of 1 KiB, which later operators read again, through views, and side by side."""
    rng, graph = np.random.default_rng(seed), Graph("drawn")
    pool = [graph.input("x", (16, 16))]
    for _ in range(operators):
        one, other = pool[-1], pool[int(rng.integers(len(pool)))]
        kind = rng.random()
        if kind < 0.5:
            pool.append(one * other)
        elif kind < 0.7:
            pool.append(ops.tanh(one @ one))
        elif kind < 0.85:
            pool.append(ops.reshape(ops.reshape(other, (256,)), (16, 16)))
        else:
            pool.append(ops.tanh(ops.concat([one, other], axis=0))[:16])
    graph.output(pool[-1], "y")
    return graph


def rectified() -> Graph:
    """Returns a graph in which "relu_0" waits, and is one cheap operator away from an input that is read at the end."""
    graph = Graph("rectified")
    x = graph.input("x", (16, 16))
    waits = ops.relu(x)
    y = waits * waits
    for _ in range(4):
        y = ops.tanh(y @ y)
    for _ in range(3):
        y = y * waits
    for _ in range(3):
        y = y * x
    graph.output(y, "y")
    return graph


def drawn_cheap(seed: int) -> Graph:
    """Draws a graph of tensors of 1 KiB, many of which are computed by one cheap operator of one that is read later."""
    rng, graph = np.random.default_rng(seed), Graph("cheap")
    pool = [graph.input("x", (16, 16))]
    for _ in range(int(rng.integers(12, 30))):
        one, other = pool[-1], pool[int(rng.integers(len(pool)))]
        kind = rng.random()
        if kind < 0.35:
            pool.append(one * other)
        elif kind < 0.75:
            pool.append((ops.tanh, ops.relu, ops.sigmoid)[int(rng.integers(3))](other))
        elif kind < 0.9:
            pool.append(one @ other)
        else:
            pool.append(ops.tanh(ops.concat([one, other], axis=0))[:16])
    graph.output(pool[-1], "y")
    return graph


def squashed(layers: int = 3) -> Graph:
    """Returns a step of training of layers, each with three cheap operators behind its product."""
    rng, graph = np.random.default_rng(0), Graph("squashed")
    y = graph.input("x", (16, 16))
    for layer in range(layers):
        weight = graph.parameter(rng.normal(size=(16, 16)).astype(np.float32), f"w{layer}")
        y = ops.sigmoid(ops.relu(y @ weight) + 1.0) * 0.5
    train_step(graph, ops.reduce_mean(y * y, None, keepdims=False), SGD(0.1))
    return graph


def with_engine(*memories: str) -> list[str]:
    """Returns memories that a copy engine reaches."""
    return [f"{memory},copy-engine" for memory in memories]
