"""Rows written into a cache, against the loops of ONNX."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.text.errors import KernelError
from ops.index.cache import TENSOR_SCATTER
from ops.schema.schema import evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, value
from tests.helpers.ops.kernel_checks import check_kernels, check_overwrites
from tests.helpers.ops.sample_arrays import SEEDS


def _written(cache: Array, update: Array, places: Array, axis: int, circular: bool) -> Array:
    y = cache.copy()
    for lead in np.ndindex(cache.shape[:axis]):
        for i in range(update.shape[axis]):
            row = int(places[lead[0]]) + i
            y[(*lead, row % cache.shape[axis] if circular else row)] = update[(*lead, i)]
    return y


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4), st.booleans(), st.sampled_from(["f4", "i8", "int4"]),
    st.data(), SEEDS,
)  # fmt: skip
def test_rows_are_written_where_onnx_writes_them(
    shape: list[int], circular: bool, dtype: str, data: st.DataObject, seed: int
) -> None:
    of_places = data.draw(st.sampled_from(["i4", "i8"]))
    axis = data.draw(st.integers(1, len(shape) - 1))
    rows = data.draw(st.integers(0, shape[axis]))
    random = np.random.default_rng(seed)
    cache = random.integers(-8, 8, shape).astype(dtype)
    update = random.integers(-8, 8, [rows if i == axis else n for i, n in enumerate(shape)]).astype(dtype)
    places = random.integers(0, 3 * shape[axis] if circular else shape[axis] - rows + 1, shape[0]).astype(of_places)
    wanted = _written(cache, update, places, axis, circular)
    check_kernels(TENSOR_SCATTER, [cache, update, places], [wanted], axis=axis, circular=circular)
    assert check_overwrites(TENSOR_SCATTER, [cache, update, places], axis=axis - len(shape), circular=circular) == 1


def test_a_cache_of_open_length_is_written_in_place() -> None:
    inputs = [value("c", ("n", 2, "s", 3)), value("u", ("n", 2, 1, 3)), value("p", ("n",), np.int64)]
    nodes = [node("Relu", ["c"], ["r"]), node("TensorScatter", ["r", "u", "p"])]
    executable = engine.compile(engine.load_onnx(model(nodes, inputs, opset=24)))
    for n, s in ((1, 4), (3, 7)):
        random = np.random.default_rng(s)
        cache, update = (random.standard_normal((n, 2, m, 3)).astype(np.float32) for m in (s, 1))
        places = random.integers(0, s, n)
        y = executable.run({"c": cache, "u": update, "p": places})["y"]
        assert np.array_equal(y, _written(np.maximum(cache, 0), update, places, 2, False))


@pytest.mark.parametrize("names", [("l", "s"), ("s", "l")])
def test_open_lengths_of_a_cache_and_of_its_rows_may_differ(names: tuple[str, str]) -> None:
    lengths = {"l": value("c", (2, "l", 3)), "s": value("u", (2, "s", 3))}
    inputs = [*(lengths[name] for name in names), value("p", (2,), np.int64)]
    executable = engine.compile(engine.load_onnx(model([node("TensorScatter", ["c", "u", "p"])], inputs, opset=24)))
    cache, update, places = np.zeros((2, 9, 3), np.float32), np.ones((2, 4, 3), np.float32), np.array([0, 5])
    y = executable.run({"c": cache, "u": update, "p": places})["y"]
    assert np.array_equal(y, _written(cache, update, places, 1, False))
    with pytest.raises(KernelError, match="do not fit into a cache"):
        executable.run({"c": cache[:, :3], "u": update, "p": places})


def test_places_left_out_are_0() -> None:
    proto = model([node("TensorScatter", ["c", "u"])], [value("c", (2, 3, 1)), value("u", (2, 2, 1))], opset=24)
    cache, update = np.zeros((2, 3, 1), np.float32), np.ones((2, 2, 1), np.float32)
    y = engine.compile(engine.load_onnx(proto)).run({"c": cache, "u": update})["y"]
    assert y[..., 0].tolist() == [[1, 1, 0], [1, 1, 0]]


C, U, P = np.zeros((1, 4, 2)), np.zeros((1, 2, 2)), np.zeros(1, np.int64)


@pytest.mark.parametrize(
    ("operands", "attrs", "message"),
    [
        ([C, U, P + 3], {}, "2 rows from row 3 on do not fit into a cache of 4"),
        ([C, U, P - 1], {}, "2 rows from row -1 on"),
        ([C, U, P], {"axis": 0}, "axis is 0"),
        ([C, U, P], {"axis": 5}, "axis 5 does not exist"),
        ([U, C, P], {}, "do not fit into a cache"),
        ([C, U[:, :, :1], P], {}, "do not fit into a cache"),
        ([C, U[0], P], {}, "do not fit into a cache"),
        ([C, U.astype("f4"), P], {}, "rows of float32"),
        ([C, U, np.zeros(2, np.int64)], {}, "are not one for each of 1 samples"),
        ([C, U, P.astype("f4")], {}, "indices must be int32 or int64"),
    ],
)
def test_rows_that_do_not_fit_are_refused(operands: list[Array], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(TENSOR_SCATTER, *operands, **attrs)
