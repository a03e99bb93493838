"""Runs a graph without a plan, operator by operator on arrays of their own, and compares other runs with that."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import engine
from engine import Graph, Operator, Var
from ops.schema.schema import evaluate
from ops.tensor.spec import Array

SERIAL: tuple[dict[str, Any], ...] = ({}, {"mode": "dynamic"}, {"debug": "poison"})
"""Options of the ways to run on one thread: one arena, reference counting, an arena whose dead bytes are watched."""
EVERY_MODE = (*SERIAL, {"parallel": "exact", "threads": 2})


def evaluated(operator: Operator, arrays: Sequence[Array]) -> Sequence[Array]:
    """Returns the outputs of an operator, computed alone."""
    return evaluate(operator.schema, *arrays, **operator.attrs)


def run_unplanned(
    graph: Graph,
    feeds: Mapping[str, Array],
    compute: Callable[[Operator, list[Array]], Sequence[Array]] = evaluated,
) -> dict[str, Array]:
    """Returns all outputs by name."""
    arrays: dict[Var, Array] = dict(graph.constants)
    arrays.update({var: feeds[name] for name, var in graph.inputs.items()})
    with np.errstate(all="ignore"):
        for operator in graph.operators:
            outputs = compute(operator, [arrays[v] for v in operator.inputs])
            arrays.update(zip(operator.outputs, outputs, strict=True))
    return {name: arrays[var] for name, var in graph.outputs.items()}


def random_feeds(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Returns seeded normal numbers for every input."""
    rng = np.random.default_rng(seed)
    return {n: np.asarray(rng.normal(size=v.shape)).astype(v.dtype) for n, v in graph.inputs.items()}


def assert_same(actual: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    """Checks that names and bits are equal."""
    assert list(actual) == list(wanted)
    for name, array in wanted.items():
        assert actual[name].shape == array.shape and actual[name].dtype == array.dtype
        assert np.ascontiguousarray(actual[name]).tobytes() == np.ascontiguousarray(array).tobytes(), name


def check_modes(
    graph: Graph,
    feeds: Mapping[str, Array],
    wanted: Mapping[str, Array],
    modes: Sequence[Mapping[str, Any]] = SERIAL,
    **options: Any,
) -> None:
    """Checks that every mode gives these bits."""
    for mode in modes:
        assert_same(engine.compile(graph, optimise=0, **options, **mode).run(feeds), wanted)


def run_modes(
    graph: Graph, feeds: Mapping[str, Array], modes: Sequence[Mapping[str, Any]] = SERIAL, **options: Any
) -> dict[str, Array]:
    """Returns the outputs of the first mode; checks that the others give the same bits."""
    outputs = engine.compile(graph, optimise=0, **options, **modes[0]).run(feeds)
    check_modes(graph, feeds, outputs, modes[1:], **options)
    return outputs
