"""Operators on symbolic shapes: inferred in every sample, expressed by formulas, refused where nothing fits."""

from collections.abc import Hashable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ops.registry import find
from ops.symbolic.infer import draft, formula, is_symbolic
from ops.tensor.dims import SAMPLES, Dim, Samples, in_sample, leaf, sample_of
from ops.tensor.errors import ShapeError
from ops.tensor.spec import TensorSpec
from tests.ops.tensor.test_dims import NAMES, names

NO_CONSTANTS: frozenset[int] = frozenset()


def key(output: int, axis: int) -> tuple[str, Hashable]:
    return f"y{output}.{axis}", (output, axis)


def shape_of(schema: str, table: Samples, *shapes: tuple[Any, ...], **attrs: Any) -> tuple[Any, ...]:
    """Returns the symbolic shape of the first output."""
    specs = [TensorSpec(s, np.float32) for s in shapes]
    drafted = draft(find(schema), specs, MappingProxyType(attrs), NO_CONSTANTS, table)
    return drafted.signed(key).outputs[0].shape


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(-40, 40), st.sampled_from((1, 2, 4, 8)), st.integers(0, 500))
def test_a_formula_of_one_dimension_is_found_and_right_for_other_lengths(p: int, r: int, q: int, n: int) -> None:
    table = Samples()
    a, *others = names(table).values()
    lengths = {j: (p * d + r) // q for j, d in enumerate(a.samples)}
    result = formula(lengths, [a, *others], "name")
    assert isinstance(result, Dim)
    assert [sample_of(result, j) for j in range(SAMPLES)] == list(lengths.values())
    if q == 1:  # nothing is rounded, so no other formula fits
        assert eval(str(result), {}, {"a": n}) == p * n + r  # the text is ours


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=SAMPLES, max_size=SAMPLES), st.integers(2, SAMPLES))
def test_a_formula_is_right_in_every_sample_or_is_a_name(numbers: list[int], count: int) -> None:
    dims = list(names(Samples()).values())
    lengths = dict(enumerate(numbers[:count]))
    result = formula(lengths, dims, "name")
    assert result == "name" if isinstance(result, str) else all(sample_of(result, j) == n for j, n in lengths.items())


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(1, 5))
def test_sums_and_products_of_two_dimensions_are_recognised(one: str, other: str, times: int) -> None:
    assume(one < other)
    dims = names(Samples())
    a, b = dims[one], dims[other]
    for combined in ((a + b) * times, a * b * times):
        result = formula(dict(enumerate(combined.samples)), list(dims.values()), "name")
        assert isinstance(result, Dim) and result.samples == combined.samples


def test_shapes_are_formulas_of_the_names_of_the_inputs() -> None:
    a, b, c = names(table := Samples()).values()
    assert [str(d) for d in shape_of("relu", table, (a, 3, b))] == ["a", "3", "b"]
    assert [str(d) for d in shape_of("matmul", table, (a, b, 5), (5, 7))] == ["a", "b", "7"]
    assert [str(d) for d in shape_of("concat", table, (a, 2), (b, 2), axis=0)] == ["a+b", "2"]
    assert [str(d) for d in shape_of("concat", table, (a, 2), (a, 2), (1, 2), axis=0)] == ["a*2+1", "2"]
    assert [str(d) for d in shape_of("reshape", table, (a, b, 4), shape=(a, -1))] == ["a", "b*4"]
    assert [str(d) for d in shape_of("transpose", table, (a, b, c), perm=(2, 0, 1))] == ["c", "a", "b"]
    assert [str(d) for d in shape_of("reduce_sum", table, (a, b), axes=(1,), keepdims=True)] == ["a", "1"]
    assert len(table.alive) == SAMPLES and not table.guards


def test_windows_that_round_are_formulas_with_a_division() -> None:
    a, *_ = names(table := Samples()).values()
    window = {"kernel_shape": (2, 2), "strides": (2, 2)}
    assert str(shape_of("max_pool", table, (1, 3, a, a), **window)[2]) in {"a//2", "(a-1)//2", "(a+0)//2"}


def test_a_length_that_is_the_same_in_all_samples_is_a_number() -> None:
    a, *_ = names(table := Samples()).values()
    assert shape_of("slice", table, (a + 8, 4), starts=(0,), ends=(3,), axes=(0,)) == (3, 4)


def test_samples_that_do_not_fit_are_given_up() -> None:
    a, *_ = names(table := Samples()).values()
    assert [str(d) for d in shape_of("reshape", table, (a, 3), shape=(-1, 6))] == ["a//2", "6"]
    assert {a.samples[j] % 2 for j in table.alive} == {0}


def test_broadcasting_with_a_dimension_leaves_those_in_which_it_is_possible() -> None:
    a, b, _ = names(table := Samples()).values()
    assert [str(d) for d in shape_of("add", table, (a, 3), (1, 3))] == ["a", "3"]
    with pytest.raises(ShapeError, match="none of the lengths that were tried fits"):
        shape_of("add", table, (a, 3), (b, 3))


def test_symbolic_shapes_that_fit_no_sample_are_refused_with_what_was_tried() -> None:
    a, *_ = names(table := Samples()).values()
    with pytest.raises(ShapeError, match=r"matmul\(float32\[a,4\], float32\[5,6\]\): none of"):
        shape_of("matmul", table, (a, 4), (5, 6))
    assert len(table.alive) == SAMPLES


def test_dimensions_may_stand_in_attributes() -> None:
    a, *_ = names(table := Samples()).values()
    sizes = tuple(leaf(f"k{i}", tuple(d // 2 for d in a.samples), table, f"k{i}") for i in range(2))
    table.keep([0, 1, 2])  # even ones
    assert [str(d) for d in shape_of("split", table, (a, 3), sizes=sizes, axis=0)] == ["k0", "3"]


def test_an_operator_waits_for_numbers_where_a_spec_or_an_attribute_has_none() -> None:
    a, *_ = names(Samples()).values()
    plain = TensorSpec((2, 3), np.float32)
    shape: Any = (a, 3)
    assert is_symbolic([TensorSpec(shape, np.float32)], {})
    assert is_symbolic([plain], {"shape": (a, -1)})
    assert not is_symbolic([plain], {"shape": (6,), "axis": None})


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 6), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))
def test_drafted_signatures_equal_those_of_each_sample(j: int, kernel: int, stride: int, pad: int, dil: int) -> None:
    a, b, _ = names(table := Samples()).values()
    pads = (min(pad, kernel - 1),) * 4
    attrs = {"kernel_shape": (kernel,) * 2, "strides": (stride,) * 2, "dilations": (dil,) * 2, "pads": pads}
    shape: Any = (2, 3, a + 8, b + 8)
    output_shape = shape_of("max_pool", table, shape, **attrs)
    assume(j in table.alive)
    numbers = TensorSpec(in_sample(shape, j), np.float32)
    assert in_sample(output_shape, j) == find("max_pool").sign([numbers], attrs).outputs[0].shape


def test_a_formula_of_formulas_stays_short() -> None:
    table = Samples()
    a, b, *_ = names(table).values()
    for _ in range(30):
        ((c,),) = (shape_of("concat", table, (a,), (b,), axis=0),)
        a, b = b, c
    assert len(str(b)) < 2000


def test_formulas_of_many_names_are_looked_for_in_few() -> None:
    table = Samples()
    table.named.extend(leaf(f"n{i}", table.invent(), table, i) for i in range(2000))
    one, other, *_ = table.named
    assert str(shape_of("concat", table, (one,), (other,), axis=0)[0]) == "n0+n1"
