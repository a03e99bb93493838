"""Seeded weights for an ONNX model whose weights are missing or all alike, as initializers of a copy of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.onnx.declarations import reads
from engine.onnx.library import ModelProto, onnx
from engine.onnx.load import load_onnx
from engine.onnx.random_weights import calibrated
from engine.onnx.tensors import code_of
from engine.text.errors import ModelError
from ops.tensor.spec import Array

_FREE_INITIALIZERS = 4
"""The first IR version in which an initializer need not be an input too."""


def seed_weights(
    model: ModelProto,
    seed: int = 0,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
) -> ModelProto:
    """Returns a copy of a model with random weights of the right scale and calibrated statistics, fixed by the seed.

    `shapes` and `constants` are those of `load_onnx`; the statistics are calibrated for them.

    New values are initializers; nodes and initializers without a reader are dropped, and so are inputs that
    have an initializer. Raises what `load_onnx` raises without stages, and ModelError where dimensions stay open.
    """
    graph = load_onnx(model, shapes=shapes, constants=constants, stages=False)
    if graph.is_symbolic:
        names = ", ".join(graph.symbols)
        raise ModelError(f"weights are calibrated for lengths that are known; give shapes= for these: {names}")
    inputs = {v.name for v in graph.inputs.values()}
    defined = {name for node in model.graph.node for name in node.output} | {t.name for t in model.graph.initializer}
    arrays = calibrated(graph, np.random.default_rng(seed), defined - inputs)
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
    _keep(graph.initializer, lambda t: t.name not in arrays)
    for name, array in arrays.items():
        graph.initializer.add(name=name, dims=array.shape, data_type=code_of(array.dtype), raw_data=_bytes(array))


def _bytes(array: Array) -> bytes:
    """Returns the bytes of an array, little-endian as ONNX stores them."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


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
    _keep(graph.node, lambda n: not needed.isdisjoint(n.output))
    _keep(graph.initializer, lambda t: t.name in needed)
    _keep(graph.input, lambda i: i.name not in initialized)


def _keep(messages: Any, wanted: Callable[[Any], bool]) -> None:
    """Deletes what is not wanted from a repeated field; large messages that stay are not copied."""
    for i in reversed(range(len(messages))):
        if not wanted(messages[i]):
            del messages[i]
