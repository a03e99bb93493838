"""Sizes that elements of tensors decide: elements that are not there, guesses that do not fit, huge sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import Graph, Var
from engine.text.errors import EngineError, FeedError, GraphError, KernelError
from ops.tensor.errors import OpError, ShapeError

HUGE = 2**50
"""Rows that no address space has bytes for, whatever a system promises."""


def fronts(later: bool, index: int = 0) -> Graph:
    """Returns the first rows of "x" [n], as many as an element of "k" [m] says, or one of what is computed of it."""
    graph = Graph("fronts")
    x, k = graph.input("x", ("n",)), graph.input("k", ("m",), "int64")
    graph.output(ops.exp(ops.slice(x, [0], [graph.data_dim(k + k if later else k, index)], [0])), "y")
    return graph


@pytest.mark.parametrize(("later", "error"), [(False, FeedError), (True, KernelError)])
@pytest.mark.parametrize(("index", "count"), [(0, 0), (2, 2), (-3, 2)])
def test_an_element_that_there_is_not_is_one_error_and_the_next_run_is_right(
    later: bool, error: type[EngineError], index: int, count: int
) -> None:
    x, exe = np.zeros(9, np.float32), engine.compile(fronts(later, index))
    for _ in range(2):
        with pytest.raises(error, match=rf"element {index} of '.*' decides a size, but it has {count} element"):
            exe(x=x, k=np.ones(count, np.int64))
        assert exe(x=x, k=np.full(3, 2))["y"].shape == (4 if later else 2,)


@pytest.mark.parametrize("index", [2, 5, -3])
def test_an_element_that_there_cannot_be_is_refused_at_once(index: int) -> None:
    graph = Graph("two")
    n = graph.dim("n")
    for var in (graph.input("k", (2,), "int64"), graph.constant(np.arange(2)), graph.constant(n)):
        with pytest.raises(GraphError, match=f"none of them is element {index}"):
            graph.data_dim(var, index)


def test_where_no_made_up_number_fits_the_error_says_how_to_tell_better_ones() -> None:
    graph = Graph("rows")
    x, k = graph.input("x", ("n", 4)), graph.input("k", (1,), "int64")
    dim = graph.data_dim(graph.input("m", (), "int64"), 0, (96, 160, 224, 6, 18, 1, 0))
    with pytest.raises(ShapeError, match=r"what k might be was made up: `samples` of graph.data_dim"):
        ops.reshape(x, (graph.data_dim(k), 2, 2))
    with pytest.raises(ShapeError) as error:
        ops.reshape(x, (dim, 2, 3))
    assert "made up" not in str(error.value)


def wide(compute: Callable[[Var], Var]) -> Graph:
    """Returns a graph of HUGE copies of "x" [n]."""
    graph = Graph("wide")
    x = graph.input("x", ("n",))
    many: Any = (HUGE, x.shape[0])
    graph.output(compute(ops.expand(x, many)), "y")
    return graph


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_an_output_that_is_too_large_to_copy_is_one_error(mode: str) -> None:
    for graph in (wide(lambda x: x), engine.bind(wide(lambda x: x), {"n": 3})):
        exe = engine.compile(graph, mode=mode)
        with pytest.raises(EngineError, match=f"{HUGE * 12} bytes, too many for a copy on this machine"):
            exe(x=np.zeros(3, np.float32))
        if mode == "static":
            assert exe.run({"x": np.ones(3, np.float32)}, copy=False)["y"].shape == (HUGE, 3)


@pytest.mark.parametrize("options", [{}, {"mode": "dynamic"}, {"debug": "poison"}])
def test_a_tensor_that_the_machine_has_no_bytes_for_is_one_error(options: dict[str, Any]) -> None:
    exe = engine.compile(wide(ops.exp), **options)
    for _ in range(2):
        with pytest.raises(EngineError, match="cannot be allocated on this machine"):
            exe(x=np.zeros(3, np.float32))
    assert exe(x=np.zeros(0, np.float32))["y"].shape == (HUGE, 0)


Step = Callable[[Var, Var], tuple[Var, Any]]


def turns(step: Step, width: Any = 3) -> Graph:
    graph = Graph("turns")
    carried, _ = engine.scan(step, graph.constant(np.zeros(3, np.float32)), graph.input("x", (4, width)))
    graph.output(carried, "y")
    return graph


def _sum(x: Var) -> Var:
    total: Var = ops.reduce_sum(ops.cast(x, np.float32))
    return total


def _cut(row: Var) -> Var:
    shorter: Var = engine.cond(_sum(row) > 0.0, lambda: ops.slice(row, [0], [2], [0]), lambda: row)
    return shorter


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda c, r: (c + _sum(ops.nonzero(r)), ()), "data computed in the body decide its sizes"),
        (lambda c, r: (c, ops.nonzero(r)), "data computed in the body decide its sizes"),
        (lambda c, r: (c + _sum(_cut(r)), ()), "data computed in the body decide its sizes"),
        (lambda c, r: (ops.concat([c, r], 0), ()), r"float32\[3\] becomes float32\[(6|n\+3)\]"),
    ],
)
@pytest.mark.parametrize("width", [3, "n"])
def test_a_scan_says_what_it_cannot(step: Step, reason: str, width: Any) -> None:
    with pytest.raises(
        (GraphError, OpError), match=rf"scan: .*{reason}.*; arenaplan.fori_loop and arenaplan.unfold run such"
    ):
        turns(step, width)
