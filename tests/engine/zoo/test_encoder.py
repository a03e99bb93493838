"""The encoder transformer, against the same network written in plain numpy."""

import numpy as np

import engine
from engine.graph.graph import Graph
from engine.zoo import encoder
from engine.zoo.encoder import EncoderSize
from ops.tensor.spec import Array
from tests.helpers.graphs.numpy_networks import ByHand
from tests.helpers.graphs.unplanned_run import SERIAL, check_modes, random_feeds

SMALL = EncoderSize(layers=2, width=48, heads=4, sequence=16, batch=2)


def by_hand(x: Array, size: EncoderSize, graph: Graph) -> Array:
    """Returns the network in float64."""
    hand, x = ByHand.of(graph), x.astype(np.float64)
    for _ in range(size.layers):
        x = hand.encoder_layer(x, size.heads, np.array(True))
    return x


def _check(size: EncoderSize) -> engine.Executable:
    graph = encoder(size, seed=5)
    feeds = random_feeds(graph, seed=1)
    exe = engine.compile(graph, optimise=0)
    outputs = exe.run(feeds)
    wanted = by_hand(feeds["x"], size, graph)
    assert np.abs(outputs["y"] - wanted).max() <= 1e-4 * np.abs(wanted).max()
    check_modes(graph, feeds, outputs, SERIAL[1:])
    return exe


def test_a_small_encoder_is_what_numpy_computes_in_every_mode() -> None:
    _check(SMALL)


def test_the_encoder_of_minilm_size_is_what_numpy_computes_and_needs_little() -> None:
    report = _check(EncoderSize()).report()
    assert report.arena_bytes <= 1.02 * report.lower_bound
    assert report.arena_bytes <= report.dynamic_peak_bytes + report.alignment_loss
