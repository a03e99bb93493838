"""Compiled products of bytes with a constant matrix against int64, exactly."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.quantised.matmul import MATMUL_INTEGER
from ops.quantised.matmul_compiled import TILED
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import same, sign

TYPES = st.sampled_from(["uint8", "int8"])


@settings(max_examples=40, deadline=None)
@given(st.data(), TYPES, TYPES, st.integers(0, 2), st.integers(1, 3))
def test_compiled_quantised_matmul_is_exact(data: Any, left: str, right: str, zeros: int, parts: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    lead = data.draw(st.sampled_from([(), (1,), (3,), (2, 5), (29,)]))
    depth, columns = data.draw(st.sampled_from([1, 3, 4, 8, 21, 64])), data.draw(st.sampled_from([1, 5, 16, 33, 70]))
    ends = {"uint8": (0, 256), "int8": (-128, 128)}
    a = rng.integers(*ends[left], (*lead, depth)).astype(left)
    b = rng.integers(*ends[right], (depth, columns)).astype(right)
    many = data.draw(st.sampled_from([(), (1,), (columns,)]))
    given_zeros = [rng.integers(*ends[left], ()).astype(left), rng.integers(*ends[right], many).astype(right)][:zeros]
    shifts = [z.astype(np.int64) for z in given_zeros] + [np.int64(0)] * 2
    wanted = ((a.astype(np.int64) - shifts[0]) @ (b.astype(np.int64) - shifts[1])).astype(np.int32)
    arrays = [a, b, *given_zeros]
    signature = sign(MATMUL_INTEGER, arrays, {}, (1, 3))
    if TILED.supports(signature):
        constants = signature.constants & set(range(len(arrays)))
        signature = sign(MATMUL_INTEGER, arrays, {}, constants)
        (got,) = run_native(TILED, signature, [placed(a), *arrays[1:]], parts)
        same(got, np.asarray(wanted))
