"""Normal forms of dimensions: equal forms are equal numbers, whatever the lengths are, and nothing is decided."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ops.symbolic.normal_form import NormalForms
from ops.tensor.dims import Dim, Samples, leaf, value_of
from ops.tensor.errors import ShapeError

TABLE = Samples()
NAMES = ("a", "b", "c")
A, B, C = (leaf(name, TABLE.invent(), TABLE, name) for name in NAMES)
LENGTHS = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})


def _arithmetic(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def combined(sign: str, left: Any, right: Any) -> Any:
        if not isinstance(left, Dim) and not isinstance(right, Dim):
            return left + right
        if sign == "//" and not isinstance(right, Dim):
            right = right or 1
        return {"+": left + right, "-": left - right, "*": left * right}.get(sign) if sign != "//" else left // right

    return st.builds(combined, st.sampled_from("+-*/").map(lambda s: "//" if s == "/" else s), parts, parts)


DIMS = st.recursive(st.sampled_from([A, B, C]) | st.integers(-9, 9), _arithmetic, max_leaves=8)


def _number(dim: Any, lengths: Mapping[str, int]) -> int:
    return value_of(dim, lambda d: lengths[str(d.key)])


def _forms() -> NormalForms:
    return NormalForms(lambda dim: dim)


@given(DIMS, LENGTHS)
def test_a_dimension_in_normal_form_has_the_same_number(dim: Any, lengths: Mapping[str, int]) -> None:
    try:
        wanted = _number(dim, lengths)
    except ShapeError:  # a division by zero
        assume(False)
    assert _number(_forms().dim(dim), lengths) == wanted
    assert not TABLE.guards


@given(DIMS, DIMS, st.sampled_from(["==", "<", "<="]), LENGTHS)
def test_what_is_proved_of_two_dimensions_holds(
    one: Any, other: Any, relation: str, lengths: Mapping[str, int]
) -> None:
    proved = _forms().proved(one, relation, other)
    assume(proved is not None)
    try:
        left, right = _number(one, lengths), _number(other, lengths)
    except ShapeError:
        assume(False)
    holds: Mapping[str, Callable[[int, int], bool]] = {
        "==": lambda m, n: m == n,
        "<": lambda m, n: m < n,
        "<=": lambda m, n: m <= n,
    }
    assert holds[relation](left, right) is proved


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((A + 2 - 3) // 2 + 1, (A - 1) // 2 + 1),
        (((A + 1) // 2 + 1) // 2, (A + 3) // 4),
        (A * B * 384 // (A * B), A - A + 384),
        ((A * 4 + 6) // 8, (A + 1) // 2),
        (A * B * 24 % (B * 12), A - A),
        (B * (A + C), A * B + C * B),
    ],
)
def test_lengths_of_convolutions_and_reshapes_are_proved_equal(one: Dim, other: Dim) -> None:
    forms = _forms()
    assert forms.dim(one) is forms.dim(other) or forms.dim(one) == forms.dim(other)
    assert forms.form(one) == forms.form(other) and not TABLE.guards


@pytest.mark.parametrize(("one", "other"), [(A, B), (A // 2 * 2, A), ((A + 1) // 2, A // 2), (A * A, A)])
def test_lengths_that_may_differ_are_not_proved_equal(one: Dim, other: Dim) -> None:
    assert _forms().proved(one, "==", other) is None
