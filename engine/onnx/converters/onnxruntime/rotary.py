"""Rotary embeddings: pairs of numbers of a head, turned by an angle that grows with the position."""

from collections.abc import Mapping
from types import MappingProxyType

from attrs import frozen

from engine.onnx.converters.onnxruntime.contract import Versions, contract
from engine.onnx.converters.onnxruntime.heads import numbers_to, parts, with_heads
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError


@frozen(eq=False)
class Rotation:
    """Cosines and sines of each position, (batch or 1, length, pairs); whether pairs lie beside each other."""

    cos: Value
    sin: Value
    interleaved: bool


def rotation(node: Node, positions: Value, cos: Value, sin: Value, interleaved: bool) -> Rotation:
    """Returns the rotation for positions (batch or 1, length), from tables with a row for each position."""
    return Rotation(
        node.step("gather", cos, positions, axis=0), node.step("gather", sin, positions, axis=0), interleaved
    )


def rotated(node: Node, value: Value, turn: Rotation, heads_at: int = 2) -> Value:
    """Returns a tensor of four dimensions with pairs of its last one turned; numbers behind the pairs stay.

    `heads_at` is the axis of the heads, of which all are turned alike.
    """
    *lead, width = value.shape
    pairs = turn.cos.shape[-1]
    if 2 * pairs > width:
        raise ModelError(f"{pairs} pairs are turned, and a head has {width} numbers")
    turned, *rest = parts(node, value, (2 * pairs, width - 2 * pairs)) if 2 * pairs < width else (value,)
    if turn.interleaved:
        turned = node.step("reshape", turned, shape=(*lead, pairs, 2))
        one, other = (node.step("reshape", p, shape=(*lead, pairs)) for p in parts(node, turned, (1, 1)))
    else:
        one, other = parts(node, turned, (pairs, pairs))
    first, second = _turned(node, one, other, turn, heads_at)
    if turn.interleaved:
        column = (*lead, pairs, 1)
        both = (node.step("reshape", part, shape=column) for part in (first, second))
        first = node.step("reshape", node.step("concat", *both, axis=-1), shape=(*lead, 2 * pairs))
        return node.step("concat", first, *rest, axis=-1) if rest else first
    return node.step("concat", first, second, *rest, axis=-1)


def _turned(node: Node, one: Value, other: Value, turn: Rotation, heads_at: int) -> tuple[Value, Value]:
    """Returns one * cos - other * sin, and one * sin + other * cos."""
    batch, length, pairs = turn.cos.shape
    shape = (batch, length, 1, pairs) if heads_at == 2 else (batch, 1, length, pairs)
    cos, sin = (node.step("reshape", table, shape=shape) for table in (turn.cos, turn.sin))
    difference = node.step("sub", node.step("mul", one, cos), node.step("mul", other, sin))
    return difference, node.step("add", node.step("mul", one, sin), node.step("mul", other, cos))


def _rotary_embedding(node: Node) -> tuple[Value, ...]:
    """Converts RotaryEmbedding. One position alone is that of the first token."""
    x, positions = node.value(0), node.value(1)
    if len(x.shape) == 4:
        length, whole = x.shape[2], x
    else:
        length, whole = x.shape[1], with_heads(node, x, _heads(node, x))
    if len(positions.shape) == 1:
        following = node.step("add", positions, numbers_to(node, length))
        positions = node.step("reshape", following, shape=(1, length))
    turn = rotation(node, positions, node.value(2), node.value(3), bool(node.attr("interleaved", 0)))
    y = rotated(node, whole, turn, 1 if len(x.shape) == 4 else 2)
    return (node.output(0, "reshape", y, shape=x.shape),)


def _heads(node: Node, x: Value) -> int:
    """Returns the number of heads: the attribute, or what follows from tables for whole heads."""
    heads: int = node.attr("num_heads", 0) or x.shape[-1] // (2 * node.value(2).shape[-1])
    return heads


CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "RotaryEmbedding": contract(
            _rotary_embedding,
            "interleaved",
            "num_heads",
            "rotary_embedding_dim",
            inputs=4,
            is_packed_batching=0,
            scale=1.0,
        )
    }
)
