"""The common parts of image networks: their input, and their end in logits or, in training, in a loss."""

from attrs import frozen

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.zoo.layers import linear
from engine.zoo.weights import Weights

CLASSES = 1000
"""Classes of ImageNet."""


@frozen(eq=False)
class Images:
    """The beginning of an image network: x is float32 [batch, 3, image, image]."""

    graph: Graph
    x: Var
    weights: Weights

    def classify(self, features: Var, gain: float = 2.0) -> Graph:
        """Adds a linear layer to features [batch, features], and ends the network in its logits."""
        return self.finish(linear(features, CLASSES, self.weights, gain=gain))

    def finish(self, logits: Var) -> Graph:
        """Adds the output "y".

        In training an input "label" (int64, a class for each row of logits) and the output "loss".
        """
        return finish(self.graph, logits, training=self.weights.training)


def begin(name: str, batch: int | str, image: int, seed: int, training: bool) -> Images:
    """Returns a new graph with the input "x"."""
    graph = Graph(name)
    return Images(graph, graph.input("x", (batch, 3, image, image)), Weights(graph, seed, training))


def finish(graph: Graph, logits: Var, *, training: bool) -> Graph:
    """Adds output "y"; in training, input "label" (int64, a class for each row of logits) and output "loss"."""
    if training:
        batch = next(iter(graph.inputs.values())).shape[0]
        label = graph.input("label", (batch, *logits.shape[2:]), "int64")
        graph.output(ops.softmax_cross_entropy(logits, label), "loss")
    else:
        graph.output(logits, "y")
    return graph
