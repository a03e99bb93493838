"""The bits of tensors as other types, against numpy's views."""

from itertools import product

import numpy as np
import pytest

from ops.elementwise.bit_cast import BIT_CAST
from ops.schema.schema import evaluate
from ops.tensor.errors import DtypeError
from ops.tensor.spec import BFLOAT16
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation

SIZES = (
    ("int2", "uint2"),
    ("int4", "uint4", "float4_e2m1fn"),
    ("int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e8m0fnu"),
    ("int16", "uint16", "float16", BFLOAT16),
    ("int32", "uint32", "float32"),
    ("int64", "uint64", "float64"),
)


@pytest.mark.parametrize(("of", "to"), [pair for types in SIZES for pair in product(types, types)], ids=str)
def test_all_bits_are_kept(of: str, to: str) -> None:
    bits = np.random.default_rng(3).integers(0, 256, (3, 5, np.dtype(of).itemsize), np.uint8)
    x = (bits & 1 if of == "bool" else bits).view(of)[..., 0]
    (y,) = evaluate(BIT_CAST, x, to=to)
    assert y.dtype == np.dtype(to) and y.shape == x.shape and y.tobytes() == np.ascontiguousarray(x).tobytes()


def test_kernels_are_right_in_place_and_for_strides() -> None:
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    check_kernels(BIT_CAST, [x], [x.view(np.int32)], to=np.int32)
    check_no_allocation(BIT_CAST, [np.ones((200, 300), np.float32).T], to=np.int32)


def test_a_type_of_another_size_is_refused() -> None:
    with pytest.raises(DtypeError, match="reads elements of float32 as another type of the same size, not as int64"):
        evaluate(BIT_CAST, np.zeros(3, np.float32), to=np.int64)
    with pytest.raises(DtypeError, match="reads elements of int4 as another type of the same size, not as int8"):
        evaluate(BIT_CAST, np.zeros(3, "int4"), to=np.int8)
