"""Converter of GroupQueryAttention: several heads of queries share one of keys; a buffer of keys and values grows.

Keys and values go behind those of the past. Where rows of a batch may have pasts of different lengths, they are written
at the length of each row, and what is behind is dropped; where all are known to be as long as the buffer, the two
are concatenated.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from attrs import frozen

from engine.onnx.converters.onnxruntime.contract import Versions, contract, required
from engine.onnx.converters.onnxruntime.heads import (
    HEADS_FIRST,
    Scoring,
    attend,
    dropped,
    later,
    numbers_to,
    parts,
    scale_of,
    total,
    with_heads,
)
from engine.onnx.converters.onnxruntime.rotary import rotated, rotation
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.dims import SAMPLES, dims_in, sample_of

_INT64 = np.dtype(np.int64)


@frozen(eq=False)
class _Buffer:
    """Where new keys and values go: behind `before` others (batch or 1, 1), in a buffer of this length.

    `is_full` tells that the past fills all of the buffer that is not new.
    """

    before: Value
    length: int
    is_full: bool


def _group_query_attention(node: Node) -> tuple[Value | None, ...]:
    query, key, value = _operands(node)
    buffer = _buffer(node, query.shape[0], query.shape[1])
    if node.attr("do_rotary", 0):
        positions = node.optional(9)
        if positions is None:
            positions = node.step("add", buffer.before, numbers_to(node, query.shape[1]))
        turn = rotation(node, positions, node.value(7), node.value(8), bool(node.attr("rotary_interleaved", 0)))
        query, key = (rotated(node, x, turn) for x in (query, key))
    query, key, value = (node.step("transpose", x, perm=HEADS_FIRST) for x in (query, key, value))
    key, value = (_kept(node, x, node.optional(3 + i), buffer, 1 + i) for i, x in enumerate((key, value)))
    return attend(node, query, key, value, _scoring(node, query, buffer)), key, value


def _operands(node: Node) -> tuple[Value, Value, Value]:
    """Returns query, key and value with heads behind the length; one tensor may hold all three."""
    heads, groups = required(node, "num_heads"), required(node, "kv_num_heads")
    if groups < 1 or heads % groups:
        raise ModelError(f"{groups} heads of keys do not divide {heads} of queries")
    query, key, value = (node.optional(i) for i in range(3))
    if query is None:
        raise ModelError("input 0 is missing")
    if key is None or value is None:
        width = query.shape[-1] // (heads + 2 * groups)
        query, key, value = parts(node, query, tuple(width * n for n in (heads, groups, groups)))
    return with_heads(node, query, heads), with_heads(node, key, groups), with_heads(node, value, groups)


def _buffer(node: Node, batch: int, new: int) -> _Buffer:
    """Returns the buffer. Its length is the longer one of what there was and of all that is to be there."""
    past = node.optional(3)
    if past is None:
        return _Buffer(np.zeros((1, 1), np.int64), new, is_full=True)
    capacity = past.shape[2]
    guess = tuple(sample_of(capacity + new, j) + j for j in range(SAMPLES))
    whole = node.integer(6, "total_sequence_length", lambda _: (guess,))
    if not dims_in((batch, new, capacity, whole)) and batch == 1 and whole == capacity + new:
        return _Buffer(np.full((1, 1), capacity, np.int64), whole, is_full=True)
    lengths = (node.builder.of_integers((n,), ()) for n in (capacity, whole))
    (length,) = node.builder.integers(node.step("max", *lengths), lambda _: (guess,))
    last = node.step("cast", node.step("reshape", node.value(5), shape=(batch, 1)), to=_INT64)
    before = node.step("add", last, node.builder.of_integers((1 - new,), ()))
    return _Buffer(node.step("max", before, np.zeros((), np.int64)), length, is_full=False)


def _kept(node: Node, new: Value, past: Value | None, buffer: _Buffer, output: int) -> Value:
    """Returns keys or values (heads first) in the buffer, an output of the node."""
    if past is None:
        return new
    if buffer.is_full:
        return node.output(output, "concat", past, new, axis=2)
    zero = node.like(0, new)
    room = node.step("pad", past, zero, pads=(0,) * 6 + (buffer.length - past.shape[2], 0), mode="constant")
    batch, heads, length, _ = new.shape
    rows = node.step("add", buffer.before, numbers_to(node, length))
    places = (
        node.step("reshape", numbers_to(node, batch), shape=(batch, 1, 1, 1)),
        node.step("reshape", numbers_to(node, heads), shape=(1, heads, 1, 1)),
        node.step("reshape", rows, shape=(batch, 1, length, 1)),
    )
    wide = (node.step("expand", place, shape=(batch, heads, length, 1)) for place in places)
    return node.output(output, "scatter_nd", room, node.step("concat", *wide, axis=-1), new, reduction="none")


def _scoring(node: Node, query: Value, buffer: _Buffer) -> Scoring:
    """Returns how queries score keys: later ones, and those in front of the window, are dropped."""
    _, heads, queries, width = query.shape
    batch = buffer.before.shape[0]
    before = node.step("reshape", buffer.before, shape=(batch, 1, 1))
    is_dropped = later(node, queries, buffer.length, before)
    window = node.attr("local_window_size", -1)
    if window > 0:
        first = node.step("sub", before, np.asarray(window, np.int64))
        seen = later(node, queries, buffer.length, first)
        is_dropped = node.step("or", is_dropped, node.step("not", seen))
    terms = [dropped(node, is_dropped, query)]
    bias = node.optional(10)
    if bias is not None:
        pads = (0,) * 7 + (buffer.length - bias.shape[3],)
        terms.append(bias if buffer.is_full else node.step("pad", bias, node.like(0, bias), pads=pads, mode="constant"))
    cap = node.attr("softcap", 0.0)
    return Scoring(scale_of(node, width), total(node, *terms), cap, _sink(node, query, heads))


def _sink(node: Node, query: Value, heads: int) -> Value | None:
    """Returns a score of each head that no key has, or None."""
    sink = node.optional(11)
    if sink is not None:
        return node.step("reshape", sink, shape=(heads, 1, 1))
    return node.like(0, query) if node.attr("smooth_softmax", -1) > 0 else None


CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "GroupQueryAttention": contract(
            _group_query_attention,
            "num_heads",
            "kv_num_heads",
            "scale",
            "softcap",
            "do_rotary",
            "rotary_interleaved",
            "local_window_size",
            "smooth_softmax",
            "qk_norm_epsilon",
            inputs=12,
            outputs=(0, 1, 2),
            causal=1,
            k_quant_type="NONE",
            v_quant_type="NONE",
            kv_cache_bit_width=0,
            qk_output=0,
            sliding_window_cache=0,
        )
    }
)
