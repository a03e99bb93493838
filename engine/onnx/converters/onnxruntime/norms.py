"""Converters of onnxruntime's normalisations with what was fused into them: additions and embeddings."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from engine.onnx.converters.nn import layer_norm
from engine.onnx.converters.onnxruntime.contract import Step, Versions, contract, in_chain
from engine.onnx.converters.quantised import stay_quantised
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node

EPSILON = 1e-12
_SUM = 3
"""The output of a normalisation with additions that has the sum."""


def _simplified_layer_norm(node: Node) -> tuple[Value, ...]:
    return node.last(
        "rms_norm", node.value(0), node.value(1), axis=node.attr("axis", -1), epsilon=node.attr("epsilon", 1e-5)
    )


def _skip_norm(node: Node, schema: str, bias: int) -> tuple[Value | None, ...]:
    """Converts a normalisation of a sum: of the input, of what skipped layers, and of the input `bias`, if it is there.

    Scale, and shift in front of the input `bias`, are the other inputs. The bias is added first: that of a product is
    fused with it.
    """
    added = [Step("add", (v,)) for v in (node.optional(bias), node.value(1)) if v is not None]
    total = in_chain(node, node.value(0), *added, output=_SUM)
    parameters = [v for v in map(node.optional, range(2, bias)) if v is not None]
    y = node.output(0, schema, total, *parameters, axis=-1, epsilon=node.attr("epsilon", EPSILON))
    return y, None, None, total


def _skip_layer_norm(node: Node) -> tuple[Value | None, ...]:
    return _skip_norm(node, "layer_norm", 4)


def _skip_simplified_layer_norm(node: Node) -> tuple[Value | None, ...]:
    return _skip_norm(node, "rms_norm", 3)


def _as_stored(_: Node, __: int, value: Value) -> Value:
    return value


def _dequantised(node: Node, index: int, value: Value) -> Value:
    """Returns real numbers of a part of the input `index`, whose scale and zero point stand behind all such inputs."""
    return node.step("dequantize_linear", value, node.value(index + 6), node.value(index + 11))


def _embedding(to_real: Callable[[Node, int, Value], Value]) -> Converter:
    """Returns the converter of embeddings that are added and normalised: of words, of positions and of segments.

    `to_real` makes real numbers of a part of an input. Output 1 is the number of ones in each row of the mask.
    """

    def convert(node: Node) -> tuple[Value | None, ...]:
        def picked(index: int, ids: Value) -> Value:
            table = stay_quantised(node, node.value(index))
            return to_real(node, index, node.step("gather", table, ids, axis=0))

        ids, segments, positions = node.value(0), node.optional(1), node.optional(8) if to_real is _as_stored else None
        if positions is None:
            first = node.step("slice", node.value(3), starts=(0,), ends=(ids.shape[1],), axes=(0,))
            additions = [Step("add", (to_real(node, 3, first),))]
        else:
            additions = [Step("add", (picked(3, positions),))]
        if segments is not None:
            additions.append(Step("add", (picked(4, segments),)))
        total = in_chain(node, picked(2, ids), *additions, output=2)
        scale, shift = (to_real(node, i, node.value(i)) for i in (5, 6))
        y = node.output(0, "layer_norm", total, scale, shift, epsilon=node.attr("epsilon", EPSILON))
        return y, _mask_index(node, ids) if node.uses_output(1) else None, total

    return convert


def _mask_index(node: Node, ids: Value) -> Value:
    mask = node.optional(7)
    if mask is None:
        return node.output(1, "expand", np.zeros((), np.int32), shape=ids.shape[:1])
    cast = Step("cast", (), {"to": np.dtype(np.int32)})
    return in_chain(
        node,
        mask,
        Step("equal", (node.like(1, mask),)),
        cast,
        Step("reduce_sum", (), {"axes": (1,), "keepdims": 0}),
        output=1,
    )


CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "SkipLayerNormalization": contract(_skip_layer_norm, "epsilon", inputs=5, outputs=(0, _SUM)),
        "SkipSimplifiedLayerNormalization": contract(
            _skip_simplified_layer_norm, "epsilon", inputs=4, outputs=(0, _SUM)
        ),
        "EmbedLayerNormalization": contract(
            _embedding(_as_stored), "epsilon", "mask_index_type", inputs=9, outputs=(0, 1, 2)
        ),
        "QEmbedLayerNormalization": contract(_embedding(_dequantised), "epsilon", inputs=18, outputs=(0, 1)),
    }
)
DEFAULT_DOMAIN: Mapping[str, Versions] = MappingProxyType(
    {
        "SimplifiedLayerNormalization": contract(_simplified_layer_norm, "axis", "epsilon", "stash_type", inputs=2),
        "LayerNormalization": contract(layer_norm, "axis", "epsilon", "stash_type", inputs=3, outputs=(0, 1, 2)),
    }
)
"""Operators that onnxruntime writes without a domain, in models of any operator set."""
