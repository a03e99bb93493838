"""Quantised networks, made of float32 graphs by onnxruntime's quantisers."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from engine import Graph
from engine.onnx.library import ModelProto
from engine.onnx.load import load_onnx
from engine.passes.fold.batch_norm import FOLD_BATCH_NORM
from ops.tensor.spec import Array
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx.onnx_writer import to_onnx

DRIFTING = frozenset({"yolo_nano_int8"})
"""Networks of `tools.run_networks` that are too deep for a tolerance: one code more or less becomes dozens later on.
onnxruntime's own passes move values of this one by 40 codes."""


class _Feeds(CalibrationDataReader):  # type: ignore[misc]
    """A few seeded feeds, from whose ranges scales and zero points are taken."""

    def __init__(self, graph: Graph, count: int) -> None:
        self._feeds: Iterator[Mapping[str, Array]] = (random_feeds(graph, seed) for seed in range(count))

    def get_next(self) -> Mapping[str, Array] | None:
        """Returns the next feed, or None behind the last one."""
        return next(self._feeds, None)


@contextmanager
def quietly() -> Iterator[None]:
    """Hides what the quantisers say."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _saved(network: Graph | ModelProto, folder: Path) -> Path:
    """Returns the path of a model as it is, or of a model of a graph, in which normalizations are folded."""
    proto = to_onnx(FOLD_BATCH_NORM(network)) if isinstance(network, Graph) else network
    onnx.save(proto, folder / "float.onnx")
    return folder / "float.onnx"


def quantised_model(
    network: Graph | ModelProto,
    folder: Path,
    kind: str = "uint8",
    *,
    per_channel: bool = True,
    form: QuantFormat = QuantFormat.QDQ,
    narrow: bool = False,
) -> Path:
    """Returns the path of a model with activations of `kind` and weights of int8.

    Its form is QDQ, as exporters write it, or QOperator. `narrow` weights have 7 bits; see `exact_factors`.
    """
    source, target = _saved(network, folder), folder / f"{kind}.onnx"
    graph = network if isinstance(network, Graph) else load_onnx(source)
    with quietly():
        quantize_static(
            source,
            target,
            _Feeds(graph, 3),
            quant_format=form,
            per_channel=per_channel,
            activation_type=QuantType.QUInt8 if kind == "uint8" else QuantType.QInt8,
            weight_type=QuantType.QInt8,
            reduce_range=narrow,
        )
    return target


def dynamically_quantised_model(graph: Graph, folder: Path) -> Path:
    """Returns the path of a model that quantises activations when it runs; its weights have 7 bits."""
    source, target = _saved(graph, folder), folder / "dynamic.onnx"
    with quietly():
        quantize_dynamic(source, target, reduce_range=True)
    return target


def seeded(shape: tuple[int, ...], seed: int, scale: float = 1.0) -> Array:
    """Returns normal numbers from a seed."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)
