"""Attention by heads: cut, compared, masked and joined. What the operators of attention have in common."""

import math
from collections.abc import Sequence

from attrs import frozen

from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.dims import dims_in
from ops.tensor.limits import info

HEADS_FIRST = (0, 2, 1, 3)
"""From (batch, length, heads, width of a head) to (batch, heads, length, width of a head), and back."""


def parts(node: Node, value: Value, sizes: Sequence[int], axis: int = -1) -> tuple[Value, ...]:
    """Returns a tensor cut into parts of these lengths."""
    attrs = {"axis": axis, "sizes": tuple(sizes)}
    return node.builder.emit("split", (value,), attrs, f"{node.name}/split", ("",) * len(sizes))


def numbers_to(node: Node, count: int) -> Value:
    """Returns the int64 numbers from 0 to before `count`, which may be a dimension."""
    limits = (node.builder.of_integers((n,), ()) for n in (0, count, 1))
    return node.step("arange", *limits, count=count)


def of_length(node: Node, value: Value, count: int) -> Value:
    """Returns a tensor whose last axis has `count` elements by contract.

    Where lengths are open, nobody can prove that they agree: then so many elements are picked.
    """
    length = value.shape[-1]
    if not dims_in((length, count)) or str(length) == str(count):
        return value
    return node.step("gather", value, numbers_to(node, count), axis=len(value.shape) - 1)


def with_heads(node: Node, value: Value, heads: int) -> Value:
    """Returns (batch, length, width) as (batch, length, heads, width of a head)."""
    *lead, width = value.shape
    if heads < 1 or width % heads:
        raise ModelError(f"{heads} heads do not divide the width {width}")
    return node.step("reshape", value, shape=(*lead, heads, width // heads))


def by_heads(node: Node, value: Value, heads: int) -> Value:
    """Returns (batch, length, width) as (batch, heads, length, width of a head)."""
    return node.step("transpose", with_heads(node, value, heads), perm=HEADS_FIRST)


def dropped(node: Node, is_dropped: Value, like: Value, number: float | None = None) -> Value:
    """Returns what is added to scores: a number (the lowest, if none is given) where a key is dropped, else 0."""
    lowest = info(like.dtype).min if number is None else number
    return node.step("where", is_dropped, node.like(lowest, like), node.like(0, like))


def later(node: Node, queries: int, keys: int, before: Value) -> Value:
    """Returns which keys come later than a query, in front of whose first there are `before` keys."""
    places = node.step("add", numbers_to(node, queries), before)
    return node.step("greater", numbers_to(node, keys), node.step("reshape", places, shape=(*places.shape, 1)))


@frozen(eq=False)
class Scoring:
    """How queries score keys: a factor, what is added, a soft limit, and scores of no key that only share the total."""

    scale: float
    added: tuple[Value, ...] = ()
    cap: float = 0.0
    sink: Value | None = None


def scale_of(node: Node, width: int) -> float:
    """Returns the factor of scores: the attribute, or one over the root of the width of a head."""
    return node.attr("scale", 0.0) or 1 / math.sqrt(width)


def attend(node: Node, query: Value, key: Value, value: Value, scoring: Scoring) -> Value:
    """Adds attention, whose output is the first of the node. All operands have the heads first.

    Keys and values may have fewer heads: then each serves as many queries, which follow each other.
    """
    batch, heads, length, width = query.shape
    groups, keys = key.shape[1:3]
    rows = heads // groups * length
    grouped = _shaped(node, query, (batch, groups, rows, width))
    scores = node.step("matmul", grouped, node.step("transpose", key, perm=(0, 1, 3, 2)))
    scores = node.step("mul", scores, node.like(scoring.scale, scores))
    weights = _weights(node, _shaped(node, scores, (batch, heads, length, keys)), scoring)
    mixed = node.step("matmul", _shaped(node, weights, (batch, groups, rows, keys)), value)
    width = value.shape[-1]
    joined = node.step("transpose", _shaped(node, mixed, (batch, heads, length, width)), perm=HEADS_FIRST)
    return node.output(0, "reshape", joined, shape=(batch, length, heads * width))


def _shaped(node: Node, value: Value, shape: tuple[int, ...]) -> Value:
    """Returns the value in a shape that differs in the heads and rows; itself where the heads are the same."""
    return value if value.shape[1] == shape[1] else node.step("reshape", value, shape=shape)


def _weights(node: Node, scores: Value, scoring: Scoring) -> Value:
    if scoring.cap:
        cap = node.like(scoring.cap, scores)
        scores = node.step("mul", node.step("tanh", node.step("div", scores, cap)), cap)
    for added in scoring.added:
        scores = node.step("add", scores, added)
    if scoring.sink is None:
        return node.step("softmax", scores, axis=-1)
    keys = scores.shape[-1]
    column = node.step("expand", scoring.sink, shape=(*scores.shape[:-1], 1))
    weights = node.step("softmax", node.step("concat", scores, column, axis=-1), axis=-1)
    return node.step("slice", weights, starts=(0,), ends=(keys,), axes=(-1,))


def total(node: Node, *terms: Value) -> tuple[Value, ...]:
    """Returns the sum of what is added to scores, as one term, or none: the smaller terms are added first."""
    if not terms:
        return ()
    first, *others = terms
    for term in others:
        first = node.step("add", first, term)
    return (first,)


def padding(node: Node, mask: Value, batch: int, keys: int) -> Value:
    """Returns which keys a mask drops, in a shape that broadcasts to scores.

    The mask has a number for each key, above 0 for those that are kept; or for each row of keys where it ends; or
    where all end and then where all begin.
    """
    if len(mask.shape) in (2, 3):
        mask = of_length(node, mask, keys)
        shape = (mask.shape[0], 1, *mask.shape[1:]) if len(mask.shape) == 3 else (mask.shape[0], 1, 1, mask.shape[1])
        return node.step("less_or_equal", node.step("reshape", mask, shape=shape), node.like(0, mask))
    if len(mask.shape) != 1 or not (mask.shape[0] == batch or mask.shape[0] == 2 * batch):
        raise node.refuse(f"a mask of shape {mask.shape} is not supported")
    places = node.step("cast", numbers_to(node, keys), to=mask.dtype)
    limits = (mask,) if mask.shape[0] == batch else parts(node, mask, (batch, batch), axis=0)
    ends, *begins = (node.step("reshape", limit, shape=(batch, 1, 1, 1)) for limit in limits)
    outside = node.step("greater_or_equal", places, ends)
    for begin in begins:
        outside = node.step("or", outside, node.step("less", places, begin))
    return outside
