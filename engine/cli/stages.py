"""Commands for networks whose sizes data decide while they run: the first stage, and the story of all of them."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from engine.api import compile_graph
from engine.cli.options.common import plan_options
from engine.graph.bindings import Bindings
from engine.graph.graph import Graph
from engine.stages.bind import input_shapes
from engine.stages.run import StagedExecutor
from engine.stages.stage import Stage, first_stage


def plan_first(graph: Graph, lengths: Mapping[str, int], arguments: Namespace) -> Stage:
    """The plan of what is known before anything runs. Raises BudgetError."""
    executor = compile_graph(graph, budget=arguments.budget, **plan_options(arguments)).executor
    if not isinstance(executor, StagedExecutor):
        raise TypeError("a graph of known sizes has no stages")
    return first_stage(executor.template, Bindings(lengths, input_shapes(graph, lengths)), executor.terms)


def stage_data(stage: Stage) -> dict[str, Any]:
    """What there is to tell beside the report of a first stage: plain data with stable keys.

    Control flow whose shapes the run decides counts as one of the operators that are left.
    """
    decides = list(stage.reads.values())
    return {"stage": stage.number, "decides": decides, "operators_left": len(stage.after.tasks)}


def stage_text(told: Mapping[str, Any]) -> str:
    """The same as a line."""
    decides = ", ".join(map(repr, told["decides"]))
    return (
        f"this is stage {told['stage']} alone: the data of {decides} decide what comes next ({told['operators_left']} "
        f"operators); `arenaplan run` plans that while it runs\n"
    )
