"""An encoder of MiniLM's size (Devlin et al. 2018, Wang et al. 2020), ViT-tiny (Touvron et al. 2021, DeiT-Ti), and one
step of a decoder of DistilGPT-2's size (Radford et al. 2019, Sanh et al. 2019).
"""

import math

from attrs import frozen

from engine.onnx.library import ModelProto
from tools.networks.writer import CLASSES, Writer


@frozen
class Sizes:
    """Sizes of a transformer: `inner` is the width between the two linear layers of a block."""

    layers: int
    width: int
    inner: int
    heads: int
    sequence: int

    @property
    def split(self) -> tuple[int, int, int, int]:
        """Shape of queries by head."""
        return 1, self.sequence, self.heads, self.width // self.heads


MINILM = Sizes(6, 384, 1536, 12, 128)
VIT_TINY = Sizes(12, 192, 768, 3, 197)
DECODER = Sizes(6, 768, 3072, 12, 128)
IMAGE, PATCH = 224, 16


def encoder() -> ModelProto:
    """Builds an encoder of x [1, 128, 384] with 6 layers of 12 heads; normalized behind each sum."""
    to, x, sizes = Writer(), "x", MINILM
    for _ in range(sizes.layers):
        x = to.layer_norm(to.node("Add", [_self_attention(to, x, sizes), x]), sizes.width, 1e-12)
        x = to.layer_norm(to.node("Add", [_perceptron(to, x, sizes), x]), sizes.width, 1e-12)
    shape = 1, sizes.sequence, sizes.width
    return to.model("encoder", shape, {x: shape})


def _self_attention(to: Writer, x: str, sizes: Sizes) -> str:
    perms = (0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)
    parts = (to.reshape(to.dense(x, sizes.width, sizes.width), *sizes.split) for _ in perms)
    q, k, v = (to.transpose(part, *perm) for part, perm in zip(parts, perms, strict=True))
    scores = to.node("Div", [to.node("MatMul", [q, k]), to.number(math.sqrt(sizes.split[-1]))])
    return _mixed(to, scores, v, sizes)


def vit_tiny() -> ModelProto:
    """Builds ViT-tiny: x [1, 3, 224, 224] to 1000 classes; 12 layers of 3 heads, normalized in front of each."""
    to, sizes = Writer(), VIT_TINY
    x = _embedded(to, sizes)
    for _ in range(sizes.layers):
        normal = to.layer_norm(x, sizes.width, 1e-6)
        x = to.node("Add", [x, _scaled_attention(to, normal, sizes)])
        x = to.node("Add", [x, _perceptron(to, to.layer_norm(x, sizes.width, 1e-6), sizes)])
    first = to.node("Gather", [to.layer_norm(x, sizes.width, 1e-6), to.index(0)], {"axis": 1})
    return to.model("vit_tiny", (1, 3, IMAGE, IMAGE), {to.classifier(first, sizes.width): (1, CLASSES)})


def _embedded(to: Writer, sizes: Sizes) -> str:
    """Adds patches as tokens behind the token of the class, and their positions."""
    attributes = {"kernel_shape": [PATCH] * 2, "strides": [PATCH] * 2, "pads": [0] * 4, "group": 1}
    weights = to.zeros(sizes.width, 3, PATCH, PATCH)
    patches = to.node("Conv", ["x", weights, to.zeros(sizes.width)], attributes)
    tokens = to.transpose(to.reshape(patches, 1, sizes.width, sizes.sequence - 1), 0, 2, 1)
    whole = to.node("Concat", [to.zeros(1, 1, sizes.width), tokens], {"axis": 1})
    return to.node("Add", [whole, to.zeros(1, sizes.sequence, sizes.width)])


def _scaled_attention(to: Writer, x: str, sizes: Sizes) -> str:
    """Adds the attention that PyTorch writes for scaled_dot_product_attention: queries and keys are scaled."""
    width, heads = sizes.width, sizes.split[2:]
    whole = to.reshape(to.dense(x, width, 3 * width), 1, sizes.sequence, 3, *heads)
    parts = to.split(to.transpose(whole, 2, 0, 3, 1, 4), (1, 1, 1), axis=0)
    q, k, v = (to.node("Squeeze", [part, to.integers(0)]) for part in parts)
    scale = to.number(heads[-1] ** -0.25)
    transposed = to.node("Mul", [to.transpose(k, 0, 1, 3, 2), scale])
    return _mixed(to, to.node("MatMul", [to.node("Mul", [q, scale]), transposed]), v, sizes)


def _mixed(to: Writer, scores: str, v: str, sizes: Sizes) -> str:
    """Adds what follows the scores of an attention, up to its last linear layer."""
    mixed = to.node("MatMul", [to.node("Softmax", [scores], {"axis": -1}), v])
    whole = to.reshape(to.transpose(mixed, 0, 2, 1, 3), 1, sizes.sequence, sizes.width)
    return to.dense(whole, sizes.width, sizes.width)


def _perceptron(to: Writer, x: str, sizes: Sizes) -> str:
    return to.dense(to.gelu(to.dense(x, sizes.width, sizes.inner)), sizes.inner, sizes.width)


def decoder_step() -> ModelProto:
    """Builds a step of a decoder: x [1, 1, 768] is a token; keys and values of 127 tokens grow by one."""
    to, x, sizes = Writer(), "x", DECODER
    heads, depth = sizes.split[2:]
    caches = [f"{kind}{layer}" for layer in range(sizes.layers) for kind in ("keys", "values")]
    for layer in range(sizes.layers):
        whole = to.dense(to.layer_norm(x, sizes.width, 1e-5), sizes.width, 3 * sizes.width)
        parts = to.split(whole, (sizes.width,) * 3, axis=2)
        q, k, v = (to.transpose(to.reshape(part, 1, 1, heads, depth), 0, 2, 1, 3) for part in parts)
        keys, values = (
            to.node("Concat", [f"past_{kind}{layer}", new], {"axis": 2}, f"{kind}{layer}")
            for kind, new in (("keys", k), ("values", v))
        )
        products = to.node("MatMul", [q, to.transpose(keys, 0, 1, 3, 2)])
        shares = to.node("Softmax", [to.node("Div", [products, to.number(math.sqrt(depth))])], {"axis": -1})
        mixed = to.transpose(to.node("MatMul", [shares, values]), 0, 2, 1, 3)
        x = to.node("Add", [x, to.dense(to.reshape(mixed, 1, 1, sizes.width), sizes.width, sizes.width)])
        x = to.node("Add", [x, _perceptron(to, to.layer_norm(x, sizes.width, 1e-5), sizes)])
    past = {f"past_{name}": (1, heads, sizes.sequence - 1, depth) for name in caches}
    present = {name: (1, heads, sizes.sequence, depth) for name in caches}
    return to.model("decoder", (1, 1, sizes.width), {x: (1, 1, sizes.width), **present}, past)
