"""Every normalization of a network that PyTorch exported is folded, and outputs stay within 1e-5."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import engine
from engine.passes.fold.batch_norm import FOLD_BATCH_NORM
from tests.helpers.graphs.pass_checks import count, difference
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.torch import REASON

torch = pytest.importorskip("torch", reason=REASON)
from tests.helpers.torch.torch_networks import disturb, exported, mobilenet_v2, resnet

EXPORTED: dict[str, tuple[Callable[[], Any], int, int]] = {
    "resnet18": (lambda: resnet(18), 20, 20),
    "resnet50": (lambda: resnet(50), 53, 53),
    "resnet152": (lambda: resnet(152), 155, 155),
    "mobilenet_v2": (mobilenet_v2, 52, 52),
    "mobilenet_v2 in 54 convolutions": (partial(mobilenet_v2, all_convolutions=True), 53, 54),
}
"""Modules of PyTorch, how many normalizations they have, and how many convolutions."""


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPORTED)
def test_every_normalization_of_an_exported_network_is_folded(name: str) -> None:
    make, norms, layers = EXPORTED[name]
    torch.manual_seed(0)
    module = make()
    disturb(module)
    apart = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    graph = engine.load_onnx(exported(module, (1, 3, 64, 64), **apart))
    folded = FOLD_BATCH_NORM(graph)
    before, after = count(graph), count(folded)
    assert (before["batch_norm"], before["conv"]) == (norms, layers)
    assert (after["batch_norm"], after["conv"]) == (0, layers)
    feeds = random_feeds(graph)
    wanted, mirrored = (module(torch.from_numpy(x)).detach().numpy() for x in (feeds["x"], -feeds["x"]))
    assert difference(mirrored, wanted) > 0.02  # the image comes through all layers
    assert difference(engine.compile(graph, optimise=0).run(feeds)["y"], wanted) < 1e-5
    assert difference(engine.compile(folded, optimise=0).run(feeds)["y"], wanted) < 1e-5
