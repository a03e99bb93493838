"""Classes of values and instructions: equal layers are one class, and a class that is wrong is refused."""

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.lower.calls import Call
from engine.stages.classes import ClassFinder
from engine.stages.geometry import OtherChoiceError
from engine.stages.pattern import Pattern, make_pattern
from engine.zoo.encoder import EncoderSize, encoder
from ops.tensor.dims import Dim
from ops.tensor.errors import OpError
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.staged_executors import staged
from tests.helpers.graphs.symbolic_graphs import LENGTHS, feeds_of, symbolic
from tests.helpers.graphs.unplanned_run import assert_same

SMALL = EncoderSize(layers=3, width=24, heads=3, sequence="sequence", batch="batch")


def patterns(graph: Graph, lengths: dict[str, int], level: int = 0) -> tuple[Pattern, ...]:
    """Returns the pattern of the stage for some lengths, if it has one."""
    exe = engine.compile(graph, optimise=level)
    exe.run(feeds_of(graph, lengths, 0))
    executor = staged(exe)
    return make_pattern(executor.template, exe.plan.lowered, executor.terms.options) if len(exe.stages) == 1 else ()


def test_repeated_layers_have_the_classes_of_three() -> None:
    counts = set()
    for layers in (3, 8):
        (pattern,) = patterns(encoder(evolve(SMALL, layers=layers)), {"batch": 2, "sequence": 9}, 3)
        counts.add(len(pattern.classes.all))
    assert len(counts) == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), LENGTHS, LENGTHS)
def test_geometries_of_random_graphs_are_those_of_lowering(
    seed: int, first: dict[str, int], other: dict[str, int]
) -> None:
    graph = symbolic(seeded(seed), 6)
    try:
        (pattern,) = patterns(graph, first)
        shapes = {name: array.shape for name, array in feeds_of(graph, other, seed).items()}
        fit = pattern.fit({name: other[name] for name in graph.symbols}, shapes, {})
        lowered = engine.make_plan(engine.bind(graph, other), nest=False, optimise=0).lowered
    except (OpError, OtherChoiceError, engine.EngineError):
        reject()
    assert [(v.spec, v.layout) for v in lowered.values] == [(v.spec, v.layout) for v in fit.values]
    for instruction, call in zip(lowered.instructions, fit.calls, strict=True):
        if isinstance(instruction, Call):
            wanted, derived = instruction.signature, call.signature
            assert (wanted.inputs, wanted.outputs, wanted.constants) == (
                derived.inputs,
                derived.outputs,
                derived.constants,
            )


def test_values_that_are_wrongly_of_one_class_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wording: Any = ClassFinder._wording
    monkeypatch.setattr(ClassFinder, "_wording", lambda self, d: "any" if isinstance(d, Dim) else wording(self, d))
    graph = Graph("two lengths")
    for name, length in (("x", "n"), ("y", "m")):
        graph.output(ops.exp(graph.input(name, (length, 4))), f"exp {name}")
    (pattern,) = patterns(graph, {"n": 5, "m": 5})
    assert len(pattern.classes.all) == 1
    with pytest.raises(OtherChoiceError):
        pattern.fit({"n": 5, "m": 6}, {"x": (5, 4), "y": (6, 4)}, {})
    exe = engine.compile(graph, optimise=0)
    for n, m in ((5, 5), (6, 7), (4, 4), (3, 9)):
        fed = {"x": np.ones((n, 4), np.float32), "y": np.zeros((m, 4), np.float32)}
        assert_same(exe.run(fed), engine.compile(engine.bind(graph, {"n": n, "m": m}), optimise=0).run(fed))
