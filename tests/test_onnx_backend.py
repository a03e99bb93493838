from typing import Any

import numpy as np
import pytest

from engine.errors import FeedError, UnsupportedError
from engine.onnx_backend import Backend, import_for
from tests.onnx_cases import node_cases, out_of_scope, run_case
from tests.onnx_models import model, node, value


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
    pytest.skip(out_of_scope(case))


def test_an_input_that_decides_a_shape_is_fixed_to_what_is_fed() -> None:
    proto = model([node("Reshape", ["x", "s"])], [value("x", (2, 3)), value("s", (1,), np.int64)])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = import_for(proto, {"x": x, "s": np.asarray([6])})
    assert list(graph.inputs) == ["x"]
    (y,) = Backend.prepare(proto).run([x, np.asarray([-1])])
    assert y.tolist() == [0, 1, 2, 3, 4, 5]


def test_an_input_with_an_initializer_is_not_asked_for() -> None:
    proto = model([node("Add", ["x", "w"])], [value("x", (2,)), value("w", (2,))], initializers={"w": np.ones(2, "f4")})
    (y,) = Backend.prepare(proto).run([np.asarray([1, 2], np.float32)])
    assert y.tolist() == [2, 3]


def test_too_few_inputs_are_refused_by_name() -> None:
    proto = model([node("Add", ["a", "b"])], [value("a", (2,)), value("b", (2,))])
    with pytest.raises(FeedError, match=r"2 inputs are wanted \(a, b\), not 1"):
        Backend.prepare(proto).run([np.zeros(2, np.float32)])


def test_only_the_cpu_is_there() -> None:
    assert Backend.supports_device("CPU")
    assert not Backend.supports_device("CUDA")
    with pytest.raises(FeedError, match="CUDA"):
        Backend.prepare(model([node("Relu", ["x"])], [value("x", (2,))]), "CUDA")
