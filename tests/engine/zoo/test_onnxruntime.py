"""Every network of the zoo, as it was built and behind all passes, against onnxruntime with the same weights."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest

import engine
from engine import Graph
from engine.zoo import IMAGE_NETWORKS, NETWORKS, TEXT_NETWORKS, lstm_classifier, random_wired, unet
from engine.zoo.bert import BertSize, Text, bert
from engine.zoo.gpt2 import GptSize, Steps, decoder
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import difference
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx.onnxruntime_session import OnnxSession

TOLERANCE = 1e-4
"""Of the largest element."""
LEVELS = (0, 2)
Feeds = dict[str, Array]


def images(graph: Graph) -> list[Feeds]:
    """Returns one batch of noise."""
    return [random_feeds(graph)]


def texts(graph: Graph) -> list[Feeds]:
    """Returns one batch of tokens, of which some only fill up."""
    rng, shape = np.random.default_rng(0), graph.inputs["ids"].shape
    lengths = np.arange(shape[1], shape[1] - shape[0], -1, dtype=np.int32)
    mask = (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)
    arrays: Feeds = {"lengths": lengths, "mask": mask}
    arrays |= {"types": rng.integers(0, 2, shape), "ids": rng.integers(0, 30, shape)}
    return [{name: arrays[name] for name in graph.inputs}]


def pieces(graph: Graph) -> list[Feeds]:
    """Returns a text in pieces, the second of which reads what the first has left in the caches."""
    rng, (batch, tokens) = np.random.default_rng(0), graph.inputs["ids"].shape
    capacity = next(iter(graph.parameters)).shape[0]
    starts = range(0, capacity - tokens + 1, tokens)
    return [{"ids": rng.integers(0, 30, (batch, tokens)), "position": np.array([start])} for start in starts]


FEEDS = {name: images for name in IMAGE_NETWORKS} | {name: texts for name in TEXT_NETWORKS} | {"gpt2": pieces}
OPTIONS = {name: {"image": 64} for name in IMAGE_NETWORKS} | {name: {"sequence": 12} for name in TEXT_NETWORKS}
OPTIONS |= {"inception_v3": {"image": 107}, "gpt2": {"tokens": 3, "capacity": 7}}
"""Small ones; the weights are as many as ever, but for networks whose linear layers read the whole image."""

SMALL: dict[str, Callable[[], Graph]] = {
    "resnet18": lambda: NETWORKS["resnet18"](2, 32),
    "squeezenet": lambda: NETWORKS["squeezenet"](2, 48),
    "mobilenet_v2": lambda: NETWORKS["mobilenet_v2"](2, 40),
    "unet": lambda: unet(2, 16, width=8, depth=2),
    "random_wired": lambda: random_wired(2, 32, nodes=5),
    "lstm_classifier": lambda: lstm_classifier(2, 9, vocabulary=30, width=12, hidden=10),
    "bert_base": lambda: bert(BertSize(2, 24, 3, vocabulary=30, positions=12), "bert", Text(2, 9)),
    "gpt2": lambda: decoder(GptSize(2, 24, 3, vocabulary=30, positions=12), "gpt", Steps(2, 3, 10)),
}
"""The kinds of networks there are, in a size that takes no time."""


def check(graph: Graph, runs: Iterable[Feeds]) -> None:
    """Checks outputs and what parameters hold, run after run, without and with all passes."""
    theirs = OnnxSession(graph)
    ours = {level: engine.compile(engine.optimise(graph, level)) for level in LEVELS}
    for feeds in runs:
        wanted = theirs.run(feeds)
        for level, exe in ours.items():
            outputs, held = exe.run(feeds), exe.parameters
            assert list(outputs) == list(wanted) and held.keys() == theirs.parameters.keys()
            far = {n: difference(outputs[n], a) for n, a in wanted.items()}
            far |= {n: difference(held[n], a) for n, a in theirs.parameters.items()}
            assert max(far.values()) <= TOLERANCE, (level, far)


@pytest.mark.parametrize("name", SMALL)
def test_small_zoo_networks_agree_with_onnxruntime(name: str) -> None:
    graph = SMALL[name]()
    check(graph, FEEDS[name](graph))


def test_a_decoder_that_has_not_read_the_beginning_is_noticed() -> None:
    graph = SMALL["gpt2"]()
    theirs, (first, second, *_) = OnnxSession(graph), pieces(graph)
    theirs.run(first)
    outputs = engine.compile(graph).run(second)
    assert difference(outputs["y"], theirs.run(second)["y"]) > 10 * TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_zoo_networks_agree_with_onnxruntime(name: str) -> None:
    graph = NETWORKS[name](batch=2, **OPTIONS[name])
    check(graph, FEEDS[name](graph))
