"""Networks of the zoo with a loss, small and in float64, and their gradients."""

from collections.abc import Mapping

import numpy as np

import engine
from engine import Graph
from engine.zoo import NETWORKS
from ops.tensor.spec import Array
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.graphs.widened import widened

IMAGE = {"inception_v3": 107, "alexnet": 79, "squeezenet": 65, "densenet121": 64}
"""Sides of small images; 48 for the others. There DenseNet would normalize two numbers and amplify rounding."""
QUICK = ("resnet18", "squeezenet", "minilm")


def trained_network(name: str) -> Graph:
    """Returns a network of the zoo with a loss, small and in float64."""
    options = NETWORKS[name].options
    asked: dict[str, int] = {"batch": 2, "training": True}
    if "image" in options:
        asked["image"] = IMAGE.get(name, 48)
    if "sequence" in options:
        asked["sequence"] = 9
    if "width" in options:
        asked["width"] = 8
    return widened(NETWORKS[name](**asked))


def network_feeds(graph: Graph, seed: int) -> dict[str, Array]:
    """Returns random feeds for it."""
    rng, feeds = np.random.default_rng(seed), random_feeds(graph, seed)
    for name, var in graph.inputs.items():
        if var.dtype.kind in "iu":
            feeds[name] = rng.integers(0, 2, var.shape).astype(var.dtype)
    return feeds


def network_gradients(graph: Graph, feeds: Mapping[str, Array]) -> tuple[float, dict[str, Array]]:
    """Appends the backward pass; returns the loss, and the gradients of all trained parameters by name."""
    trained = [v for v, p in graph.parameters.items() if p.trainable]
    gradients = engine.gradients(graph.outputs["loss"], trained)
    for var, gradient in zip(trained, gradients, strict=True):
        graph.output(gradient, f"{var.name}/gradient")
    outputs = engine.compile(graph, optimise=0).run(feeds)
    return float(outputs["loss"]), {var.name: outputs[f"{var.name}/gradient"] for var in trained}
