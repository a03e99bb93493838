"""Encoders of text from token ids: BERT-base (Devlin et al. 2018) and MiniLM with 6 layers (Wang et al. 2020)."""

from attrs import frozen

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.text.errors import OptionError
from engine.zoo.classifier import finish
from engine.zoo.encoder import CLASSES
from engine.zoo.network import Batch, Length, Seed, checked
from engine.zoo.transformer import HIDDEN, dense, encoder_layer, norm
from engine.zoo.weights import Weights

EPSILON = 1e-12
_EMBEDDED = 0.5
"""Deviation of each of the three vectors that make one of a token."""


@frozen
class BertSize:
    """The size of a BERT: `width` must be a multiple of `heads`; a sequence has at most `positions` tokens."""

    layers: int
    width: int
    heads: int
    vocabulary: int = 30522
    positions: int = 512
    types: int = 2
    expansion: int = 4


BASE, MINILM = BertSize(12, 768, 12), BertSize(6, 384, 12)


@checked
def bert_base(batch: Batch = 1, sequence: Length = 128, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph. Inputs, int64 [batch, sequence]:

    "ids" of tokens, "mask" (0 for padding, else 1), "types" (0 or 1).

    Outputs: "y" [batch, sequence, 768], and "pooled" [batch, 768], which stands for the whole text. Weights are seeded.
    Dropout is left out. `training`: see `zoo`; the pooled vector is classified into one of two classes.
    """
    return bert(BASE, "bert_base", Text(batch, sequence), seed, training)


@checked
def minilm(batch: Batch = 1, sequence: Length = 128, seed: Seed = 0, training: bool = False) -> Graph:
    """Returns a graph as `bert_base` with 6 layers of width 384."""
    return bert(MINILM, "minilm", Text(batch, sequence), seed, training)


@frozen
class Text:
    """The batch and the sequence of the inputs; both may be names."""

    batch: int | str = 1
    sequence: int | str = 128


def bert(size: BertSize, name: str, text: Text, seed: int = 0, training: bool = False) -> Graph:
    """Returns a graph as `bert_base` with any size."""
    if isinstance(text.sequence, int) and text.sequence > size.positions:
        raise OptionError(f"{name}: sequence is at most {size.positions}, not {text.sequence}")
    graph = Graph(name)
    weights = Weights(graph, seed, training)
    ids, mask, types = (graph.input(n, (text.batch, text.sequence), "int64") for n in ("ids", "mask", "types"))
    bias = ops.unsqueeze((1.0 - ops.cast(mask, "float32")) * HIDDEN, (1, 2))
    x = norm(_embedded(ids, types, size, weights), weights, EPSILON)
    for _ in range(size.layers):
        x = encoder_layer(x, size.heads, size.expansion, weights, bias=bias, epsilon=EPSILON)
    pooled = ops.tanh(dense(x[:, 0], size.width, weights, "pooler"))
    if training:
        return finish(graph, dense(pooled, CLASSES, weights, "class"), training=True)
    graph.output(pooled, "pooled")
    return finish(graph, x, training=False)


def _embedded(ids: Var, types: Var, size: BertSize, weights: Weights) -> Var:
    """Adds the embeddings of tokens, positions and types."""
    rows = {"token": size.vocabulary, "position": size.positions, "type": size.types}
    token, position, kind = (weights.draw(f"{n}/weight", m, size.width, scale=_EMBEDDED) for n, m in rows.items())
    return ops.gather(token, ids) + ops.gather(kind, types) + position[: ids.shape[1]]
