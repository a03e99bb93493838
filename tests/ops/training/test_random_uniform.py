"""Random numbers: those of Philox, in [0, 1), of the right distribution, and the same for the same step and seed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.schema.schema import evaluate
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import Array
from ops.training.random_uniform import RANDOM_UNIFORM
from tests.helpers.ops.kernel_checks import check_no_allocation
from tests.ops.training.test_dropout import word


def _drawn(shape: tuple[int, ...], step: int = 0, **attrs: Any) -> Array:
    return evaluate(RANDOM_UNIFORM, np.array(step), shape=shape, **attrs)[0]


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 40), max_size=3),
    st.integers(0, 2**40),
    st.integers(0, 2**64 - 1),
    st.sampled_from([("float32", 24), ("float64", 32)]),
)
def test_a_number_has_the_leading_bits_of_its_word(
    shape: list[int], step: int, seed: int, kind: tuple[str, int]
) -> None:
    dtype, bits = kind
    drawn = _drawn(tuple(shape), step, seed=seed, dtype=dtype)
    assert drawn.dtype == dtype and drawn.shape == tuple(shape)
    for i in {0, 1, 255, 256, 1023, 1024, 8191, 8192, drawn.size - 1} & set(range(drawn.size)):
        assert drawn.reshape(-1)[i] == (word(i, step, seed) >> (32 - bits)) / 2**bits


def test_numbers_spread_evenly_and_steps_and_seeds_give_others() -> None:
    many = [_drawn((100_000,), s, seed=k) for s, k in ((0, 0), (1, 0), (0, 1), (2**32, 0), (0, 2**32))]
    for i, one in enumerate(many):
        counts, _ = np.histogram(one, 20, (0, 1))
        assert ((counts - 5000) ** 2 / 5000).sum() < 60  # of 19 degrees of freedom
        for other in many[:i]:
            assert abs(np.corrcoef(one, other)[0, 1]) < 0.02


def test_a_step_that_is_counted_gives_other_numbers_in_each_run_of_every_mode() -> None:
    graph = engine.Graph()
    step = graph.parameter(np.array(0), "step", trainable=False)
    graph.output(ops.random_uniform(step, (30, 50), seed=5), "y")
    graph.assign(step, step + 1)
    planned, counted = engine.compile(graph), engine.compile(graph, mode="dynamic")
    for number in range(3):
        wanted = _drawn((30, 50), number, seed=5)
        np.testing.assert_array_equal(planned.run({})["y"], wanted)
        np.testing.assert_array_equal(counted.run({})["y"], wanted)


def test_lengths_may_be_open() -> None:
    graph = engine.Graph()
    x, step = graph.input("x", ("n", 3)), graph.input("step", (), "int64")
    graph.output(x + ops.random_uniform(step, (graph.dim("n") * 2, 3), seed=1)[:1], "y")
    exe = engine.compile(graph)
    for n in (1, 5, 700):
        y = exe.run({"x": np.zeros((n, 3), np.float32), "step": np.array(4)})["y"]
        np.testing.assert_array_equal(y, np.broadcast_to(_drawn((2 * n, 3), 4, seed=1)[:1], (n, 3)))


def test_the_kernel_allocates_nothing() -> None:
    check_no_allocation(RANDOM_UNIFORM, [np.array(3)], shape=(300, 300))


@pytest.mark.parametrize(
    ("attrs", "step", "error", "text"),
    [
        ({"seed": -1}, 0, AttributeValueError, "seed is -1"),
        ({"seed": 2**64}, 0, AttributeValueError, "below 2 .. 64"),
        ({"dtype": "float16"}, 0, DtypeError, "gives float32 or float64, not float16"),
        ({"dtype": "int64"}, 0, DtypeError, "gives float32 or float64, not int64"),
        ({}, 0.0, DtypeError, "a step of int64, not float64"),
        ({}, [1, 2], ShapeError, "the step is one number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(attrs: dict[str, Any], step: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        evaluate(RANDOM_UNIFORM, np.array(step), shape=(2,), **attrs)
