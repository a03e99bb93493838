"""Checks of gradient rules: central differences, no operator that is not needed, equal bits in all modes."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

import engine
import ops
from engine import Graph, Var
from ops.tensor.spec import FLOATS, Array
from tests.helpers.graphs.unplanned_run import assert_same, run_unplanned

Build = Callable[..., Any]
"""Of vars: one var, or several."""
_STEP = 1e-5


class Problem:
    """A function of arrays; the sum of its float outputs with random weights is differentiated."""

    def __init__(self, build: Build, arrays: Sequence[Array]) -> None:
        self.build = build
        self.feeds = {f"x{i}": np.asarray(a) for i, a in enumerate(arrays)}
        self.floats = [n for n, a in self.feeds.items() if a.dtype in FLOATS]

    def graph(self) -> tuple[Graph, dict[str, Var], list[tuple[Var, Array]]]:
        """Returns the graph, its inputs, its float outputs and their weights."""
        graph = Graph("gradients")
        inputs = {n: graph.input(n, a.shape, a.dtype.name) for n, a in self.feeds.items()}
        built = self.build(*inputs.values())
        rng = np.random.default_rng(7)
        outputs = [y for y in (built if isinstance(built, tuple) else (built,)) if y.dtype in FLOATS]
        return graph, inputs, [(y, np.asarray(rng.uniform(0.5, 1.5, y.shape)).astype(y.dtype)) for y in outputs]

    def gradients(self, wrt: Sequence[str]) -> tuple[Graph, int]:
        """Returns a graph whose outputs are the gradients, and how many operators it had without them."""
        graph, inputs, outputs = self.graph()
        (y, weights), *more = outputs
        seed = None if more else graph.constant(weights)
        loss = _weighed(outputs) if more else y
        first = len(graph.operators)
        for name, gradient in zip(wrt, engine.gradients(loss, [inputs[n] for n in wrt], seed=seed), strict=True):
            graph.output(gradient, f"d{name}")
        return graph, first

    def differences(self, wrt: str) -> Array:
        """Returns central differences."""
        graph, _, outputs = self.graph()
        graph.output(_weighed(outputs), "loss")
        forward = engine.compile(graph, optimise=0)
        x = self.feeds[wrt]
        slopes = np.zeros(x.shape, np.float64)
        for index in np.ndindex(x.shape):
            sides = []
            for step in (_STEP, -_STEP):
                moved = x.copy()
                moved[index] += step
                sides.append(float(forward.run({**self.feeds, wrt: moved})["loss"]))
            slopes[index] = (sides[0] - sides[1]) / (2 * _STEP)
        return slopes


def _weighed(outputs: Sequence[tuple[Var, Array]]) -> Var:
    return reduce(add, (ops.reduce_sum(y * weights, keepdims=False) for y, weights in outputs))


def _check_needed(graph: Graph, first: int) -> None:
    """Checks that every operator from the first on leads to an output."""
    needed = set(graph.outputs.values())
    for operator in reversed(graph.operators[first:]):
        assert not needed.isdisjoint(operator.outputs), f"{operator} is computed for nothing"
        needed.update(operator.inputs)


def _run_all_ways(graph: Graph, problem: Problem) -> dict[str, Array]:
    """Checks that static, poisoned and dynamic runs give equal bits.

    An unplanned run may differ: there BLAS reads other strides and rounds otherwise.
    """
    static = engine.compile(graph, debug="poison", optimise=0).run(problem.feeds)
    assert_same(engine.compile(graph, mode="dynamic", optimise=0).run(problem.feeds), static)
    for name, array in run_unplanned(graph, problem.feeds).items():
        np.testing.assert_allclose(static[name], array, rtol=1e-6, atol=1e-12)
    return static


def check_gradients(build: Build, *arrays: Array, rtol: float = 1e-5, atol: float = 1e-6, only: str = "") -> None:
    """Checks all of it at a point where the function has a gradient; for all float inputs, or only one."""
    problem = Problem(build, arrays)
    wrt = [only] if only else problem.floats
    together = _run_all_ways(problem.gradients(wrt)[0], problem)
    for name in wrt:
        graph, first = problem.gradients([name])
        _check_needed(graph, first)
        alone = _run_all_ways(graph, problem)
        assert_same(alone, {f"d{name}": together[f"d{name}"]})
        assert alone[f"d{name}"].dtype == problem.feeds[name].dtype
        np.testing.assert_allclose(alone[f"d{name}"], problem.differences(name), rtol, atol, err_msg=name)


def gradients_of(function: Build, arrays: Sequence[Array]) -> list[Array]:
    """Returns the gradients of all inputs; the elements of the output count 1 to 2 times."""
    graph = Graph()
    inputs = [graph.input(f"x{i}", a.shape, a.dtype.name) for i, a in enumerate(arrays)]
    y = function(*inputs)
    seed = graph.constant(np.linspace(1, 2, y.spec.size, dtype=y.dtype).reshape(y.shape))
    for i, gradient in enumerate(engine.gradients(y, inputs, seed=seed)):
        graph.output(gradient, f"d{i}")
    return list(run_unplanned(graph, {f"x{i}": a for i, a in enumerate(arrays)}).values())


def output_of(function: Build, x: Array) -> Array:
    """Returns a function's value."""
    graph = Graph()
    graph.output(function(graph.input("x", x.shape, x.dtype.name)), "y")
    return run_unplanned(graph, {"x": x})["y"]
