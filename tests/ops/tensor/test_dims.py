"""Symbolic dimensions: their arithmetic is that of ints, and guards check what was decided about them."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ops.tensor.dims import SAMPLES, Dim, Samples, dims_in, in_sample, leaf, replaced, sample_of, value_of
from ops.tensor.errors import ShapeError

NAMES = ("a", "b", "c")
Tree = Any
"""A name, a number, or (sign, tree, tree)."""
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from(NAMES) | st.integers(-9, 9),
    lambda inner: st.tuples(st.sampled_from(("+", "-", "*", "//", "%")), inner, inner),
    max_leaves=8,
)
RELATIONS = ("==", "!=", "<", "<=", ">", ">=")
NUMBERS = st.fixed_dictionaries({n: st.integers(0, 40) | st.integers(0, 3) for n in NAMES})
_APPLY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def names(table: Samples) -> dict[str, Dim]:
    """Returns dimensions of these names, as a graph creates them."""
    dims = {n: leaf(n, table.invent(), table, n) for n in NAMES}
    table.named.extend(dims.values())
    return dims


def compute(tree: Tree, of: Mapping[str, Any]) -> Any:
    """Evaluates a tree, in dimensions or in ints."""
    if isinstance(tree, tuple):
        sign, left, right = tree
        return _APPLY[sign](compute(left, of), compute(right, of))
    return of[tree] if isinstance(tree, str) else tree


def lookup(numbers: Mapping[str, int]) -> Callable[[Dim], int]:
    return lambda dim: numbers[str(dim.key)]


def in_ints(tree: Tree, numbers: Mapping[str, int]) -> int | str:
    """Returns the number, or the text "none" where a divisor is nought."""
    try:
        return int(compute(tree, numbers))
    except ZeroDivisionError:
        return "none"


def of_dims(tree: Tree, dims: Mapping[str, Dim]) -> Dim:
    """Evaluates the tree in dimensions; rejects the example where the result is a plain number."""
    try:
        result = compute(tree, dims)
    except ZeroDivisionError:  # two plain numbers
        assume(False)
    assume(isinstance(result, Dim))
    assert isinstance(result, Dim)
    return result


@settings(max_examples=80, deadline=None)
@given(TREES, NUMBERS)
def test_dimension_arithmetic_is_that_of_ints(tree: Tree, numbers: dict[str, int]) -> None:
    dim, wanted = of_dims(tree, names(Samples())), in_ints(tree, numbers)
    if wanted == "none":
        with pytest.raises(ShapeError, match="by nought"):
            value_of(dim, lookup(numbers))
    else:
        assert value_of(dim, lookup(numbers)) == wanted


@settings(max_examples=80, deadline=None)
@given(TREES, NUMBERS)
def test_the_text_has_the_brackets_that_it_needs(tree: Tree, numbers: dict[str, int]) -> None:
    dim, wanted = of_dims(tree, names(Samples())), in_ints(tree, numbers)
    assume(wanted != "none")
    assert eval(str(dim), {}, numbers) == wanted  # the text is ours


@settings(max_examples=40, deadline=None)
@given(TREES)
def test_dimension_samples_equal_int_arithmetic(tree: Tree) -> None:
    dims = names(Samples())
    dim = of_dims(tree, dims)
    for j in range(SAMPLES):
        wanted = in_ints(tree, {n: d.samples[j] for n, d in dims.items()})
        assert wanted in {"none", sample_of(dim, j)}


@settings(max_examples=25, deadline=None)
@given(TREES, NUMBERS)
def test_leaves_are_all_that_a_number_depends_on(tree: Tree, numbers: dict[str, int]) -> None:
    dim = of_dims(tree, names(Samples()))
    assume(in_ints(tree, numbers) != "none")
    needed = {n: v for n, v in numbers.items() if n in dim.leaves}
    assert value_of(dim, lookup(needed)) == in_ints(tree, numbers)


def choose(decisions: list[tuple[str, Tree, Tree, Tree, Tree]], of: Mapping[str, Any]) -> Any:
    """Evaluates a function with ifs: the sum of what each decision gives."""
    total: Any = of["a"]
    for relation, left, right, one, other in decisions:
        is_so = _APPLY[relation](compute(left, of), compute(right, of))
        total = total + compute(one if is_so else other, of)
    return total


DECISIONS = st.lists(st.tuples(st.sampled_from(RELATIONS), TREES, TREES, TREES, TREES), min_size=1, max_size=3)


@settings(max_examples=120, deadline=None)
@given(DECISIONS, NUMBERS)
def test_a_decision_is_right_or_an_error(decisions: Any, numbers: dict[str, int]) -> None:
    table = Samples()
    try:
        chosen = choose(decisions, names(table))
    except ZeroDivisionError:  # two plain numbers
        return
    lengths = lookup(numbers)
    try:
        for guard in table.guards.values():
            guard.check(lengths)
        value = value_of(chosen, lengths)
    except ShapeError:
        return
    assert value == choose(decisions, numbers)


@settings(max_examples=40, deadline=None)
@given(DECISIONS)
def test_dimension_decisions_hold_in_the_samples_that_are_left(decisions: Any) -> None:
    table = Samples()
    dims = names(table)
    try:
        chosen = choose(decisions, dims)
    except ZeroDivisionError:
        return
    assert table.alive
    for j in table.alive:
        numbers = {n: d.samples[j] for n, d in dims.items()}
        try:
            wanted = choose(decisions, numbers)
        except ZeroDivisionError:
            continue
        for guard in table.guards.values():
            guard.check(lookup(numbers))
        assert value_of(chosen, lookup(numbers)) == wanted


def test_the_error_of_a_guard_names_the_decision_and_the_length() -> None:
    table = Samples()
    a, b, _ = names(table).values()
    assert a * 2 != b and a > 1
    unlike, more = table.guards.values()
    unlike.check(lookup({"a": 1, "b": 1}))
    with pytest.raises(ShapeError, match=r"a\*2 must differ from b, but a\*2 is 4 and b is 4;"):
        unlike.check(lookup({"a": 2, "b": 4}))
    with pytest.raises(ShapeError, match=r"a must be greater than 1, but a is 1;"):
        more.check(lookup({"a": 1}))


def test_the_same_decision_is_watched_once_and_from_the_first_time_on() -> None:
    table = Samples()
    a, *_ = names(table).values()
    for position in range(3):
        table.position = position
        assert a != 1
    (guard,) = table.guards.values()
    assert guard.position == 0 and guard.leaves == {"a"}


def test_samples_that_say_otherwise_are_given_up() -> None:
    table = Samples()
    a, *_ = names(table).values()
    assert a % 2 == 0 and a > 1
    assert {a.samples[j] % 2 for j in table.alive} == {0}
    assert a % 2 == 0  # as before


def test_a_length_is_never_negative_which_needs_no_guard() -> None:
    table = Samples()
    a, *_ = names(table).values()
    assert a != -1 and a > -3 and not a < -1
    assert not table.guards and len(table.alive) == SAMPLES


def test_a_difference_may_be_negative_and_is_watched() -> None:
    table = Samples()
    a, b, _ = names(table).values()
    assert (a - b < -1) == (a.samples[table.alive[0]] - b.samples[table.alive[0]] < -1)
    assert len(table.guards) == 1


def test_neutral_arithmetic_makes_no_new_dimension() -> None:
    a, *_ = names(Samples()).values()
    for same in (a + 0, 0 + a, a - 0, a * 1, 1 * a, a // 1):
        assert same is a


def test_a_dimension_has_no_number() -> None:
    a, *_ = names(Samples()).values()
    fraction: Any = 1.5
    with pytest.raises(TypeError, match="dimension 'a' has no number"):
        range(a)
    with pytest.raises(TypeError):
        a + fraction
    with pytest.raises(TypeError):
        fraction - a


def test_values_of_attributes_are_replaced_in_all_depths() -> None:
    a, b, _ = names(Samples()).values()
    value = (a, (1, b * 2), "x", None)
    assert [str(d) for d in dims_in(value)] == ["a", "b*2"]
    assert replaced(value, lambda d: value_of(d, lookup({"a": 3, "b": 4}))) == (3, (1, 8), "x", None)
    assert in_sample(value, SAMPLES - 1) == (1, (1, 2), "x", None)


def test_decisions_inside_a_graph_are_its_own_and_the_samples_are_shared() -> None:
    table = Samples()
    a, *_ = names(table).values()
    inside = table.inside()
    inner = leaf("i", inside.invent(), inside, "i")
    assert inner != a
    assert not table.guards and len(inside.guards) == 1
    assert inside.alive is table.alive


def test_a_transaction_that_fails_takes_back_its_decisions() -> None:
    outer = Samples()
    a, b, c = names(outer).values()
    inner = outer.inside()
    own = leaf("own", outer.invent(), inner, "own")
    assert a != b
    before = list(inner.alive), dict(inner.guards), dict(outer.guards)
    with pytest.raises(ShapeError), inner.transaction():
        assert (b == 1, c > 1, own > 1) == (False, True, True)
        assert a == 64 * 3  # the first sample alone says so
        raise ShapeError("the branch does not fit")
    assert (list(inner.alive), dict(inner.guards), dict(outer.guards)) == before


def test_a_transaction_that_succeeds_keeps_its_decisions() -> None:
    table = Samples()
    a, b, _ = names(table).values()
    with table.transaction():
        assert a != b
    assert [str(guard) for guard in table.guards.values()] == ["a == b"]
