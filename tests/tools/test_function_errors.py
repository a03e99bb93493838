"""Functions of one variable over all of float32: what kernels compute is near float64, as docs/kernels.md states it."""

import re

import numpy as np
import pytest

from ops.registry import REGISTRY
from ops.schema.backends import NUMBA, NUMPY
from ops.tensor.errors import OpError
from ops.tensor.spec import TensorSpec
from tests.helpers.paths import ROOT
from tools.function_errors import CASES, LEAST, STEP, Case, kernel_of, rows, sweep

SINGLE = np.dtype(np.float32)
FEW = 67 * STEP
"""Every pattern of the fast test is one of the table, too."""
MOST = 6e-7
"""Five units in the last place."""
BEYOND = {
    NUMBA: {"gelu": (1e-6, LEAST), "gelu, tanh": (1.4e-5, LEAST)},
    NUMPY: {
        "gelu": (5e-6, LEAST),
        "mish": (7e-6, LEAST),
        "sigmoid": (MOST, 2.0**-100),
        "swish": (MOST, 2.0**-100),
        "gelu, tanh": (1.4e-5, 2.0**-100),
        "hard_sigmoid": (MOST, 1.0),
    },
}
"""Larger errors that are allowed, and the least number that they are divided by. docs/kernels.md says why."""


def _each(backend: str) -> list[Case]:
    return [case for case in CASES if kernel_of(case, backend)[0].backend == backend]


def _check(case: Case, backend: str, step: int) -> None:
    most, least = BEYOND[backend].get(case.label, (MOST, LEAST))
    worst = sweep(case, backend, step, least)
    assert worst.error <= most, worst


def _stated() -> dict[str, list[str]]:
    """Returns the lines of the table by function."""
    page = (ROOT / "docs" / "kernels.md").read_text()
    match = re.search("<!-- functions -->\n(.*?)\n<!-- end of functions -->", page, re.DOTALL)
    assert match
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in match[1].splitlines()[2:]]
    return {line[0].strip("`"): line[1:] for line in lines}


@pytest.mark.parametrize("case", _each(NUMBA), ids=lambda case: case.label)
def test_compiled_functions_are_near_float64_over_all_of_float32(case: Case) -> None:
    _check(case, NUMBA, FEW)


@pytest.mark.parametrize("case", _each(NUMPY), ids=lambda case: case.label)
def test_functions_of_numpy_are_near_float64_over_all_of_float32(case: Case) -> None:
    _check(case, NUMPY, FEW)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "step"), [(NUMBA, STEP), (NUMPY, 7 * STEP)])
def test_functions_are_near_float64_on_numbers_of_the_table(backend: str, step: int) -> None:
    for case in _each(backend):
        _check(case, backend, step)


def test_each_operator_of_one_tensor_of_float32_is_swept() -> None:
    one = TensorSpec((1,), SINGLE)
    for schema in REGISTRY.values():
        if not schema.elementwise or schema.arity != (1, 1):
            continue
        try:
            (y,) = schema.sign([one], {}).outputs
        except OpError:
            continue
        assert y.dtype != SINGLE or any(case.name == schema.name for case in CASES), schema.name


def test_a_function_that_is_wrong_has_a_large_error() -> None:
    wrong = Case("exp", lambda x: np.exp(x) * (1 + 1e-5))
    assert 0.9e-5 < sweep(wrong, NUMBA, FEW).error < 1.1e-5
    assert sweep(Case("log", np.sqrt), NUMBA, FEW).error > 1e30
    assert sweep(Case("sign", lambda x: np.where(np.isnan(x), 0.0, np.sign(x))), NUMPY, FEW).error == np.inf


@pytest.mark.slow
def test_the_page_states_an_error_for_each_function_that_no_sample_exceeds() -> None:
    stated = _stated()
    assert list(stated) == [case.label for case in CASES]
    _, *measured = rows(step=FEW)
    for name, *cells in measured:
        for error, most in zip(cells[::2], stated[name.strip("`")][::2], strict=True):
            assert bool(error) == bool(most)
            assert float(error or 0) <= 1.05 * float(most or 0) + 6e-8, name
