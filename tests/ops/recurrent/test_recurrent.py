"""Recurrent layers against their equations in float64, and against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.graph.var import Var
from ops.recurrent.recurrent import GRU, LSTM, RNN
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops import plain_recurrent_layers
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results, kernels, sign

Case = tuple[list[Array], dict[str, Any]]
SCHEMAS = {"rnn": RNN, "gru": GRU, "lstm": LSTM}
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
DEFAULTS = {"rnn": ["tanh"], "gru": ["sigmoid", "tanh"], "lstm": ["sigmoid", "tanh", "tanh"]}
OPTIONAL = {"lstm": ["bias", "lengths", "initial_h", "initial_c", "peepholes"]}
NAMES = ["Sigmoid", "Tanh", "Relu", "Softsign", "softplus"]
ONE = {"leakyrelu": (0.01,), "thresholdedrelu": (1.0,), "elu": (1.0,)}
BOTH = {"affine": (1.0, 0.0), "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5)}
CLOSE = {"float16": 3e-2, "float32": 1e-4, "float64": 1e-11}


def operands(kind: str, seed: int, sizes: tuple[int, int, int, int], directions: int, dtype: str) -> dict[str, Array]:
    """Returns all operands by name, in layout 0; sizes are time, batch, inputs and hidden."""
    rng, (time, batch, inputs, hidden) = np.random.default_rng(seed), sizes
    width = GATES[kind] * hidden
    shapes = {
        "x": (time, batch, inputs),
        "w": (directions, width, inputs),
        "r": (directions, width, hidden),
        "bias": (directions, 2 * width),
        "initial_h": (directions, batch, hidden),
        "initial_c": (directions, batch, hidden),
        "peepholes": (directions, 3 * hidden),
    }
    arrays: dict[str, Array] = {k: rng.uniform(-1, 1, s).astype(dtype) for k, s in shapes.items()}
    return arrays | {"lengths": rng.integers(0, time + 1, batch).astype(np.int32)}


@st.composite
def chosen(draw: Any, kind: str, directions: int) -> tuple[dict[str, Any], list[plain_recurrent_layers.Function]]:
    """Draws activations, perhaps with fewer alphas and betas than they take, and returns what they compute."""
    count = len(DEFAULTS[kind]) * directions
    if draw(st.booleans()):
        names = DEFAULTS[kind] * directions
        return {}, plain_recurrent_layers.functions(names, [0.0] * count, [0.0] * count)
    names = draw(
        st.lists(st.sampled_from([*NAMES, "LeakyRelu", "Elu", "Affine", "HardSigmoid"]), min_size=count, max_size=count)
    )
    low = [n.lower() for n in names]
    alphas = draw(st.lists(st.sampled_from([0.25, 0.5]), max_size=count))
    betas = draw(st.lists(st.sampled_from([0.25, 0.5]), max_size=count))
    left, right = iter(alphas), iter(betas)
    a = [next(left, (ONE | BOTH)[n][0]) if n in ONE | BOTH else 0.0 for n in low]
    b = [next(right, BOTH[n][1]) if n in BOTH else 0.0 for n in low]
    attrs = {"activations": names, "activation_alpha": alphas, "activation_beta": betas}
    return attrs, plain_recurrent_layers.functions(low, a, b)


@st.composite
def layers(draw: Any) -> tuple[str, Case, list[Array], str]:
    kind, dtype = draw(st.sampled_from(list(SCHEMAS))), draw(st.sampled_from(["float32", "float64", "float16"]))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    sizes = draw(st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(0, 3), st.integers(1, 4)))
    every = operands(kind, draw(st.integers(0, 99)), sizes, directions, dtype)
    optional = OPTIONAL.get(kind, ["bias", "lengths", "initial_h"])
    named = [n for n in optional if draw(st.booleans())]
    attrs: dict[str, Any] = {"direction": direction, "given": named}
    if draw(st.booleans()):
        attrs["clip"] = 0.25
    if kind != "rnn":
        attrs[{"gru": "linear_before_reset", "lstm": "input_forget"}[kind]] = draw(st.integers(0, 1))
    more, f = draw(chosen(kind, directions))
    wanted = plain_recurrent_layers.run(kind, {n: every[n] for n in ("x", "w", "r", *named)}, f, attrs)
    arrays = [every[n] for n in ("x", "w", "r", *named)]
    if draw(st.booleans()):
        attrs["layout"] = 1
        arrays = [
            a.swapaxes(0, 1).copy() if n in ("x", "initial_h", "initial_c") else a
            for n, a in zip(("x", "w", "r", *named), arrays, strict=True)
        ]
        wanted = [wanted[0].transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in wanted[1:])]
    return kind, (arrays, attrs | more), wanted, dtype


@settings(max_examples=80, deadline=None)
@given(layers(), st.booleans())
def test_recurrent_layers_follow_their_equations(layer: tuple[str, Case, list[Array], str], with_y: bool) -> None:
    kind, (arrays, attrs), wanted, dtype = layer
    expected = [a.astype(dtype) for a in (wanted if with_y else wanted[1:])]
    close = CLOSE[dtype]
    check_kernels(SCHEMAS[kind], arrays, expected, rtol=close, atol=close, **attrs, with_y=with_y)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "named", "attrs"),
    [
        ("rnn", ["bias", "lengths", "initial_h"], {}),
        ("rnn", ["bias"], {"clip": 0.2}),
        ("gru", ["bias", "lengths"], {"linear_before_reset": 1}),
        ("gru", ["bias", "initial_h"], {"linear_before_reset": 0, "clip": 0.5}),
        ("gru", [], {"linear_before_reset": 1}),
        ("lstm", ["bias", "lengths", "initial_h", "initial_c", "peepholes"], {}),
        ("lstm", ["bias", "initial_c"], {"clip": 0.2, "input_forget": 1}),
        ("lstm", [], {}),
    ],
)
def test_large_recurrent_layers_equal_onnxruntime_and_allocate_nothing(
    direction: str, kind: str, named: list[str], attrs: dict[str, Any]
) -> None:
    directions = 2 if direction == "bidirectional" else 1
    every = operands(kind, 1, (70, 9, 60, 64), directions, "float32")
    every = {k: v / 8 if k in ("w", "r") else v for k, v in every.items()}
    optional = OPTIONAL.get(kind, ["bias", "lengths", "initial_h"])
    every["lengths"] = np.maximum(every["lengths"], 1)  # onnxruntime leaves y unwritten for none
    base = [every[n] for n in ("x", "w", "r")]
    arrays = [*base, *(every[n] if n in named else None for n in optional)]
    outputs = 3 if kind == "lstm" else 2
    options = {"direction": direction, **attrs}
    wanted = onnxruntime_node(kind.upper(), arrays, outputs, 14, hidden_size=64, **options)
    ours = [*base, *(every[n] for n in named)]
    check_results(SCHEMAS[kind], ours, wanted, rtol=1e-4, atol=1e-4, **options, given=named)
    check_no_allocation(SCHEMAS[kind], ours, **options, given=named)


@pytest.mark.parametrize(
    "name", ["LeakyRelu", "ThresholdedRelu", "Elu", "Affine", "ScaledTanh", "HardSigmoid", "Softplus"]
)
def test_recurrent_activations_equal_onnxruntime(name: str) -> None:
    every = operands("rnn", 2, (4, 3, 2, 5), 1, "float32")
    arrays, attrs = [every[n] for n in ("x", "w", "r")], {"activations": [name]}
    more = {"activation_alpha": [0.7], "activation_beta": [0.3]}
    wanted = onnxruntime_node("RNN", arrays, 2, 14, hidden_size=5, **attrs, **more)
    check_results(RNN, arrays, wanted, rtol=1e-5, atol=1e-6, **attrs, **more)


def test_the_workspace_does_not_grow_with_the_length_of_the_sequences() -> None:
    def workspace(time: int) -> int:
        every = operands("lstm", 0, (time, 4, 8, 64), 1, "float32")
        signature = sign(LSTM, [every[n] for n in ("x", "w", "r")], {})
        (kernel,) = kernels(LSTM, signature)
        return kernel.workspace(signature)

    assert workspace(1000) == workspace(10000) < 1.2 * 2**20


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.sampled_from(list(SCHEMAS)), st.booleans())
def test_a_network_of_recurrent_layers_agrees_in_all_modes(seed: int, kind: str, lengths: bool) -> None:
    every = operands(kind, seed, (5, 3, 4, 6), 2, "float32")
    graph = engine.Graph("layers")
    x: Var = graph.input("x", (5, 3, 4))
    layer: Any = getattr(ops, kind)
    options: dict[str, Any] = {"lengths": every["lengths"]} if lengths else {}
    y, *last = layer(x, every["w"], every["r"], every["bias"], direction="bidirectional", **options)
    flat = ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (5, 3, 12))
    second = operands(kind, seed + 1, (5, 3, 12, 4), 1, "float32")
    z, *_ = layer(flat, second["w"], second["r"], initial_h=second["initial_h"], clip=2.0)
    for i, var in enumerate((z, *last)):
        graph.output(var, f"y{i}")
    feeds = {"x": every["x"]}
    ours, watched = (
        engine.compile(graph, optimise=0).run(feeds),
        engine.compile(graph, debug="poison", optimise=0).run(feeds),
    )
    assert all(np.array_equal(ours[k], watched[k]) for k in ours)
    named = ["bias", "lengths"] if lengths else ["bias"]
    plain = plain_recurrent_layers.functions(DEFAULTS[kind] * 2, *[[0.0] * 2 * len(DEFAULTS[kind])] * 2)
    more = {n: every[n] for n in ("x", "w", "r", *named)}
    wanted = plain_recurrent_layers.run(kind, more, plain, {"direction": "bidirectional"})
    for i, want in enumerate(wanted[1:]):
        np.testing.assert_allclose(ours[f"y{i + 1}"], want, rtol=1e-4, atol=1e-5)


X, W, R = np.ones((2, 3, 4), "f4"), np.ones((1, 5, 4), "f4"), np.ones((1, 5, 5), "f4")


@pytest.mark.parametrize(
    ("schema", "arrays", "attrs", "message"),
    [
        (RNN, [X[0], W, R], {}, "three dimensions"),
        (RNN, [X.astype("i4"), W, R], {}, "takes floating-point numbers"),
        (RNN, [X, W[:, :, :3], R], {}, r"w has shape \(1, 5, 3\), not \(1, 5, 4\)"),
        (LSTM, [X, W, R], {}, r"w has shape \(1, 5, 4\), not \(1, 20, 4\)"),
        (RNN, [X, W, R], {"direction": "bidirectional"}, r"not \(2, 5, 4\)"),
        (RNN, [X, W, R], {"direction": "both"}, "'direction' cannot be"),
        (RNN, [X, W, R], {"layout": 2}, "'layout' cannot be 2"),
        (RNN, [X, W, R], {"clip": 0.0}, "'clip' cannot be"),
        (RNN, [X, W, R], {"given": ["h"]}, "'given' cannot be"),
        (RNN, [X, W, R], {"given": ["lengths"]}, "0 operands behind x, w and r, named lengths"),
        (RNN, [X, W, R, np.ones((1, 15), "f4")], {"given": ["peepholes"]}, "1 operands behind"),
        (RNN, [X, W, R, np.ones(3, "f4")], {"given": ["lengths"]}, "lengths is float32"),
        (RNN, [X, W, R, np.asarray([1, 2, 3])], {"given": ["lengths"]}, "a sequence of length 3 in 2 steps"),
        (RNN, [X, W, R], {"activations": ["Swish"]}, "no activation is named 'swish'"),
        (RNN, [X, W, R], {"activations": ["Tanh", "Tanh"]}, "2 activations where 1 are wanted"),
    ],
)
def test_recurrent_layers_refuse_operands_that_do_not_fit(
    schema: OpSchema, arrays: list[Array], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *arrays, **attrs)
