"""Layers that PyTorch's exporter writes in pieces become layers again."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import engine
from engine import Graph
from engine.passes import verify
from engine.passes.pipeline import CLEANUP, RECOGNITION, until_unchanged
from engine.passes.recognise.activations import ACTIVATIONS
from engine.passes.recognise.layer_norms import LAYER_NORMS
from engine.passes.recognise.softmaxes import SOFTMAXES
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.torch import REASON

torch = pytest.importorskip("torch", reason=REASON)
from torch import nn

from tests.helpers.torch.torch_networks import exported

_X = (2, 6, 16)


class _Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class _Rms(nn.Module):
    """Llama's."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(16))

    def forward(self, x: Any) -> Any:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class _Encoder(nn.Module):
    """One layer of an encoder: attention written out, a residual sum, two normalisations, Gelu between matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.before, self.behind = nn.LayerNorm(16), nn.LayerNorm(16)
        self.up, self.down, self.active = nn.Linear(16, 32), nn.Linear(32, 16), nn.GELU()

    def forward(self, x: Any) -> Any:
        q, k, v = (f(x).reshape(2, 6, 4, 4).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = torch.softmax(q @ k.transpose(-1, -2) / 2.0, -1)
        y = self.before(x + (scores @ v).transpose(1, 2).reshape(2, 6, 16))
        return self.behind(y + self.down(self.active(self.up(y))))


def _softmax(x: Any) -> Any:
    power = torch.exp(x - x.max(-1, keepdim=True).values)
    return power / power.sum(-1, keepdim=True)


def _gelu(x: Any) -> Any:
    """Computes it as in GPT-2's first code."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


LAYERS: dict[str, tuple[Any, Sequence[str]]] = {
    "layer norm": (nn.LayerNorm(16), ["layer_norm"]),
    "layer norm of two axes": (nn.LayerNorm((6, 16)), ["layer_norm"]),
    "layer norm of nothing else": (nn.LayerNorm(16, elementwise_affine=False), ["layer_norm"]),
    "rms norm": (_Rms(), ["rms_norm"]),
    "gelu": (nn.GELU(), ["gelu"]),
    "gelu by tanh": (nn.GELU(approximate="tanh"), ["gelu"]),
    "gelu written out": (_Function(_gelu), ["gelu"]),
    "softmax": (_Function(_softmax), ["softmax"]),
    "swish": (nn.SiLU(), ["swish"]),
    "hard swish": (nn.Hardswish(), ["hard_swish"]),
    "mish": (nn.Mish(), ["mish"]),
}


def _exported(module: Any, opset: int) -> Graph:
    return engine.load_onnx(exported(module.eval(), _X, opset_version=opset))


def _seed(module: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.5 + 0.1


def _check(module: Any, graph: Graph) -> None:
    x = torch.randn(_X, generator=torch.Generator().manual_seed(1))
    (output,) = engine.compile(graph, optimise=0).run({"x": x.numpy()}).values()
    np.testing.assert_allclose(output, module(x).detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [11, 13, 16])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_recognised(layer: str, opset: int) -> None:
    module, names = LAYERS[layer]
    _seed(module)
    graph = _exported(module, opset)
    after = SOFTMAXES(ACTIVATIONS(LAYER_NORMS(graph)))
    verify(graph, after)
    assert schema_names(after) == names
    _check(module, after)


@pytest.mark.parametrize("opset", [13, 17])
def test_an_encoder_has_its_layers(opset: int) -> None:
    module = _Encoder()
    _seed(module)
    graph = _exported(module, opset)
    after = graph
    for applied in until_unchanged(graph, (*CLEANUP, *RECOGNITION)):
        after = applied.after
    names = schema_names(after)
    assert [names.count(name) for name in ("layer_norm", "softmax", "gelu", "erf", "reduce_mean")] == [2, 1, 1, 0, 0]
    _check(module, after)
    fused = engine.optimise(graph, 2)
    assert len(fused.operators) <= len(after.operators) < len(graph.operators)
    _check(module, fused)
