"""`zoo:NAME` where a command takes a model."""

import json
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.cli.main import ERROR, USAGE, main
from engine.zoo import NETWORKS, mobilenet_v2, squeezenet
from tests.helpers.cli.cli_checks import Capture, data, error, planned

SMALL = ("zoo:mobilenet_v2", "--shape", "x=2,3,32,32")


def test_a_network_of_the_zoo_is_planned_at_the_shape_that_is_asked_for(capsys: Capture) -> None:
    wanted = engine.make_plan(mobilenet_v2(2, 32)).report().to_json()
    assert planned(SMALL, capsys) == json.loads(json.dumps(wanted))


@pytest.mark.parametrize("query", ["batch=2&image=32", "image=32,batch=2", "image=32&batch=n"])
def test_zoo_options_follow_the_network_name(query: str, capsys: Capture) -> None:
    wanted = engine.make_plan(mobilenet_v2(2, 32)).report().to_json()
    words = ["--dim", "n=2"] if "n" in query.split("=") else []
    assert planned([f"zoo:mobilenet_v2?{query}", *words], capsys) == json.loads(json.dumps(wanted))


def test_options_and_a_shape_that_agree_are_taken(capsys: Capture) -> None:
    printed = data(["plan", "zoo:mobilenet_v2?image=32", "--shape", "x=2,3,32,32"], capsys)
    assert printed["arena_bytes"] == engine.make_plan(mobilenet_v2(2, 32)).arena_bytes


def test_names_that_get_a_length_are_left_open(capsys: Capture) -> None:
    printed = data(["plan", "zoo:mobilenet_v2?image=32", "--dim", "batch=2"], capsys)
    assert printed["arena_bytes"] == engine.make_plan(mobilenet_v2(2, 32)).arena_bytes


def test_an_optimiser_makes_a_step_of_training(capsys: Capture) -> None:
    graph = squeezenet(2, 32, training=True)
    engine.train_step(graph, graph.outputs["loss"], engine.Adam())
    wanted = engine.make_plan(graph, optimise=0)
    printed = data(["plan", "zoo:squeezenet?batch=2&image=32&optimiser=adam", "--optimise", "0"], capsys)
    assert (printed["arena_bytes"], printed["operators"]) == (wanted.arena_bytes, len(graph.operators))


@pytest.mark.slow
def test_the_seed_of_the_options_comes_before_that_of_the_command(capsys: Capture) -> None:
    one, other = (data(["run", f"{SMALL[0]}?image=32{s}", "--seed", "4"], capsys) for s in ("&seed=3", ""))
    assert one["outputs"] != other["outputs"]


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2"])
def test_without_a_shape_one_image_of_224_is_meant(name: str, capsys: Capture) -> None:
    printed = data(["plan", f"zoo:{name}"], capsys)
    assert printed["arena_bytes"] == engine.make_plan(NETWORKS[name]()).arena_bytes


@pytest.mark.parametrize("command", ["run", "heaps", "trace"])
def test_every_command_that_takes_a_model_takes_one_of_the_zoo(command: str, capsys: Capture) -> None:
    assert main([command, *SMALL]) == 0
    shown = capsys.readouterr()
    assert shown.out and not shown.err


@pytest.mark.slow
def test_all_modes_of_a_network_of_the_zoo_agree(capsys: Capture) -> None:
    assert data(["compare", *SMALL, "--runs", "1"], capsys)["outputs_equal"] is True


