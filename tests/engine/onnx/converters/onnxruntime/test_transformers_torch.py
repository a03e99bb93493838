"""What onnxruntime's transformer optimiser makes of transformers that PyTorch exports."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import quantize_dynamic

import engine
from tests.helpers.onnx.quantised_models import quietly
from tests.helpers.onnx.small_models import run_onnxruntime
from tests.helpers.torch import REASON

torch = pytest.importorskip("torch", reason=REASON)
optimizer = pytest.importorskip("onnxruntime.transformers.optimizer")
transformers = pytest.importorskip("tests.helpers.torch.transformers")


def text() -> tuple[Any, ...]:
    """Returns words, the mask of a sentence that is shorter, and types."""
    ids = torch.randint(0, 50, (2, 7))
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[0, 5:] = 0
    return ids, mask, torch.zeros_like(ids)


KINDS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "bert": (transformers.TextEncoder, text),
    "vit": (transformers.ImageEncoder, lambda: (torch.randn(2, 3, 16, 16),)),
    "gpt2": (transformers.TextDecoder, lambda: text()[:1]),
}


def optimised(kind: str, level: int, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Returns the path of what the optimiser makes of a module, and feeds."""
    torch.manual_seed(0)
    make, arguments_of = KINDS[kind]
    module, arguments = make(), arguments_of()
    transformers.save_module(folder / "exported.onnx", module, arguments)
    model = optimizer.optimize_model(
        str(folder / "exported.onnx"), model_type=kind, num_heads=2, hidden_size=32, opt_level=level
    )
    model.save_model_to_file(str(folder / "optimised.onnx"))
    return folder / "optimised.onnx", {name: a.numpy() for name, a in zip(module.inputs, arguments, strict=True)}


def check(path: Path, feeds: dict[str, Any], *operators: str) -> None:
    """Checks that a model has these operators, and that it gives what onnxruntime gives."""
    proto = onnx.load(path)
    kinds = Counter(node.op_type for node in proto.graph.node)
    assert all(kinds[name] for name in operators)
    (wanted,) = run_onnxruntime(proto, feeds)
    graph = engine.load_onnx(proto)
    for passes in (0, 3):
        (got,) = engine.compile(graph, optimise=passes).run(feeds).values()
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "level"),
    [("bert", 0), pytest.param("bert", 2, marks=pytest.mark.slow), pytest.param("vit", 1, marks=pytest.mark.slow)],
)
def test_an_encoder_gives_the_same_outputs_behind_the_optimiser(kind: str, level: int, tmp_path: Path) -> None:
    path, feeds = optimised(kind, level, tmp_path)
    check(path, feeds, "Attention", "SkipLayerNormalization", "BiasGelu")


@pytest.mark.parametrize("level", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_decoder_gives_the_same_outputs_behind_the_optimiser(level: int, tmp_path: Path) -> None:
    path, feeds = optimised("gpt2", level, tmp_path)
    check(path, feeds, "Attention", "SkipLayerNormalization", "FastGelu", "EmbedLayerNormalization")


@pytest.mark.slow
def test_an_optimised_encoder_gives_the_same_outputs_behind_the_quantiser(tmp_path: Path) -> None:
    path, feeds = optimised("bert", 0, tmp_path)
    float32 = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    with quietly():
        quantize_dynamic(path, tmp_path / "quantised.onnx", reduce_range=True, extra_options=float32)
    check(tmp_path / "quantised.onnx", feeds, "QAttention", "QEmbedLayerNormalization")
