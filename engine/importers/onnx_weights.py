"""Seeded weights for an ONNX model whose weights are missing or all alike, as initializers of a copy of it."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from engine.importers.onnx import load_onnx
from engine.importers.onnx_door import ModelProto, onnx
from engine.importers.onnx_scope import reads
from engine.importers.weights import calibrated
from ops.spec import Array

_FREE_INITIALIZERS = 4
"""The first IR version in which an initializer need not be an input too."""


def seed_weights(model: ModelProto, seed: int = 0) -> ModelProto:
    """A copy of a model with random weights of the right scale and calibrated statistics; the same for the same seed.

    New values are initializers; nodes and initializers that nobody reads any more are dropped, and so are inputs that
    have an initializer. Raises what `load_onnx` raises.
    """
    graph = load_onnx(model)
    inputs = {v.name for v in graph.inputs.values()}
    made = {name for node in model.graph.node for name in node.output} | {t.name for t in model.graph.initializer}
    arrays = calibrated(graph, np.random.default_rng(seed), made - inputs)
    copy = onnx().ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = max(model.ir_version, _FREE_INITIALIZERS)
    _replace(copy.graph, arrays)
    _keep_needed(copy.graph)
    return copy


def _replace(graph: Any, arrays: Mapping[str, Array]) -> None:
    """Makes the arrays initializers, in place of what made those tensors before."""
    for node in graph.node:
        for i, name in enumerate(node.output):
            if name in arrays:
                node.output[i] = f"{name}:replaced"
    kept = [t for t in graph.initializer if t.name not in arrays]
    added = [onnx().numpy_helper.from_array(array, name) for name, array in arrays.items()]
    _set(graph.initializer, [*kept, *added])


def _keep_needed(graph: Any) -> None:
    """Drops nodes and initializers that no output needs, and inputs that have an initializer."""
    makers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    needed: set[str] = set()
    left = [o.name for o in graph.output]
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left.extend(reads(graph.node[makers[name]]) if name in makers else ())
    initialized = {t.name for t in graph.initializer}
    _set(graph.node, [n for n in graph.node if needed.intersection(n.output)])
    _set(graph.initializer, [t for t in graph.initializer if t.name in needed])
    _set(graph.input, [i for i in graph.input if i.name not in initialized])


def _set(field: Any, messages: Iterable[Any]) -> None:
    kept = list(messages)
    del field[:]
    field.extend(kept)
