from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from ops.movement.concat import CONCAT
from ops.products.matmul import MATMUL
from ops.registry import find
from ops.schema.schema import OpSchema
from ops.symbolic.equal_lengths import same_lengths
from ops.symbolic.infer import LengthsError
from ops.tensor.errors import ShapeError


def _equations(schema: OpSchema, *shapes: tuple[Any, ...], **attrs: Any) -> dict[str, str]:
    """Returns the equal lengths that are derived for operands of these shapes, as text."""
    graph = engine.Graph()
    inputs = [graph.input(f"i{k}", shape) for k, shape in enumerate(shapes)]
    with pytest.raises(LengthsError) as caught:
        graph.add(schema, inputs, attrs)
    return {name: str(to) for name, to in same_lengths(caught.value.attempt).items()}


ADD, CONV = find("add"), find("conv")


def test_names_of_aligned_axes_are_equal() -> None:
    assert _equations(ADD, ("a", 3), ("b", 3)) == {"b": "a"}
    assert _equations(ADD, ("a", "b"), ("c",)) == {"c": "b"}
    assert _equations(MATMUL, ("n", "k"), ("l", "m")) == {"l": "k"}
    assert _equations(ADD, ("a", "b"), ("c", "d")) == {"c": "a", "d": "b"}


def test_a_name_aligned_with_a_number_is_that_number() -> None:
    assert _equations(MATMUL, ("n", "k"), (7, 3)) == {"k": "7"}
    assert _equations(CONV, ("n", "c", "h", "w"), (8, 3, 5, 5)) == {"c": "3"}
    assert _equations(CONCAT, ("n", "m", 4), ("i", "j", "k"), axis=1) == {"i": "n", "k": "4"}


def test_a_dimension_that_is_taken_out_is_one() -> None:
    graph = engine.Graph()
    x = graph.input("x", ("n", "m", 3))
    with pytest.raises(LengthsError) as caught:
        ops.reshape(x, (x.shape[0], 3))
    assert same_lengths(caught.value.attempt) == {"m": 1}


@pytest.mark.parametrize("kind", ["conv", "max_pool"])
def test_a_window_that_fits_longer_lengths_makes_no_number(kind: str) -> None:
    graph = engine.Graph()
    x = graph.input("x", (1, 1, "t"))
    graph.samples.keep([6, 7, 8, 9])  # the short ones
    inputs = [x, graph.constant(np.ones((1, 1, 64), np.float32))] if kind == "conv" else [x]
    attrs: dict[str, Any] = {"kernel_shape": (64,), "strides": (64,)}
    with pytest.raises(LengthsError) as caught:
        graph.add(find(kind), inputs, attrs)
    assert not same_lengths(caught.value.attempt)


def test_lengths_of_one_place_are_taken_as_equal_where_they_are_many() -> None:
    assert _equations(ADD, tuple("abc"), tuple("def")) == {"d": "a", "e": "b", "f": "c"}
    assert _equations(CONCAT, tuple("abc"), tuple("def"), tuple("ghi"), axis=0) == {
        **{"d": "a", "e": "b", "f": "c"},
        **{"g": "a", "h": "b", "i": "c"},
    }


def test_no_equal_lengths_are_found_where_none_help() -> None:
    assert not _equations(ADD, ("a", 3), ("a", 2))
    assert not _equations(find("reshape"), ("a", "b"), shape=(5, 7))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 3, 5, "a", "b", "c", "d"]), min_size=1, max_size=4), st.data())
def test_found_equal_lengths_make_the_operator_valid(one: list[int | str], data: st.DataObject) -> None:
    other = [data.draw(st.sampled_from([n, 1, f"{n}x" if isinstance(n, str) else "z"])) for n in one]
    graph = engine.Graph()
    try:
        ops.add(*(graph.input(f"i{k}", shape) for k, shape in enumerate((one, other))))
    except LengthsError as error:
        equal_lengths = same_lengths(error.attempt)
        names = {name: to if isinstance(to, int) else to.text for name, to in equal_lengths.items()}
        solved = engine.Graph()
        shapes = [[names.get(n, n) if isinstance(n, str) else n for n in shape] for shape in (one, other)]
        y = ops.add(*(solved.input(f"i{k}", shape) for k, shape in enumerate(shapes)))
        assert y.ndim == len(one)


def test_a_refusal_of_open_lengths_names_the_lengths_that_were_tried() -> None:
    graph = engine.Graph()
    with pytest.raises(
        ShapeError,
        match=r"none of the lengths that were tried fits; for instance n = 192 \(invented\): add\(float32\[192,3\]",
    ):
        ops.add(graph.input("x", ("n", 3)), graph.input("z", ("n", 2)))
