"""Optimisers do what PyTorch's do."""

from typing import Any

import numpy as np
import pytest

import engine
from engine import SGD, Adam
from tests.helpers.graphs.perceptrons import OPTIMISERS, perceptron, perceptron_feeds
from tests.helpers.torch import REASON

torch = pytest.importorskip("torch", reason=REASON)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_an_optimiser_gives_what_pytorchs_gives(optimiser: SGD | Adam) -> None:
    graph, feeds = perceptron(0, 4, optimiser), perceptron_feeds(4)
    exe = engine.compile(graph, optimise=0)
    theirs = [torch.tensor(p.initial.copy(), requires_grad=True) for p in graph.parameters.values() if p.trainable]
    step = _torch_optimiser(optimiser, theirs)
    x, target = (torch.tensor(feeds[n]) for n in ("x", "target"))
    for _ in range(20):
        first, second, bias = theirs
        hidden = torch.tanh(x @ first + bias)
        loss = (((hidden + bias) @ second - target) ** 2).mean()
        step.zero_grad()
        loss.backward()
        step.step()
        np.testing.assert_allclose(exe.run(feeds)["loss"], loss.item(), rtol=1e-9)
    for name, tensor in zip(("first", "second", "bias"), theirs, strict=True):
        np.testing.assert_allclose(exe.parameters[name], tensor.detach().numpy(), rtol=1e-8, atol=1e-12)


def _torch_optimiser(optimiser: SGD | Adam, parameters: list[Any]) -> Any:
    rate, decay = optimiser.learning_rate, optimiser.weight_decay
    if isinstance(optimiser, SGD):
        options: dict[str, Any] = {"momentum": optimiser.momentum, "nesterov": optimiser.nesterov}
        return torch.optim.SGD(parameters, rate, weight_decay=decay, **options)
    kind = torch.optim.AdamW if optimiser.decoupled else torch.optim.Adam
    return kind(parameters, rate, (optimiser.beta1, optimiser.beta2), optimiser.epsilon, decay)
