"""Networks in onnxruntime's QOperator form become those in QDQ form, and give the same bits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnxruntime.quantization import QuantFormat

import engine
import ops
from engine import Graph
from engine.passes import optimise, verify
from engine.passes.quantised.codes import CODES
from engine.zoo import NETWORKS
from ops.quantised.nhwc_tiled import has_vnni
from ops.tensor.spec import Array
from tests.engine.passes.quantised.test_quantise import mobile, products, residual, run_onnxruntime
from tests.helpers.graphs.pass_checks import count
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.onnx.quantised_models import quantised_model
from tools.onnxruntime_arena import onnxruntime_activations

Draw = Callable[..., Any]


def _number(draw: Draw, most: int) -> tuple[int, ...]:
    """Returns the shape of a parameter: of a scalar, of one number, or of one for each channel."""
    shape: tuple[int, ...] = draw(st.sampled_from([(), (1,), (most,)]))
    return shape


def _zeros(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    return np.asarray(rng.integers(0, 8, shape) + (128 if kind == "uint8" else 0), kind)


@st.composite
def layers(draw: Draw) -> Graph:
    """Returns a convolution or a product of a quantised input with quantised weights."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    kind, weights_kind = draw(st.sampled_from(["uint8", "int8"])), draw(st.sampled_from(["uint8", "int8"]))
    outputs, is_conv, graph = draw(st.integers(1, 6)), draw(st.booleans()), Graph("layer")
    group = draw(st.sampled_from([1, 1, outputs]))
    most, shape = (group * 2, (outputs, 2, 3, 2)) if is_conv else (7, (7, outputs))
    x = graph.input("x", (1, most, 6, 5) if is_conv else (2, 3, 7), kind)
    shift = 128 if weights_kind == "uint8" else 0
    w = graph.constant((rng.integers(-100, 100, shape) + shift).astype(weights_kind))
    w_shape = _number(draw, outputs)
    w_scale = np.asarray(0.005 + 0.01 * rng.random(w_shape), np.float32)
    x_scale, y_scale = (np.full(draw(st.sampled_from([(), (1,)])), n, np.float32) for n in (0.03, 0.05))
    zeros = _zeros(rng, (), kind), _zeros(rng, w_shape, weights_kind), _zeros(rng, (), kind)
    if not is_conv:
        names = ("a_scale", "b_scale", "y_scale"), ("a_zero_point", "b_zero_point", "y_zero_point")
        graph.output(_called(ops.qlinear_matmul, (x, w), names, (x_scale, w_scale, y_scale), zeros), "y")
        return graph
    names = ("x_scale", "w_scale", "y_scale"), ("x_zero_point", "w_zero_point", "y_zero_point")
    bias = (rng.integers(-9999, 9999, outputs).astype(np.int32),) if draw(st.booleans()) else ()
    y = _called(ops.qlinear_conv, (x, w, *bias), names, (x_scale, w_scale, y_scale), zeros, group=group, pads=1)
    graph.output(y, "y")
    return graph


def _called(function: Callable[..., Any], operands: Any, names: Any, scales: Any, zeros: Any, **attrs: Any) -> Any:
    named = dict(zip((*names[0], *names[1]), (*scales, *zeros), strict=True))
    return function(*operands, **named, **attrs)


@settings(max_examples=40, deadline=None)
@given(layers())
def test_layers_of_quantised_tensors_keep_their_bits(graph: Graph) -> None:
    verify(graph, CODES(graph))
    after, feeds = optimise(graph, 2), random_feeds(graph)
    assert not {"qlinear_conv", "qlinear_matmul"} & set(count(after))
    assert_same(run_unplanned(after, feeds), run_unplanned(graph, feeds))


def _conv(length: int, *, constant: bool = True) -> Graph:
    """Returns a convolution with `length` taps of 127, whose scales are constant or computed."""
    graph = Graph("conv")
    x = graph.input("x", (1, length, 1, 1), "uint8")
    scale = np.float32(0.01) if constant else ops.relu(graph.input("scale", ()))
    w = graph.constant(np.full((2, length, 1, 1), 127, np.int8))
    graph.output(ops.qlinear_conv(x, w, x_scale=scale, w_scale=np.float32(0.01), y_scale=np.float32(9e2)), "y")
    return graph


@pytest.mark.parametrize(
    ("graph", "is_taken"), [(_conv(66_311), True), (_conv(66_312), False), (_conv(8, constant=False), False)]
)
def test_layers_that_the_pass_cannot_compute_stay(graph: Graph, is_taken: bool) -> None:
    assert ("qlinear_conv" not in count(CODES(graph))) == is_taken
    assert is_taken or CODES(graph) is graph


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("make", [residual, mobile, products])
def test_both_forms_become_the_same_operators(make: Callable[[], Graph], kind: str, tmp_path: Path) -> None:
    forms = (QuantFormat.QOperator, QuantFormat.QDQ)
    of_codes, of_reals = (
        count(optimise(engine.load_onnx(quantised_model(make(), tmp_path, kind, form=form)))) for form in forms
    )
    assert of_codes == of_reals
    assert "nhwc_quantised_conv" in of_codes


def check_bits_of_onnxruntime(graph: Graph, folder: Path, kind: str) -> Path:
    """Checks that a graph in QOperator form has the outputs of onnxruntime, to the bit; returns its file."""
    path = quantised_model(graph, folder, kind, form=QuantFormat.QOperator)
    feeds = random_feeds(graph, 7)
    (result,) = engine.compile(engine.load_onnx(path), threads=1).run(feeds).values()
    np.testing.assert_array_equal(result, run_onnxruntime(path, feeds, exactly=kind == "uint8"))
    return path


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("make", [residual, mobile])
def test_networks_of_codes_have_the_bits_of_onnxruntime(make: Callable[[], Graph], kind: str, tmp_path: Path) -> None:
    check_bits_of_onnxruntime(make(), tmp_path, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("network", ["resnet18", "squeezenet"])
def test_whole_networks_of_codes_have_the_bits_and_at_most_the_arena_of_onnxruntime(
    network: str, kind: str, tmp_path: Path
) -> None:
    path = check_bits_of_onnxruntime(NETWORKS[network](), tmp_path, kind)
    if has_vnni():  # other kernels need a workspace
        needed = onnxruntime_activations(path)
        assert engine.make_plan(engine.load_onnx(path)).arena_bytes <= needed.planned + needed.besides
