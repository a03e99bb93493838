from typing import Any

import numpy as np
import onnx
import pytest

from engine.api import compile_graph
from engine.onnx.load import load_onnx
from engine.onnx.seeded import seed_weights
from ops.tensor.spec import Array
from tests.helpers.onnx.light_models import LIGHT_MODELS, light_model
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, run_ours, value


@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_a_light_network_with_seeded_weights_agrees_with_onnxruntime(name: str) -> None:
    seeded = light_model(name)
    run = compile_graph(load_onnx(seeded)).run
    rng = np.random.default_rng(3)
    outputs: list[Array] = []
    for _ in range(2):
        feeds = {
            i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32)
            for i in seeded.graph.input
        }
        (ours,), (theirs,) = run(feeds).values(), run_onnxruntime(seeded, feeds)
        assert np.abs(ours - theirs).max() <= 1e-4 * np.abs(theirs).max()
        assert ours.std() > 0.05 * np.abs(ours.mean())
        assert np.abs(ours).max() < 0.9 * np.abs(ours).sum()
        outputs.append(ours)
    assert np.abs(outputs[0] - outputs[1]).max() > 0.02 * outputs[0].std()


def _layers() -> Any:
    """Returns a convolution, a residual sum, a classifier; all constants alike, as in the light models."""
    ones = {
        "w": (4, 4, 3, 3), "s": (4,), "b": (4,), "m": (4,), "v": (4,), "scale": (4,), "fc": (5, 4), "fb": (5,),
    }  # fmt: skip
    nodes = [
        node("ConstantOfShape", ["w_shape"], ["w"]),
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"]),
        node("Unsqueeze", ["scale"], ["scale3"], axes=[1, 2]),
        node("Mul", ["n", "scale3"], ["k"]),
        node("Add", ["k", "x"], ["r"]),
        node("Mul", ["r", "half"], ["h"]),
        node("GlobalAveragePool", ["h"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "fc", "fb"], transB=1),
    ]
    initializers: dict[str, Array] = {k: np.ones(v, np.float32) for k, v in ones.items() if k != "w"}
    initializers |= {"w_shape": np.asarray(ones["w"]), "half": np.asarray(0.5, np.float32)}
    return model(nodes, [value("x", (2, 4, 8, 8))], initializers=initializers, opset=9)


def _weights(proto: Any) -> dict[str, Array]:
    return {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}


def test_the_model_given_is_left_alone_and_the_seed_decides() -> None:
    proto = _layers()
    before = proto.SerializeToString()
    first, again, other = seed_weights(proto, 1), seed_weights(proto, 1), seed_weights(proto, 2)
    assert proto.SerializeToString() == before
    assert first.SerializeToString() == again.SerializeToString() != other.SerializeToString()


def test_seeded_weights_become_initializers_and_their_nodes_are_gone() -> None:
    seeded = seed_weights(_layers())
    assert seeded.graph.node[0].op_type == "Conv"
    assert {"w", "scale3"} < set(_weights(seeded))
    assert not {"w_shape", "scale"} & set(_weights(seeded))
    assert [i.name for i in seeded.graph.input] == ["x"]


def test_seed_weights_leaves_numbers_that_are_no_weights() -> None:
    assert _weights(seed_weights(_layers()))["half"] == np.float32(0.5)


def test_every_weight_is_random_and_of_the_right_scale() -> None:
    weights = _weights(seed_weights(_layers()))
    for name in ("w", "s", "b", "m", "v", "scale3", "fc", "fb"):
        assert len(np.unique(weights[name])) == weights[name].size, name
    assert 0.5 <= weights["s"].min() <= weights["s"].max() <= 1.5
    assert 0.05 < weights["w"].std() < 0.5


def test_recurrent_layers_get_random_gates_and_keep_their_initial_states() -> None:
    ones = {"w": (1, 32, 16), "r": (1, 32, 8), "b": (1, 64), "h": (1, 1, 8), "c": (1, 1, 8)}
    proto = model(
        [node("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["y"], hidden_size=8)],
        [value("x", (20, 1, 16))],
        initializers={name: np.ones(shape, np.float32) for name, shape in ones.items()},
    )
    seeded = seed_weights(proto)
    weights = _weights(seeded)
    for name in ("w", "r", "b"):
        assert len(np.unique(weights[name])) == weights[name].size, name
    assert (weights["h"] == 1).all() and (weights["c"] == 1).all()
    x = np.random.default_rng(0).standard_normal((20, 1, 16)).astype(np.float32)
    (y,) = run_ours(seeded, {"x": x})
    assert 0.1 < y.std() < 0.6  # gates that are neither closed nor saturated


def test_normalized_activations_have_the_statistics_of_the_layer() -> None:
    proto = seed_weights(_layers())
    weights = _weights(proto)
    proto.graph.output[0].name = "n"
    x = np.random.default_rng(11).standard_normal((2, 4, 8, 8)).astype(np.float32)
    (n,) = run_ours(proto, {"x": x})
    np.testing.assert_allclose(n.std(axis=(0, 2, 3)), weights["s"], rtol=0.25)
    np.testing.assert_allclose(n.mean(axis=(0, 2, 3)), weights["b"], atol=0.3)


def test_a_model_of_open_dimensions_is_calibrated_for_the_shapes_given() -> None:
    proto = model(
        [node("Conv", ["x", "w"], ["y"])],
        [value("x", ("n", 3, 8, 8))],
        initializers={"w": np.ones((4, 3, 3, 3), np.float32)},
    )
    seeded = seed_weights(proto, shapes={"x": (2, 3, 8, 8)})
    assert len(np.unique(_weights(seeded)["w"])) == 4 * 3 * 9
