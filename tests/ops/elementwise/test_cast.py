from itertools import product

import numpy as np
import pytest

from ops.elementwise.cast import CAST
from ops.schema.schema import evaluate
from ops.tensor.errors import AttributeValueError
from ops.tensor.layout import Layout
from ops.tensor.spec import DTYPES, TensorSpec
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites, same

NAMES = sorted(d.name for d in DTYPES)


@pytest.mark.parametrize(("source", "to"), list(product(NAMES, NAMES)))
def test_small_numbers_survive_every_cast(source: str, to: str) -> None:
    x = np.array([[0, 1, 1], [1, 0, 1]]) * (1 if "bool" in (source, to) else 7)
    check_kernels(CAST, [x.astype(source)], [x.astype(to)], to=to)


def test_cast_truncates_floats_toward_zero() -> None:
    x = np.array([-1.9, -0.5, 0.5, 1.9], np.float32)
    check_kernels(CAST, [x], [np.array([-1, 0, 0, 1], np.int32)], to="int32")


def test_cast_to_bool_makes_everything_but_zero_true() -> None:
    x = np.array([0.0, -0.0, 0.1, np.nan, np.inf], np.float32)
    check_kernels(CAST, [x], [np.array([False, False, True, True, True])], to="bool")
    check_kernels(CAST, [np.array([0, 2, 256])], [np.array([False, True, True])], to="bool")


def test_float16_overflows_to_infinity() -> None:
    with np.errstate(all="ignore"):
        (y,) = evaluate(CAST, np.array([1e6, -1e6], np.float32), to="float16")
    same(y, np.array([np.inf, -np.inf], np.float16))


@pytest.mark.parametrize(
    ("source", "to"), [("float32", "int32"), ("int64", "int32"), ("float64", "float16"), ("int64", "bool")]
)
def test_a_cast_to_elements_that_are_not_larger_overwrites_its_input(source: str, to: str) -> None:
    x = np.random.default_rng(0).integers(0, 2000, (7, 3001)).astype(source)
    assert check_overwrites(CAST, [x], to=to) == 1
    signature = CAST.sign([TensorSpec(x.shape, x.dtype)], {"to": to})
    assert CAST.kernel(signature).workspace(signature) <= 16 << 10


def test_a_cast_to_larger_elements_needs_bytes_of_its_own() -> None:
    assert check_overwrites(CAST, [np.ones(3, np.float32)], to="float64") == 0


def test_a_cast_to_the_same_dtype_is_a_view() -> None:
    spec = TensorSpec((2, 3), np.dtype("float32"))
    layout = Layout.dense(spec).transpose((1, 0))
    same_dtype = CAST.sign([spec.with_shape((3, 2))], {"to": "float32"})
    assert CAST.views(layout, same_dtype) == (layout,)
    assert CAST.views(layout, CAST.sign([spec.with_shape((3, 2))], {"to": "float16"})) == (None,)


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_cast_takes_scalars_and_empty_tensors(shape: tuple[int, ...]) -> None:
    same(evaluate(CAST, np.full(shape, 2.5), to="int8")[0], np.full(shape, 2, np.int8))
    check_overwrites(CAST, [np.full(shape, 2.5)], to="int8")


@pytest.mark.parametrize("to", ["float16", "float64", "int32", "bool"])
def test_cast_allocates_nothing(to: str) -> None:
    x = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    check_no_allocation(CAST, [x], to=to)
    check_no_allocation(CAST, [x.T], to=to)


def test_cast_refuses_a_dtype_that_no_tensor_has() -> None:
    with pytest.raises(AttributeValueError, match="complex64"):
        evaluate(CAST, np.zeros(2), to="complex64")
