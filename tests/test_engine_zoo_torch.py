"""Image networks with the weights of torchvision's models give their numbers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine
from engine.graph import Graph
from engine.zoo import IMAGE_NETWORKS
from ops.spec import Array

torch = pytest.importorskip("torch")
models = pytest.importorskip("torchvision.models")

SIZES = {
    "alexnet": 224,
    "vgg16": 224,
    "resnet18": 64,
    "resnet50": 64,
    "resnet152": 64,
    "inception_v3": 107,
    "mobilenet_v2": 64,
    "densenet121": 64,
    "squeezenet": 65,
}
"""Images; those whose pooling torchvision adapts have the size at which it does nothing."""
NAMES = {"squeezenet": "squeezenet1_1"}
LAYERS = {"Conv2d": "conv", "BatchNorm2d": "batch_norm", "Linear": "gemm"}


def in_order(model: Any, x: Any) -> Iterator[Any]:
    """The layers that have weights, in the order in which they run."""
    ran: list[Any] = []
    hooks = [
        layer.register_forward_hook(lambda layer, *_: ran.append(layer))
        for layer in model.modules()
        if type(layer).__name__ in LAYERS
    ]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return iter(ran)


def take_weights(model: Any, x: Any, graph: Graph) -> None:
    """Puts the weights of the graph into the layers of the model."""
    ours = (op for op in graph.operators if op.schema.name in LAYERS.values())
    for layer, operator in zip(in_order(model, x), ours, strict=True):
        assert LAYERS[type(layer).__name__] == operator.schema.name
        arrays = [graph.constants[var] for var in operator.inputs[1:]]
        held = [t for t in (*layer.parameters(), *layer.buffers()) if t.ndim]
        assert [tuple(t.shape) for t in held] == [a.shape for a in arrays]
        with torch.no_grad():
            for tensor, array in zip(held, arrays, strict=True):
                tensor.copy_(torch.from_numpy(np.array(array)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_with_the_same_weights_torchvision_computes_the_same(name: str) -> None:
    options = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    model = getattr(models, NAMES.get(name, name))(**options).eval()
    image: Array = np.random.default_rng(1).standard_normal((2, 3, SIZES[name], SIZES[name]), dtype=np.float32)
    graph, x = IMAGE_NETWORKS[name](2, SIZES[name], seed=2), torch.from_numpy(image)
    take_weights(model, x, graph)
    with torch.no_grad():
        wanted = model(x).numpy()
    found = engine.compile(graph)(x=image)["y"]
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()
