"""What Python shows of a public object fits on a screen."""

import numpy as np
import pytest

import engine
import ops
from engine.graph.var import Var
from engine.zoo.squeezenet import squeezenet

SCREEN = 24 * 80


@pytest.mark.usefixtures("without_numbers")
def test_public_objects_of_a_network_fit_on_a_screen() -> None:
    graph = squeezenet(image=64)
    plan = engine.make_plan(graph)
    operator = max(graph.operators, key=lambda o: len(o.inputs))
    explained = (plan.explain(), plan.explain(tensor="x"), plan.explain(operator=operator.name))
    shown = (graph, graph.constants, plan, plan.report(), plan.trace(), *explained, operator, operator.schema)
    assert [type(o).__name__ for o in shown if len(repr(o)) > SCREEN] == []
    assert all(len(repr(o)) > SCREEN or graph.name in repr(o) for o in (graph, plan, plan.report(), plan.explain()))


def test_stages_of_a_run_fit_on_a_screen() -> None:
    graph = engine.Graph("staged")
    graph.output(ops.nonzero(graph.input("x", (8,))), "y")
    exe = engine.compile(graph)
    exe.run({"x": np.ones(8, np.float32)})
    assert len(exe.stages) == 2
    assert all(len(repr(o)) < SCREEN for o in (exe, exe.stages, exe.stage_report()))
    assert repr(exe).startswith("<executable of ") and repr(exe.stages[0]).startswith("<stage 1: ")


def test_an_operator_of_many_inputs_fits_on_a_screen() -> None:
    graph = engine.Graph()
    total: Var = ops.concat([graph.input(f"x{i}", (2,)) for i in range(200)])
    assert total.name in repr(graph.operators[0]) and "196 more" in repr(graph.operators[0])
