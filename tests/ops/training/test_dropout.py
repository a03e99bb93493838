"""Dropout: Philox as published, one mask forward and backward, another in each step and layer."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.schema.schema import evaluate
from ops.tensor.errors import AttributeValueError, DtypeError
from ops.tensor.spec import Array
from ops.training.dropout import DROPOUT
from tests.helpers.ops.kernel_checks import check_no_allocation, check_overwrites, check_strides
from tests.helpers.ops.layer_gradient_checks import check_gradient_modes, check_gradients, floats

_WORDS = 1024
_LOW = 2**32 - 1


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Computes Philox4x32-10 in plain integers."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & _LOW, (p >> 32) ^ d ^ m, p & _LOW
        k, m = (k + 0x9E3779B9) & _LOW, (m + 0xBB67AE85) & _LOW
    return a, b, c, d


def word(element: int, step: int, seed: int) -> int:
    """Returns the random bits of an element."""
    lane, i = divmod(element % _WORDS, _WORDS // 4)
    index = element // _WORDS * (_WORDS // 4) + i
    counter = (index & _LOW, index >> 32, step & _LOW, step >> 32)
    return philox(counter, (seed & _LOW, seed >> 32))[lane]


def test_the_generator_gives_the_numbers_that_its_authors_publish() -> None:
    assert philox((0,) * 4, (0,) * 2) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox((_LOW,) * 4, (_LOW,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)


def dropped(x: Array, step: int, **attrs: Any) -> Array:
    return evaluate(DROPOUT, x, np.array(step), **attrs)[0]


@settings(max_examples=20)
@given(
    st.integers(0, 2500),
    st.integers(0, 2**40),
    st.integers(0, 2**64 - 1),
    st.sampled_from([0.0, 0.1, 0.5, 0.9]),
)
def test_an_element_is_dropped_where_its_word_is_below_the_rate(size: int, step: int, seed: int, rate: float) -> None:
    x = np.arange(1, size + 1, dtype=np.float64)
    output = dropped(x, step, rate=rate, seed=seed)
    for i in {0, 1, 255, 256, 1023, 1024, 1300, size - 1} & set(range(size)):
        assert output[i] == (x[i] * (1 / (1 - rate)) if word(i, step, seed) >= round(rate * 2**32) else 0)
    assert set(np.round(output / np.maximum(x, 1) * (1 - rate), 9)) <= {0.0, 1.0}


def test_steps_and_seeds_give_other_masks_of_the_same_rate() -> None:
    x = np.ones(100_000, np.float32)
    masks = [dropped(x, s, rate=0.3, seed=k) > 0 for s, k in ((0, 0), (1, 0), (0, 1), (2**32, 0), (0, 2**32))]
    for i, mask in enumerate(masks):
        assert abs(mask.mean() - 0.7) < 0.01
        for other in masks[:i]:
            assert abs((mask == other).mean() - (0.49 + 0.09)) < 0.01


def test_the_gradient_has_the_mask_of_the_forward_pass_in_every_mode() -> None:
    (x,) = floats(0, (40, 60))
    step = np.array(7)

    def build(x: Any) -> Any:
        return ops.dropout_training(x, x.graph.constant(step), rate=0.25, seed=3)

    check_gradients(build, [x])
    gradient = check_gradient_modes(lambda x: build(x) * 2.0, [x])["d0"]
    np.testing.assert_array_equal(gradient == 0, dropped(x, 7, rate=0.25, seed=3) == 0)


def test_a_step_that_is_counted_gives_another_mask_in_each_run() -> None:
    graph = engine.Graph()
    x, step = graph.input("x", (1000,)), graph.parameter(np.array(0), "step", trainable=False)
    graph.output(ops.dropout_training(x, step, seed=1), "y")
    graph.assign(step, step + 1)
    planned, counted = engine.compile(graph, optimise=0), engine.compile(graph, mode="dynamic", optimise=0)
    ones, seen = np.ones(1000, np.float32), []
    for number in range(3):
        seen.append(planned.run({"x": ones})["y"])
        np.testing.assert_array_equal(seen[-1], dropped(ones, number, seed=1))
        np.testing.assert_array_equal(seen[-1], counted.run({"x": ones})["y"])


def test_dropout_kernels_keep_the_kernel_contract() -> None:
    (x,) = floats(1, (7, 5, 61), dtype="float32")
    check_strides(DROPOUT, [x, np.array(3)])
    assert check_overwrites(DROPOUT, [x, np.array(3)]) == 1
    check_no_allocation(DROPOUT, [*floats(2, (300, 300)), np.array(3)])


@pytest.mark.parametrize(("attrs", "text"), [({"rate": 1.0}, "rate is 1.0"), ({"seed": -1}, "seed is -1")])
def test_a_rate_or_seed_that_cannot_be_is_refused(attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(AttributeValueError, match=text):
        dropped(np.ones(3), 0, **attrs)


def test_dropout_refuses_half_precision() -> None:
    with pytest.raises(DtypeError, match="float32 or float64"):
        dropped(np.ones(3, np.float16), 0)
