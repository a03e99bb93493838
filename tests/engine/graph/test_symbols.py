"""Arrays that are known as soon as dimensions are: what kernels do not take is given up, elements have texts."""

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Graph
from engine.graph.symbols import Derived, derive, of_dims
from engine.text.errors import FeedError
from ops.registry import find
from ops.tensor.dims import Dim, in_sample
from ops.tensor.errors import OpError, ShapeError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, value

INT = np.dtype(np.int64)
TEN = np.asarray(10)


def array(*dims: Any, shape: tuple[int, ...] | None = None) -> Derived:
    """Returns an int64 array of dimensions and numbers."""
    table = next(d.table for d in dims if isinstance(d, Dim))
    symbolic = of_dims(dims, (len(dims),) if shape is None else shape, INT, table)
    assert isinstance(symbolic, Derived)
    return symbolic


def derived(schema: str, *operands: Derived | Array, **attrs: Any) -> Derived:
    """Returns the only output."""
    table = next(o.table for o in operands if isinstance(o, Derived))
    (output,) = derive(find(schema), operands, MappingProxyType(attrs), table)
    return output


@settings(max_examples=20, deadline=None)
@given(st.integers(40, 2000), st.integers(0, 30), st.booleans())
def test_samples_that_a_table_has_no_row_for_are_given_up_and_no_others(rows: int, least: int, named: bool) -> None:
    graph = Graph()
    n = graph.dim("n")
    table, at = np.arange(rows), array((n if named else n * 2) + least)
    indices = {j: int(at.samples[j][0]) for j in n.table.alive}
    gathered = derived("gather", table, at, axis=0)
    assert n.table.alive == [j for j, index in indices.items() if index < rows]
    assert {j: gathered.samples[j].tolist() for j in n.table.alive} == {j: [indices[j]] for j in n.table.alive}


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_symbols_are_refused_where_a_kernel_takes_fewer_than_two_samples(rows: int) -> None:
    n = Graph().dim("n")
    before = list(n.table.alive)
    with pytest.raises(OpError, match="none of the lengths that were tried fits"):
        derived("gather", np.arange(rows), array(n), axis=0)
    assert n.table.alive == before


@pytest.mark.parametrize(("rows", "width"), [(64, 4), (16, 3), (512, 8)])
def test_a_table_of_positions_is_as_long_as_a_model_has_it(rows: int, width: int) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Range", ["zero", "n", "one"], ["r"]),
        node("Gather", ["table", "r"], ["p"]),
        node("Add", ["x", "p"]),
    ]
    table = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
    initializers = {"zero": np.int64(0), "one": np.int64(1), "table": table}
    exe = engine.compile(
        engine.load_onnx(model(nodes, [value("x", ("n", width))], initializers=initializers)), optimise=0
    )
    for n in (1, 5, rows):
        np.testing.assert_array_equal(exe(x=np.zeros((n, width), np.float32))["y"], table[:n])
    with pytest.raises(FeedError, match=rf"n={rows + 1} do not fit: gather: index {rows} is outside"):
        exe(x=np.zeros((rows + 1, width), np.float32))
    np.testing.assert_array_equal(exe(x=np.ones((2, width), np.float32))["y"], table[:2] + 1)


def test_elements_are_told_by_what_they_are_computed_from() -> None:
    n = Graph().dim("n")
    alone = array(n, shape=())
    assert [str(e) for e in derived("min", alone, TEN).elements()] == ["min(n,10)"]
    several = derived("min", array(n, n * 2), np.asarray([10, 20]))
    assert [str(e) for e in several.elements()] == [f"element {i} of min([n,n*2],int64[2])" for i in range(2)]
    nested = derived("max", derived("min", alone, TEN), np.asarray(3))
    assert [str(e) for e in nested.elements()] == ["max(min(n,10),3)"]
    deep = nested
    for _ in range(40):
        deep = derived("mul", deep, deep)
    assert str(deep.elements()[0]) == "mul(...)"
    assert [str(e) for e in derived("mul", array(n, 3), np.asarray(2)).elements()] == ["n*2", "6"]


def test_printing_a_symbolic_element_decides_nothing() -> None:
    n = Graph().dim("n")
    least = derived("min", array(n, shape=()), TEN)
    before = list(n.table.alive), dict(n.table.guards)
    (element,) = least.elements()
    assert str(element) == "min(n,10)" and (list(n.table.alive), dict(n.table.guards)) == before
    assert all(in_sample(element, j) == min(n.samples[j], 10) for j in n.table.alive)


def test_a_decision_on_an_element_names_what_it_was_computed_from() -> None:
    n = (graph := Graph()).dim("n")
    x = graph.input("x", (n,))
    (k,) = derived("min", array(n, shape=()), TEN).elements()
    assert not k < 7
    graph.output(x)
    with pytest.raises(ShapeError, match=r"min\(n,10\) must be at least 7, but min\(n,10\) is 4"):
        engine.bind(graph, {"n": 4})
