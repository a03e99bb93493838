"""Checks of gradients of layers: central differences, equal bits in all modes and for one gradient alone."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import engine
from engine import Graph, Var
from ops.tensor.spec import Array
from tests.helpers.graphs.unplanned_run import assert_same, check_modes, run_unplanned
from tests.helpers.ops.sample_arrays import normal

Build = Callable[..., Any]
"""From vars to a var, or to a tuple of which the first is differentiated."""


def floats(seed: int, *shapes: tuple[int, ...], dtype: str = "float64") -> list[Array]:
    """Returns arrays of normal numbers, in double precision where nothing else is asked."""
    return normal(seed, *shapes, dtype=dtype)


def distinct(seed: int, shape: tuple[int, ...], dtype: str = "float64") -> Array:
    """Returns numbers at least 0.01 from each other and from 0, so that no maximum changes in a small step."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    return ((rng.permutation(size) - size // 2 + 0.5) / 50).reshape(shape).astype(dtype)


def _graph(build: Build, arrays: Sequence[Array]) -> tuple[Graph, list[Var], Var]:
    graph = Graph()
    inputs = [graph.input(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    built = build(*inputs)
    return graph, inputs, built[0] if isinstance(built, tuple) else built


def feeds_of(arrays: Sequence[Array]) -> dict[str, Array]:
    """Returns the arrays under the names of inputs."""
    return {f"x{i}": a for i, a in enumerate(arrays)}


def _output(build: Build, arrays: Sequence[Array]) -> Array:
    graph, _, y = _graph(build, arrays)
    graph.output(y, "y")
    return run_unplanned(graph, feeds_of(arrays))["y"]


def backward(build: Build, arrays: Sequence[Array], wanted: Sequence[int]) -> tuple[Graph, dict[str, Array]]:
    """Returns a graph whose outputs are the gradients d0, d1 ... of the wanted inputs, and its feeds.

    The seed is an operator's output, so that its readers may overwrite it.
    """
    graph, inputs, y = _graph(build, arrays)
    dy = graph.input("dy", y.shape, y.dtype)
    gradients = engine.gradients(y, [inputs[i] for i in wanted], seed=-dy)
    for i, gradient in zip(wanted, gradients, strict=True):
        graph.output(gradient, f"d{i}")
    rng = np.random.default_rng(5)
    return graph, {**feeds_of(arrays), "dy": rng.standard_normal(y.shape).astype(y.dtype)}


def float_positions(arrays: Sequence[Array]) -> list[int]:
    """Returns the positions of arrays that hold floats."""
    return [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]


def check_gradient_modes(build: Build, arrays: Sequence[Array]) -> dict[str, Array]:
    """Returns all gradients; checks that every mode, and a graph of one gradient alone, give the same bits."""
    everything = float_positions(arrays)
    graph, feeds = backward(build, arrays, everything)
    wanted = run_unplanned(graph, feeds)
    check_modes(graph, feeds, wanted)
    for i in everything if len(everything) > 1 else ():
        alone, _ = backward(build, arrays, [i])
        assert_same(engine.compile(alone, optimise=0).run(feeds), {f"d{i}": wanted[f"d{i}"]})
    return wanted


def check_gradients(build: Build, arrays: Sequence[Array], step: float = 1e-5, rtol: float = 1e-6) -> None:
    """Checks all modes, and each gradient against central differences along two random directions.

    The arrays are of float64.
    """
    outputs = check_gradient_modes(build, arrays)
    _, feeds = backward(build, arrays, float_positions(arrays))
    rng = np.random.default_rng(7)
    for i in float_positions(arrays):
        for _ in range(2):
            along = rng.standard_normal(arrays[i].shape)
            ends = [[a + way * along if j == i else a for j, a in enumerate(arrays)] for way in (step, -step)]
            high, low = (_output(build, e) for e in ends)
            wanted = float(np.sum((high - low) / (2 * step) * -feeds["dy"]))
            got, scale = float(np.sum(outputs[f"d{i}"] * along)), float(np.sum(np.abs(outputs[f"d{i}"] * along)))
            assert abs(got - wanted) <= rtol * max(scale, 1.0), f"input {i}: {got}, but differences say {wanted}"
