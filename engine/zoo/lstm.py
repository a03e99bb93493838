"""A classifier of texts: embedded tokens, an LSTM in both directions (Graves and Schmidhuber 2005), a linear layer."""

import math

import ops
from engine.graph.graph import Graph
from engine.zoo.layers import linear
from engine.zoo.network import Batch, Length, Seed, Size, checked
from engine.zoo.weights import Weights

_BIAS = 0.1


@checked
def lstm_classifier(
    batch: Batch = 1,
    sequence: Length = 128,
    seed: Seed = 0,
    *,
    vocabulary: Size = 20_000,
    width: Size = 128,
    hidden: Size = 128,
    classes: Size = 2,
) -> Graph:
    """Returns a graph. Inputs: "ids", int64 [batch, sequence], and "lengths", int32 [batch]: the tokens of each text.

    Output "y": logits [batch, classes], from the last states of both directions. Weights are seeded.
    """
    graph = Graph("lstm_classifier")
    weights = Weights(graph, seed)
    ids = graph.input("ids", (batch, sequence), "int64")
    lengths = graph.input("lengths", (batch,), "int32")
    token = weights.draw("token/weight", vocabulary, width, scale=1.0)
    x = ops.gather(token, ops.transpose(ids))
    w = weights.draw("lstm_0/weight", 2, 4 * hidden, width, scale=math.sqrt(1 / width))
    r = weights.draw("lstm_0/recurrent", 2, 4 * hidden, hidden, scale=math.sqrt(1 / hidden))
    bias = weights.draw("lstm_0/bias", 2, 8 * hidden, scale=_BIAS)
    _, last, _ = ops.lstm(x, w, r, bias, lengths=lengths, direction="bidirectional")
    both = ops.reshape(ops.transpose(last, (1, 0, 2)), (ids.shape[0], 2 * hidden))
    graph.output(linear(both, classes, weights, gain=1.0), "y")
    return graph
