"""Residual networks and MobileNetV2 with the weights of PyTorch modules give their numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine
from engine.graph.graph import Graph
from engine.zoo import NETWORKS
from ops.tensor.spec import Array
from tests.helpers.torch import REASON

torch = pytest.importorskip("torch", reason=REASON)
from tests.helpers.torch.torch_networks import mobilenet_v2, resnet, weighted

KINDS = {"conv": "Conv2d", "batch_norm": "BatchNorm2d", "gemm": "Linear"}
MODULES: dict[str, Callable[[], Any]] = {
    "resnet18": lambda: resnet(18),
    "resnet50": lambda: resnet(50),
    "resnet152": lambda: resnet(152),
    "mobilenet_v2": mobilenet_v2,
}


def give_weights(graph: Graph, module: Any) -> None:
    """Puts the weights of the graph into the layers of the module."""
    ours = [op for op in graph.operators if op.schema.name in KINDS]
    for (kind, tensors), operator in zip(weighted(module), ours, strict=True):
        assert kind == KINDS[operator.schema.name]
        arrays = [graph.constants[var] for var in operator.inputs[1:]]
        assert [tuple(t.shape) for t in tensors] == [a.shape for a in arrays]
        with torch.no_grad():
            for tensor, array in zip(tensors, arrays, strict=True):
                tensor.copy_(torch.from_numpy(np.array(array)))


def check(name: str, image: int) -> None:
    """Checks the network as it was built, and behind all passes."""
    module, graph = MODULES[name](), NETWORKS[name](2, image, seed=2)
    give_weights(graph, module)
    x: Array = np.random.default_rng(1).standard_normal((2, 3, image, image), dtype=np.float32)
    with torch.no_grad():
        wanted = module(torch.from_numpy(x)).numpy()
    for level in (0, 2):
        y = engine.compile(engine.optimise(graph, level))(x=x)["y"]
        assert np.abs(y - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_small_zoo_networks_equal_pytorch(name: str) -> None:
    check(name, 32)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_zoo_networks_equal_pytorch(name: str) -> None:
    check(name, 96)