def test_an_array_tells_the_shape_and_the_seed_decides_the_weights(tmp_path: Path, capsys: Capture) -> None:
    path = f"{tmp_path}/x.npy"
    x = np.random.default_rng(0).standard_normal((3, 3, 32, 32), dtype=np.float32)
    np.save(path, x)
    printed = data(["run", SMALL[0], "--input", f"x={path}", "--seed", "4"], capsys)
    y = engine.compile(mobilenet_v2(3, 32, seed=4))(x=x)["y"]
    assert printed["outputs"][0]["shape"] == [3, 1000]
    assert printed["outputs"][0]["max"] == float(y.max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["zoo:lenet"], "zoo:alexnet, zoo:vgg16, zoo:vgg19"),
        (["zoo:"], "there is no network 'zoo:'"),
        (["zoo:vgg16", "--shape", "z=1"], "no input 'z'"),
        (["zoo:vgg16", "--constant", "x=x.npy"], "x.npy"),
        (["zoo:vgg16", "--shape", "x=1,3,32"], "[1, 3, 32]"),
        (["zoo:vgg16", "--shape", "x=1,3,32,64"], "square images"),
        (["zoo:vgg16", "--shape", "x=1,1,32,32"], "square images"),
        (["zoo:mobilenet_v2", "--shape", "x=-1,3,32,32"], "-1"),
        (
            ["zoo:vgg16?bach=8"],
            "no option 'bach'; did you mean batch? it has batch=1, image=224, seed=0, training=false, optimiser=none",
        ),
        (["zoo:vgg16?batch"], "batch is an integer of at least 0, or a name, not ''"),
        (["zoo:vgg16?image=-1"], "image is an integer of at least 32, not '-1'"),
        (["zoo:vgg16?image=x"], "image is an integer of at least 32, not 'x'"),
        (["zoo:vgg16?training=maybe"], "training is true or false, not 'maybe'"),
        (["zoo:vgg16?optimiser=rms"], "optimiser is sgd, momentum, adam or none, not 'rms'"),
        (["zoo:gpt2?optimiser=sgd"], "no option 'optimiser'; it has batch=1, tokens=1, capacity=128, seed=0"),
        (["zoo:squeezenet?optimiser=sgd", "--dim", "batch=2"], "give one behind the name for: batch"),
        (["zoo:vgg16?batch=True"], "batch is an integer of at least 0, or a name, not 'True'"),
        (["zoo:vgg16", "--shape", "x=1,3,16,16"], "vgg16: image is an integer of at least 32, not 16"),
        (["zoo:squeezenet?image=24"], "image is an integer of at least 25, not '24'"),
        (["zoo:random_wired?nodes=0"], "nodes is an integer of at least 5, not '0'"),
        (["zoo:bert_base?sequence=0"], "sequence is an integer of at least 1, or a name, not '0'"),
        (["zoo:minilm?sequence=513"], "minilm: sequence is at most 512, not 513"),
        (["zoo:unet?image=33"], "unet: image is a multiple of 2 ** depth (depth is 4), not 33"),
        (["zoo:unet?depth=999999999"], "image is a multiple of 2 ** depth"),
        (["zoo:unet?width=0"], "width is an integer of at least 1, not '0'"),
        (["zoo:lstm_classifier?vocabulary=0"], "vocabulary is an integer of at least 1, not '0'"),
        (["zoo:lstm_classifier?hidden=0"], "hidden is an integer of at least 1, not '0'"),
        (["zoo:gpt2?tokens=0"], "tokens is an integer of at least 1, not '0'"),
        (
            ["zoo:gpt2?tokens=200"],
            "gpt2: tokens is at most capacity, and that at most 1024; tokens is 200, and capacity",
        ),
        (["zoo:gpt2?capacity=1025"], "tokens is 1, and capacity 1025"),
        (["zoo:vgg16?batch=1&batch=2"], "says 'batch' twice"),
        (["zoo:vgg16?batch=n"], "--dim n=1"),
        (["zoo:vgg16?image=64", "--shape", "x=1,3,32,32"], "says that image is 64, and a shape that it is 32"),
    ],
)
def test_zoo_options_that_do_not_exist_are_one_clear_error(words: list[str], message: str, capsys: Capture) -> None:
    assert message in error(["plan", *words], ERROR, capsys)


def test_zoo_networks_refuse_constant(tmp_path: Path, capsys: Capture) -> None:
    np.save(f"{tmp_path}/x.npy", np.zeros(3))
    assert "--constant" in error(["plan", "zoo:vgg16", "--constant", f"x={tmp_path}/x.npy"], ERROR, capsys)


def test_another_engine_cannot_read_a_network_of_the_zoo(capsys: Capture) -> None:
    assert "reads ONNX files" in error(["compare", *SMALL, "--oracle", "onnxruntime"], USAGE, capsys)
