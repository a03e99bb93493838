"""The compiled LSTM against the equations in float64: blocks of time, tiles of sequences, both directions, threads."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.recurrent import compiled
from ops.recurrent.recurrent import LSTM
from ops.schema.backends import NUMBA
from ops.schema.schema import Kernel, Signature
from ops.tensor.spec import Array
from tests.helpers.ops import plain_recurrent_layers
from tests.helpers.ops.kernel_checks import run, run_without_allocation, same, sign

GATES = 4
ACTIVATIONS = ["sigmoid", "tanh", "tanh"]
WEIGHTS = (1, 2, 3)

(NATIVE,) = (kernel for kernel in LSTM.kernels if kernel.backend == NUMBA)


def operands(seed: int, sizes: tuple[int, int, int, int], directions: int) -> dict[str, Array]:
    """Returns operands by name; sizes are time, batch, inputs and hidden."""
    rng, (time, batch, inputs, hidden) = np.random.default_rng(seed), sizes
    shapes = {
        "x": (time, batch, inputs),
        "w": (directions, GATES * hidden, inputs),
        "r": (directions, GATES * hidden, hidden),
        "bias": (directions, 2 * GATES * hidden),
        "initial_h": (directions, batch, hidden),
        "initial_c": (directions, batch, hidden),
    }
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def signed(arrays: list[Array], named: list[str], **attrs: Any) -> Signature:
    """Returns the signature with constant weights."""
    return sign(LSTM, arrays, {"given": named, **attrs}, WEIGHTS if "bias" in named else WEIGHTS[:2])


@st.composite
def layers(draw: Any) -> tuple[dict[str, Array], list[str], str]:
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    sizes = st.tuples(st.integers(0, 7), st.integers(1, 32), st.integers(0, 5), st.integers(1, 19))
    every = operands(draw(st.integers(0, 99)), draw(sizes), 2 if direction == "bidirectional" else 1)
    return every, [n for n in ("bias", "initial_h", "initial_c") if draw(st.booleans())], direction


@settings(max_examples=50, deadline=None)
@given(layers(), st.booleans(), st.sampled_from([1, 2000, 1 << 18]))
def test_the_compiled_lstm_follows_its_equations(
    layer: tuple[dict[str, Array], list[str], str], with_y: bool, block: int
) -> None:
    every, named, direction = layer
    directions = 2 if direction == "bidirectional" else 1
    arrays = [every[n] for n in ("x", "w", "r", *named)]
    plain = plain_recurrent_layers.functions(ACTIVATIONS * directions, *[[0.0] * 3 * directions] * 2)
    more = {n: every[n] for n in ("x", "w", "r", *named)}
    wanted = plain_recurrent_layers.run("lstm", more, plain, {"direction": direction})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "BLOCK", block)
        got = run(NATIVE, signed(arrays, named, direction=direction, with_y=with_y), arrays)
    for own, want in zip(got, wanted if with_y else wanted[1:], strict=True):
        same(own, want.astype(np.float32), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("named", "attrs"),
    [
        ([], {"clip": 0.5}),
        ([], {"input_forget": 1}),
        ([], {"layout": 1}),
        ([], {"activations": ["tanh", "tanh", "tanh"]}),
        (["peepholes"], {}),
        (["lengths"], {}),
    ],
)
def test_the_compiled_lstm_leaves_other_layers_to_blas(named: list[str], attrs: dict[str, Any]) -> None:
    every = operands(0, (3, 3, 4, 5), 1)
    more = {"peepholes": np.ones((1, 15), np.float32), "lengths": np.ones(3, np.int32)}
    arrays = [every[n] for n in ("x", "w", "r")] + [more[n] for n in named]
    assert "not float32, or weights that are not constant" in NATIVE.unsupported(signed(arrays, named, **attrs))


def test_the_compiled_lstm_wants_constant_weights() -> None:
    every = operands(0, (3, 2, 4, 5), 1)
    arrays = [every[n] for n in ("x", "w", "r", "bias")]
    attrs = {"given": ["bias"]}
    assert NATIVE.supports(sign(LSTM, arrays, attrs, (1, 2, 3)))
    for constants in ((), (1, 2), (1, 3), (2, 3)):
        assert not NATIVE.supports(sign(LSTM, arrays, attrs, constants))
    assert not NATIVE.supports(sign(LSTM, [a.astype(np.float64) for a in arrays], attrs, (1, 2, 3)))


def test_the_compiled_lstm_allocates_nothing_and_its_workspace_has_a_limit() -> None:
    def case(time: int) -> tuple[Kernel, Signature, list[Array]]:
        every = operands(1, (time, 4, 64, 32), 1)
        arrays = [every[n] for n in ("x", "w", "r", "bias")]
        return NATIVE, signed(arrays, ["bias"]), arrays

    run_without_allocation(*case(200))
    (_, long, _), (_, longer, _) = case(1000), case(10000)
    assert NATIVE.workspace(long) == NATIVE.workspace(longer) < 1.2 * 2**20


def test_threads_share_directions_and_sequences_and_change_no_bit() -> None:
    every = operands(4, (6, 33, 8, 12), 2)
    graph = engine.Graph("layers")
    x = graph.input("x", (6, 33, 8))
    outputs = ops.lstm(x, every["w"], every["r"], every["bias"], direction="bidirectional")
    for i, var in enumerate(outputs):
        graph.output(var, f"y{i}")
    one, two = (engine.compile(graph, backend="numba", threads=threads) for threads in (1, 2))
    assert [call.kernel for call in one.plan.lowered.calls] == [NATIVE]
    feeds = {"x": every["x"]}
    watched = engine.compile(graph, backend="numba", debug="poison").run(feeds)
    for name, array in one.run(feeds).items():
        assert np.array_equal(array, two.run(feeds)[name]) and np.array_equal(array, watched[name])
