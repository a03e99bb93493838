from typing import Any

import numpy as np
import pytest

from engine.onnx_backend import Backend, import_fixed, import_for
from engine.text.errors import FeedError, UnsupportedError
from tests.helpers.onnx.node_cases import decides_shapes, node_cases, out_of_scope, run_case, run_fixed
from tests.helpers.onnx.small_models import model, node, value


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in node_cases() if not out_of_scope(c)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_case_of_onnx_gives_the_expected_outputs(case: Any) -> None:
    run_case(case)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in node_cases() if out_of_scope(c)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_case_out_of_scope_is_refused_with_a_reason(case: Any) -> None:
    with pytest.raises(UnsupportedError) as caught:
        run_case(case)
    assert "\n" not in str(caught.value)
    pytest.skip("cases of onnx that are out of scope, and are refused")


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name) for c in node_cases() if decides_shapes(c) and not out_of_scope(c)]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_case_whose_shapes_are_fixed_gives_the_expected_outputs(case: Any) -> None:
    run_fixed(case)


def test_an_input_that_decides_a_shape_is_fixed_only_where_the_run_cannot_wait() -> None:
    proto = model([node("Reshape", ["x", "s"])], [value("x", (2, 3)), value("s", (1,), np.int64)])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert list(import_for(proto, {"x": x, "s": np.asarray([6])}).inputs) == ["x", "s"]
    assert list(import_fixed(proto, {"x": x, "s": np.asarray([6])}).inputs) == ["x"]
    (y,) = Backend.prepare(proto).run([x, np.asarray([-1])])
    assert y.tolist() == [0, 1, 2, 3, 4, 5]
    added = model([node("Unsqueeze", ["x", "s"])], [value("x", (2, 3)), value("s", (1,), np.int64)])
    assert list(import_for(added, {"x": x, "s": np.asarray([1])}).inputs) == ["x"]


def test_an_input_with_an_initializer_is_not_asked_for() -> None:
    proto = model([node("Add", ["x", "w"])], [value("x", (2,)), value("w", (2,))], initializers={"w": np.ones(2, "f4")})
    (y,) = Backend.prepare(proto).run([np.asarray([1, 2], np.float32)])
    assert y.tolist() == [2, 3]


def test_the_onnx_backend_names_missing_inputs() -> None:
    proto = model([node("Add", ["a", "b"])], [value("a", (2,)), value("b", (2,))])
    with pytest.raises(FeedError, match=r"2 inputs are wanted \(a, b\), not 1"):
        Backend.prepare(proto).run([np.zeros(2, np.float32)])


def test_the_onnx_backend_supports_the_cpu_alone() -> None:
    assert Backend.supports_device("CPU")
    assert not Backend.supports_device("CUDA")
    with pytest.raises(FeedError, match="CUDA"):
        Backend.prepare(model([node("Relu", ["x"])], [value("x", (2,))]), "CUDA")
