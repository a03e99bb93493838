"""Converters of onnxruntime's Attention, whose projections are inside, and MultiHeadAttention, whose are not."""

from collections.abc import Mapping
from types import MappingProxyType

from attrs import frozen

from engine.onnx.converters.onnxruntime.contract import Versions, contract, required
from engine.onnx.converters.onnxruntime.heads import (
    Scoring,
    attend,
    by_heads,
    dropped,
    later,
    of_length,
    padding,
    parts,
    scale_of,
    total,
)
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.dims import dims_in

MASKED = -10000.0
"""What is added to the score of a key that a mask drops, unless the model says otherwise."""


@frozen(eq=False)
class Context:
    """What scores depend on beside queries and keys: the keys of the past, a mask of keys, what is added."""

    past: int = 0
    mask: Value | None = None
    bias: Value | None = None


def scoring(node: Node, query: Value, key: Value, context: Context) -> Scoring:
    """Returns how queries (heads first) score keys: later keys and those of the mask are dropped, the bias is added."""
    batch, _, queries, width = query.shape
    terms = []
    if context.mask is not None:
        number = node.attr("mask_filter_value", MASKED)
        terms.append(dropped(node, padding(node, context.mask, batch, key.shape[2]), query, number))
    if node.attr("unidirectional", 0):
        keys = key.shape[2]
        if not dims_in((queries, keys, context.past)) and keys > queries + context.past:
            raise node.refuse(
                f"unidirectional with {queries} queries and {keys - context.past} new keys is not supported"
            )
        before = node.builder.of_integers((context.past,), ())
        terms.append(dropped(node, later(node, queries, key.shape[2], before), query))
    if context.bias is not None:
        terms.append(of_length(node, context.bias, key.shape[2]))
    return Scoring(scale_of(node, width), total(node, *terms))


def attention(
    node: Node, projected: Value, mask: Value | None, past: Value | None, bias: Value | None
) -> tuple[Value | None, ...]:
    """Adds attention for projections (batch, length, widths of query, key and value), and the state that stays."""
    heads = required(node, "num_heads")
    widths = node.attr("qkv_hidden_sizes") or (projected.shape[-1] // 3,) * 3
    if len(widths) != 3 or sum(widths) != projected.shape[-1]:
        raise ModelError(f"query, key and value of widths {tuple(widths)} are not {projected.shape[-1]} wide together")
    query, key, value = (by_heads(node, part, heads) for part in parts(node, projected, widths))
    present = None
    if past is not None or node.uses_output(1):
        present = _state(node, key, value, past)
        key, value = (node.step("reshape", p, shape=p.shape[1:]) for p in parts(node, present, (1, 1), axis=0))
    y = attend(
        node, query, key, value, scoring(node, query, key, Context(0 if past is None else past.shape[3], mask, bias))
    )
    return y, present


def _state(node: Node, key: Value, value: Value, past: Value | None) -> Value:
    """Returns keys and values in one tensor (2, batch, heads, length, width of a head), behind those of the past."""
    both = (node.step("reshape", part, shape=(1, *part.shape)) for part in (key, value))
    if past is None:
        return node.output(1, "concat", *both, axis=0)
    return node.output(1, "concat", past, node.step("concat", *both, axis=0), axis=3)


def _attention(node: Node) -> tuple[Value | None, ...]:
    projected = node.step("matmul", node.value(0), node.value(1))
    bias = node.optional(2)
    if bias is not None:
        projected = node.step("add", projected, bias)
    return attention(node, projected, node.optional(3), node.optional(4), node.optional(5))


def _multi_head_attention(node: Node) -> tuple[Value | None, ...]:
    """Converts MultiHeadAttention. Keys and values that have heads already come from another layer, as they are."""
    heads = required(node, "num_heads")
    if any(len(v.shape) == 5 for v in node.inputs[:3] if v is not None):
        raise node.refuse("packed queries, keys or values are not supported")
    query, key, value = _biased(node, [node.value(i) for i in range(3)], node.optional(3))
    query = by_heads(node, query, heads)
    states, past = [], 0
    for i, state in enumerate((key, value)):
        ours, before = state if len(state.shape) == 4 else by_heads(node, state, heads), node.optional(6 + i)
        if before is not None:
            past = before.shape[2]
            ours = node.output(1 + i, "concat", before, ours, axis=2)
        states.append(ours)
    key, value = states
    y = attend(node, query, key, value, scoring(node, query, key, Context(past, node.optional(4), node.optional(5))))
    return y, key, value


def _biased(node: Node, tensors: list[Value], bias: Value | None) -> list[Value]:
    """Returns query, key and value with their parts of the bias added; those that have heads already stay."""
    if bias is None:
        return tensors
    width = tensors[0].shape[-1]
    of_each = parts(node, bias, (width, width, bias.shape[0] - 2 * width))
    return [node.step("add", t, b) if len(t.shape) == 3 else t for t, b in zip(tensors, of_each, strict=True)]


SCORES = ("num_heads", "scale", "mask_filter_value", "unidirectional")
"""The attributes that decide scores."""
CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "Attention": contract(
            _attention,
            *SCORES,
            "qkv_hidden_sizes",
            "rotary_embedding_dim",
            inputs=6,
            outputs=(0, 1),
            do_rotary=0,
            past_present_share_buffer=0,
        ),
        "MultiHeadAttention": contract(_multi_head_attention, *SCORES, inputs=8, outputs=(0, 1, 2)),
    }
)
