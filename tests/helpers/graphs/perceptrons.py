"""A perceptron that an optimiser trains, and the optimisers that tests try."""

import numpy as np

import engine
import ops
from engine import SGD, Adam, Graph
from engine.training.training import Optimiser
from ops.tensor.spec import Array


def perceptron(seed: int, width: int, optimiser: Optimiser, dtype: str = "float64") -> Graph:
    """Returns a step of training of two layers; the bias is used twice."""
    rng, graph = np.random.default_rng(seed), Graph("perceptron")
    x, target = graph.input("x", (5, width), dtype), graph.input("target", (5, 2), dtype)
    first = graph.parameter(rng.normal(size=(width, width)).astype(dtype), "first")
    second = graph.parameter(rng.normal(size=(width, 2)).astype(dtype), "second")
    bias = graph.parameter(rng.normal(size=(width,)).astype(dtype), "bias")
    hidden = ops.tanh(x @ first + bias)
    error = (hidden + bias) @ second - target
    loss = ops.reduce_mean(error * error, None, keepdims=False)
    engine.train_step(graph, loss, optimiser)
    return graph


def perceptron_feeds(width: int, dtype: str = "float64") -> dict[str, Array]:
    """Returns a batch for it."""
    rng = np.random.default_rng(1)
    return {"x": rng.normal(size=(5, width)).astype(dtype), "target": rng.normal(size=(5, 2)).astype(dtype)}


OPTIMISERS = (
    SGD(0.1),
    SGD(0.05, weight_decay=0.1),
    SGD(0.05, momentum=0.9),
    SGD(0.05, momentum=0.8, nesterov=True, weight_decay=0.01),
    Adam(0.05),
    Adam(0.05, beta1=0.8, beta2=0.9, weight_decay=0.1),
    Adam(0.05, weight_decay=0.1, decoupled=True),
)
