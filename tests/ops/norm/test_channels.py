"""Compiled batch normalization over channels: the bits do not depend on the parts, and the numbers are numpy's."""

from collections.abc import Callable
from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.native.call import Native
from ops.norm.channels_compiled import channel_moments, channel_sums, combine, scale_shift
from ops.schema.schema import Thunk
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import run_parts

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 70))
DTYPES = st.sampled_from(["float32", "float64"])
CLOSE = {"float32": 1e-4, "float64": 1e-11}


def _in_parts(bind: Callable[..., Thunk], like: tuple[Array, ...], parts: int) -> tuple[Array, ...]:
    """Returns the outputs of bind(*outputs), run in parts; those of one part have the same bits."""
    one, several = (tuple(np.full_like(a, np.nan) for a in like) for _ in range(2))
    for outputs, count in ((one, 1), (several, parts)):
        native = bind(*outputs)
        assert isinstance(native, Native)
        run_parts(native, count)
    assert [a.tobytes() for a in one] == [a.tobytes() for a in several]
    return one


@settings(deadline=None)
@given(SHAPES, DTYPES, st.integers(2, 4), st.integers(0, 99))
def test_channel_functions_in_parts_are_numpys(shape: tuple[int, int, int], dtype: str, parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, dy = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    a, b, c, d = rng.standard_normal((4, shape[1])).astype(dtype)
    column = [v[:, None] for v in (a, b, c, d)]
    close = partial(np.testing.assert_allclose, rtol=CLOSE[dtype], atol=CLOSE[dtype] * x.size)
    (y,) = _in_parts(lambda y: scale_shift(x, a, b, y), (x,), parts)
    close(y, x * column[0] + column[1])
    mean, variance = _in_parts(lambda m, v: channel_moments(x, m, v), (a, b), parts)
    close(mean, x.mean((0, 2)))
    close(variance, x.var((0, 2)))
    products, sums = _in_parts(lambda p, s: channel_sums(x, dy, a, b, (p, s)), (a, b), parts)
    close(products, ((x - column[0]) * dy).sum((0, 2)) * b)
    close(sums, dy.sum((0, 2)))
    (y,) = _in_parts(lambda y: combine((x, dy, y), (a, b), (c, d)), (x,), parts)
    close(y, (x - column[0]) * column[1] + (dy - column[2]) * column[3])
