"""A network whose sizes data decide, run in three ways on the same data; all of them in stages."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from engine.api import PlanOptions, compile_graph
from engine.cli.comparison import Runs, equal_outputs, interleaved
from engine.graph.graph import Graph
from engine.stages.cost_report import StageReport
from ops.tensor.spec import Array


@frozen(eq=False)
class StagedComparison:
    """The runs of a network that runs in stages; no run that was timed plans anything any more.

    `dynamic_peak_bytes` is what reference counting would have needed over all stages, without fragmentation.
    """

    story: StageReport
    runs: Runs
    dynamic_peak_bytes: int

    @property
    def outputs_equal(self) -> bool:
        """Whether all runs gave the same bits."""
        return self.runs.outputs_equal

    def to_json(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        told = {"model": self.story.model, "dynamic_peak_bytes": self.dynamic_peak_bytes}
        return told | self.runs.to_json() | {"story": self.story.to_json()}

    def text(self, _: int = 0) -> str:
        """The measurements, then the story."""
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
    given = options or PlanOptions()
    static = compile_graph(graph, budget=budget, recompute=recompute, **given)
    dynamic = compile_graph(graph, mode="dynamic", **given)
    outputs = static.run(feeds)
    others = dynamic.run(feeds), compile_graph(graph, debug="poison", **given).run(feeds)
    times = interleaved(runs, lambda: static.run(feeds, copy=False), lambda: dynamic.run(feeds, copy=False))
    equal = all(equal_outputs(outputs, other) for other in others)
    runs_of = Runs(outputs, equal, static.packed_bytes, *times)
    return StagedComparison(static.stage_report(), runs_of, static.trace("dynamic").facts.peak_bytes)
