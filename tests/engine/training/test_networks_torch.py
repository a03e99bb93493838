"""Gradients of whole networks are those of PyTorch's autograd."""

import numpy as np
import pytest

from engine import Graph
from engine.zoo import NETWORKS
from ops.tensor.spec import Array
from tests.helpers.graphs.trained_networks import QUICK, network_feeds, network_gradients, trained_network
from tests.helpers.torch import REASON

pytest.importorskip("torch", reason=REASON)
from tests.helpers.torch.torch_gradients import torch_gradients


def _check_gradients(graph: Graph, feeds: dict[str, Array]) -> None:
    """Checks every parameter's, to 1e-5 of its largest element; in float64, where only a wrong rule can differ.

    Some are zero but for rounding (of what a softmax or a normalization takes away), next to what others have.
    """
    loss, wanted = torch_gradients(graph, "loss", feeds)
    ours, gradients = network_gradients(graph, feeds)
    np.testing.assert_allclose(ours, loss, rtol=1e-6)  # normalizing two numbers makes rounding 1e7 times larger
    assert set(wanted) == set(gradients)
    largest = max(float(np.abs(theirs).max()) for theirs in wanted.values())
    for name, theirs in wanted.items():
        scale = max(float(np.abs(theirs).max()), 1e-6 * largest)
        np.testing.assert_allclose(gradients[name], theirs, rtol=0, atol=1e-5 * scale, err_msg=name)


@pytest.mark.parametrize("name", QUICK)
def test_gradients_of_a_network_are_pytorchs(name: str) -> None:
    graph = trained_network(name)
    _check_gradients(graph, network_feeds(graph, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, net in NETWORKS.items() if "training" in net.options and n not in QUICK])
def test_gradients_of_all_networks_are_pytorchs(name: str) -> None:
    graph = trained_network(name)
    _check_gradients(graph, network_feeds(graph, 1))
