"""Batch normalization in one pass: results, in place or not, for any length of a row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.norm.batch_norm import BATCH_NORM, FUSED, PASSES
from ops.schema.backends import NUMPY
from ops.schema.schema import Signature
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_no_allocation, check_overwrites, check_strides, run, same, sign


def _operands(seed: int, shape: tuple[int, ...], dtype: str) -> list[Array]:
    rng = np.random.default_rng(seed)
    x, scale, bias, mean = (rng.standard_normal(s).astype(dtype) for s in (shape, *[shape[1:2]] * 3))
    return [x, scale, bias, mean, rng.uniform(0.1, 2, shape[1:2]).astype(dtype)]


def _wanted(arrays: list[Array], epsilon: float) -> Array:
    """Computes the definition in float64."""
    x, *numbers = (a.astype("float64") for a in arrays)
    scale, bias, mean, var = (n.reshape((-1,) + (1,) * (x.ndim - 2)) for n in numbers)
    output: Array = (x - mean) / np.sqrt(var + epsilon) * scale + bias
    return output.astype(arrays[0].dtype)


@settings(max_examples=30)
@given(st.integers(0, 2), st.integers(0, 5), st.integers(0, 70), st.booleans(), st.sampled_from(["float32", "float64"]))
def test_batch_norm_in_one_pass_follows_its_definition(
    batch: int, channels: int, length: int, fixed: bool, dtype: str
) -> None:
    arrays = _operands(length, (batch, channels, length), dtype)
    plain = sign(BATCH_NORM, arrays, {"epsilon": 1e-3})
    constants = frozenset({1, 2, 3, 4}) if fixed else frozenset[int]()
    signature = Signature(plain.inputs, plain.outputs, plain.attrs, constants)
    assert BATCH_NORM.kernel(signature, (NUMPY,)) is PASSES
    close = 1e-5 if dtype == "float32" else 1e-13
    for kernel in (FUSED, PASSES, BATCH_NORM.kernel(signature)):
        (got,) = run(kernel, signature, arrays)
        same(got, _wanted(arrays, 1e-3), rtol=close, atol=close)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 67), (2, 3, 9, 11), (1, 2, 3, 4, 5)])
def test_batch_norm_in_place_and_of_any_strides_gives_the_same_bits(shape: tuple[int, ...], dtype: str) -> None:
    arrays = _operands(1, shape, dtype)
    assert check_overwrites(BATCH_NORM, arrays) == 1
    check_strides(BATCH_NORM, arrays)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_batch_norm_allocates_nothing(dtype: str) -> None:
    check_no_allocation(BATCH_NORM, _operands(2, (2, 16, 64, 65), dtype))


def test_running_statistics_move_towards_those_of_each_batch() -> None:
    graph, momentum = engine.Graph(), 0.2
    x = graph.input("x", (4, 3, 5, 6), "float64")
    wanted = {"mean": np.zeros(3), "variance": np.ones(3)}
    held = [graph.parameter(a.copy(), n, trainable=False) for n, a in wanted.items()]
    y = ops.batch_norm_running(x, np.ones(3), np.zeros(3), *held, momentum=momentum)
    graph.output(y, "y")
    exe = engine.compile(graph, optimise=0)
    for seed in range(3):
        data = np.random.default_rng(seed).normal(2.0, 3.0, (4, 3, 5, 6))
        pixels = np.moveaxis(data, 1, 0).reshape(3, -1)
        normal = (pixels - pixels.mean(1, keepdims=True)) / np.sqrt(pixels.var(1, keepdims=True) + 1e-5)
        same(exe(x=data)["y"], np.moveaxis(normal.reshape(3, 4, 5, 6), 0, 1), rtol=1e-9, atol=1e-9)
        for name, now in (("mean", pixels.mean(1)), ("variance", pixels.var(1, ddof=1))):
            wanted[name] += momentum * (now - wanted[name])
            same(exe.parameters[name], wanted[name], rtol=1e-12, atol=1e-12)
