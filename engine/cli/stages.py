"""Networks whose sizes data decide while they run: the first stage planned, and runs in stages compared."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from engine import stages
from engine.api import compile_graph
from engine.cli.comparison import RunTimes, equal_outputs, interleaved
from engine.cli.options.common import plan_options
from engine.graph.bindings import Bindings
from engine.graph.graph import Graph
from engine.planning.options import PlanOptions
from engine.stages.bind import input_shapes
from engine.text.screen import UNBOUNDED
from ops.tensor.spec import Array


def plan_first(graph: Graph, lengths: Mapping[str, int], arguments: Namespace) -> "stages.Stage":
    """Plans what is known before anything runs. Raises BudgetError."""
    executor = compile_graph(graph, budget=arguments.budget, **plan_options(arguments)).executor
    if not isinstance(executor, stages.StagedExecutor):
        raise TypeError("a graph of known sizes has no stages")
    return stages.first_stage(executor.template, Bindings(lengths, input_shapes(graph, lengths)), executor.terms)


def stage_data(stage: "stages.Stage") -> dict[str, Any]:
    """Returns what JSON has beside the report of a first stage: plain data with stable keys.

    Control flow whose shapes the run decides counts as one of the operators that are left.
    """
    decides = list(stage.reads.values())
    return {"stage": stage.number, "decides": decides, "operators_left": len(stage.after.tasks)}


def stage_text(data: Mapping[str, Any]) -> str:
    """Returns the same as a line."""
    decides = ", ".join(map(repr, data["decides"]))
    return (
        f"this is stage {data['stage']} alone: the data of {decides} decide what comes next ({data['operators_left']} "
        f"operators); `arenaplan run` plans that while it runs\n"
    )


@frozen(eq=False)
class StagedComparison:
    """The runs of a network that runs in stages; no run that was timed plans anything any more.

    `dynamic_peak_bytes` is what reference counting would have needed over all stages, without fragmentation.
    """

    story: "stages.StageReport"
    runs: RunTimes
    dynamic_peak_bytes: int

    @property
    def outputs_equal(self) -> bool:
        """Returns whether all runs gave the same bits."""
        return self.runs.outputs_equal

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        data = {"model": self.story.model, "dynamic_peak_bytes": self.dynamic_peak_bytes}
        return data | self.runs.to_json() | {"story": self.story.to_json()}

    def text(self, _: int = 0, __: int = UNBOUNDED) -> str:
        """Returns the measurements, then the report of the stages."""
        arena = f"the arena: {self.story.arena_bytes} B"
        return self.runs.text(f"dynamic peak over all stages: {self.dynamic_peak_bytes} B; {arena}") + str(self.story)


def compare_stages(
    graph: Graph,
    feeds: Mapping[str, Array],
    *,
    runs: int,
    budget: int | str = "",
    options: PlanOptions | None = None,
    recompute: bool = True,
) -> StagedComparison:
    """Runs static, dynamic and poison once each, then static and dynamic in turn, `runs` times. Raises BudgetError."""
    plan_options = options or PlanOptions()
    static = compile_graph(graph, budget=budget, recompute=recompute, **plan_options)
    dynamic = compile_graph(graph, mode="dynamic", **plan_options)
    outputs = static.run(feeds)
    others = dynamic.run(feeds), compile_graph(graph, debug="poison", **plan_options).run(feeds)
    times = interleaved(runs, lambda: static.run(feeds, copy=False), lambda: dynamic.run(feeds, copy=False))
    equal = all(equal_outputs(outputs, other) for other in others)
    runs_of = RunTimes(outputs, equal, *times)
    return StagedComparison(static.stage_report(), runs_of, static.trace("dynamic").facts.peak_bytes)
