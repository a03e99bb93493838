"""The nine classification networks of the onnx package, with seeded weights."""

from pathlib import Path
from typing import Any

import onnx.backend.test
import pytest

import engine
from engine import Graph
from engine.onnx.seeded import seed_weights

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"
QUICK = ("squeezenet", "shufflenet")
SLOW = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "vgg19", "zfnet512")


def slow(*names: str) -> list[Any]:
    """Returns parameters of a test whose cases are marked as slow."""
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


LIGHT_MODELS = (*QUICK, *slow(*SLOW))
"""Parameters of a test of all nine; the large ones are slow."""


def light_model(name: str) -> Any:
    """Returns a network's `onnx.ModelProto`, with seeded weights."""
    return seed_weights(onnx.load(FOLDER / f"light_{name}.onnx"))


def light_graph(name: str) -> Graph:
    """Returns a network's graph, with seeded weights."""
    return engine.load_onnx(light_model(name))
