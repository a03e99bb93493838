"""A network whose sizes data decide, run in three ways on the same data; all of them in stages."""

import statistics
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from engine.cli.comparison import equal_outputs, interleaved, times_text
from engine.executable import PlanOptions, compile_graph
from engine.graph import Graph
from engine.stages.story import Story
from ops.spec import Array


@frozen(eq=False)
class StagedComparison:
    """Times are seconds of each run, taken in turn; no run plans anything any more.

    `dynamic_peak_bytes` is what reference counting would have needed over all stages, without fragmentation.
    """

    story: Story
    outputs: Mapping[str, Array]
    outputs_equal: bool
    dynamic_peak_bytes: int
    packed_bytes: int
    static_seconds: tuple[float, ...]
    dynamic_seconds: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data with stable keys; `*_seconds` are medians."""
        return {
            "model": self.story.model,
            "outputs_equal": self.outputs_equal,
            "dynamic_peak_bytes": self.dynamic_peak_bytes,
            "packed_bytes": self.packed_bytes,
            "runs": len(self.static_seconds),
            "static_seconds": statistics.median(self.static_seconds),
            "static_seconds_min": min(self.static_seconds),
            "dynamic_seconds": statistics.median(self.dynamic_seconds),
            "dynamic_seconds_min": min(self.dynamic_seconds),
            "story": self.story.to_json(),
        }

    def text(self, _: int = 0) -> str:
        """The measurements, then the story."""
        verdict = "equal to the bit" if self.outputs_equal else "DIFFERENT"
        lines = [
            f"outputs of the static, dynamic and poison runs ({len(self.outputs)}): {verdict}",
            times_text("static run", self.static_seconds),
            times_text("dynamic run", self.dynamic_seconds),
            f"dynamic peak over all stages: {self.dynamic_peak_bytes} B; the arena: {self.story.arena_bytes} B",
            f"constants packed for kernels: {self.packed_bytes} B, besides the constants",
        ]
        return "\n".join(lines) + f"\n\n{self.story}"


def compare_stages(
    graph: Graph, feeds: Mapping[str, Array], *, runs: int, budget: int | str = "", options: PlanOptions | None = None
) -> StagedComparison:
    """Runs static, dynamic and poison once each, then static and dynamic in turn, `runs` times. Raises BudgetError."""
    given = options or PlanOptions()
    static = compile_graph(graph, budget=budget, **given)
    dynamic = compile_graph(graph, mode="dynamic", **given)
    outputs = static.run(feeds)
    others = dynamic.run(feeds), compile_graph(graph, debug="poison", **given).run(feeds)
    times = interleaved(runs, lambda: static.run(feeds, copy=False), lambda: dynamic.run(feeds, copy=False))
    return StagedComparison(
        static.story(),
        outputs,
        all(equal_outputs(outputs, other) for other in others),
        max(e.live_bytes for e in static.trace("dynamic")),
        static.executor.packed_bytes,
        *times,
    )
