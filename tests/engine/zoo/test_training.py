"""Networks of the zoo that are trained: what is trainable, a loss that falls, and the same bits in every mode."""

import numpy as np
import pytest

import engine
from engine.graph.graph import Graph
from engine.zoo import IMAGE_NETWORKS, NETWORKS, encoder, random_wired, unet
from engine.zoo.bert import BertSize, Text, bert
from engine.zoo.encoder import EncoderSize
from engine.zoo.gpt2 import GptSize, Steps, decoder, trained_decoder
from ops.tensor.spec import Array
from tests.engine.zoo.test_image_networks import COUNTED, IMAGES, PUBLISHED
from tests.helpers.graphs.unplanned_run import assert_same

TRAINABLE = {name: counts[0] for name, counts in PUBLISHED.items()} | COUNTED
RATE = 1e-4


def feeds_of(graph: Graph) -> dict[str, Array]:
    """Returns numbers, and labels, tokens, masks and types that are 0 or 1."""
    rng = np.random.default_rng(0)
    drawn = {n: rng.standard_normal(v.shape, dtype=np.float32) for n, v in graph.inputs.items()}
    return {n: a if graph.inputs[n].dtype.kind == "f" else (a > 0).astype(np.int64) for n, a in drawn.items()}


def check_training(graph: Graph) -> None:
    """Checks three steps on one batch, in one arena and with reference counting."""
    before = sum(parameter.trainable for parameter in graph.parameters.values())
    step = engine.train_step(graph, graph.outputs["loss"], engine.SGD(RATE))
    assert len(step.gradients) == before
    planned, counted = engine.compile(graph), engine.compile(graph, mode="dynamic")
    feeds, losses = feeds_of(graph), []
    for _ in range(3):
        outputs = planned.run(feeds)
        assert_same(counted.run(feeds), outputs)
        losses.append(float(outputs["loss"]))
    assert np.isfinite(losses).all() and losses[1] < losses[0]
    assert_same(counted.parameters, planned.parameters)


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_trainable_zoo_parameters_are_the_published_ones(name: str) -> None:
    graph = IMAGE_NETWORKS[name](2, IMAGES[name] if name not in ("alexnet", "vgg16", "vgg19") else 224, training=True)
    assert list(graph.inputs) == ["x", "label"] and list(graph.outputs) == ["loss"]
    assert graph.inputs["label"].dtype == np.int64 and graph.outputs["loss"].shape == ()
    held = graph.parameters.items()
    assert sum(var.spec.size for var, parameter in held if parameter.trainable) == TRAINABLE[name]
    assert {var for var, parameter in held if not parameter.trainable} == set(graph.updates)
    assert all(var.name.split("/")[-1].startswith("running_") for var in graph.updates)


def test_weights_have_the_names_of_their_operators() -> None:
    graph = IMAGE_NETWORKS["squeezenet"](1, 32, training=True)
    convolutions = [op for op in graph.operators if op.schema.name == "conv"]
    assert [[v.name for v in op.inputs[1:]] for op in convolutions] == [
        [f"{op.name}/weight", f"{op.name}/bias"] for op in convolutions
    ]


def test_zoo_weights_drawn_for_training_are_those_drawn_without() -> None:
    trained, plain = (IMAGE_NETWORKS["resnet18"](2, 32, 3, training=t) for t in (True, False))
    arrays = {var.name: array for var, array in plain.constants.items()}
    assert all(arrays[var.name] is parameter.initial for var, parameter in trained.parameters.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "squeezenet"])
def test_image_networks_learn_a_batch(name: str) -> None:
    check_training(IMAGE_NETWORKS[name](2, 64, training=True))


@pytest.mark.slow
def test_a_small_random_wired_network_learns_a_batch() -> None:
    check_training(random_wired(8, 32, training=True, nodes=5))


def test_a_small_unet_learns_a_batch() -> None:
    check_training(unet(2, 16, training=True, width=4, depth=2))


def test_encoders_learn_a_batch() -> None:
    check_training(encoder(EncoderSize(2, 24, 3, 7, 4), training=True))
    check_training(bert(BertSize(2, 24, 3, vocabulary=9, positions=8), "bert", Text(4, 7), training=True))


def test_a_decoder_learns_a_batch_from_the_weights_of_one_with_caches() -> None:
    size = GptSize(2, 24, 3, vocabulary=9, positions=8)
    trained, plain = trained_decoder(size, "gpt", 3, 7), decoder(size, "gpt", Steps(3, 7, 8))
    arrays = {var.name: array for var, array in plain.constants.items()}
    assert all(arrays[var.name] is parameter.initial for var, parameter in trained.parameters.items())
    check_training(trained)


def test_the_loss_of_a_decoder_is_that_of_the_logits_of_one_with_caches() -> None:
    size, texts = GptSize(2, 24, 3, vocabulary=9, positions=8), np.random.default_rng(0).integers(0, 9, (3, 8))
    loss = engine.compile(trained_decoder(size, "gpt", 3, 7))(ids=texts[:, :-1], label=texts[:, 1:])["loss"]
    step, logits = engine.compile(decoder(size, "gpt", Steps(3, 1, 8))), []
    for place in range(7):
        logits.append(step(ids=texts[:, place : place + 1], position=np.array([place]))["y"])
    shares = np.exp(np.stack(logits, 1).astype(np.float64))
    expected = -np.log(np.take_along_axis(shares, texts[:, 1:, None], 2)[..., 0] / shares.sum(2)).mean()
    assert np.isclose(loss, expected, rtol=1e-5)


def test_a_batch_that_is_a_name_is_trained_as_one_that_is_a_number() -> None:
    numbers, names = unet(4, 16, training=True, width=4, depth=1), unet("batch", 16, training=True, width=4, depth=1)
    feeds, steps = feeds_of(numbers), []
    for graph in (numbers, engine.bind(names, {"batch": 4})):
        engine.train_step(graph, graph.outputs["loss"], engine.SGD(RATE))
        steps.append(engine.compile(graph))
    one, other = steps
    assert np.allclose(one.run(feeds)["loss"], other.run(feeds)["loss"], rtol=1e-6)
    assert one.parameters.keys() == other.parameters.keys()
    assert all(np.allclose(array, other.parameters[name], rtol=1e-6) for name, array in one.parameters.items())


def test_networks_that_cannot_be_trained_have_no_option_for_it() -> None:
    assert {n for n, net in NETWORKS.items() if "training" not in net.options} == {"gpt2", "lstm_classifier"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in IMAGE_NETWORKS if n not in ("resnet18", "squeezenet")])
def test_all_image_networks_learn_a_batch(name: str) -> None:
    check_training(IMAGE_NETWORKS[name](4, 128, training=True))
