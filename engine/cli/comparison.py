"""One network run in three ways on the same data: what each needs, how long it takes, and whether all agree."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, frozen

from allocator.progress import each
from engine.api import Executable, compile_graph
from engine.execution_plan import ExecutionPlan
from engine.executor.dynamic import DynamicExecutor
from engine.graph.graph import Graph
from engine.planning.options import PlanOptions
from engine.report.report import Report
from engine.text.errors import JudgeError
from engine.text.screen import UNBOUNDED
from ops.tensor.spec import Array


@frozen(eq=False)
class RunTimes:
    """Runs of one network on the same data. Times are seconds of each run, taken in turn."""

    outputs: Mapping[str, Array]
    outputs_equal: bool
    static_seconds: tuple[float, ...]
    dynamic_seconds: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys; `*_seconds` are medians."""
        return {
            "outputs_equal": self.outputs_equal,
            "runs": len(self.static_seconds),
            "static_seconds": statistics.median(self.static_seconds),
            "static_seconds_min": min(self.static_seconds),
            "dynamic_seconds": statistics.median(self.dynamic_seconds),
            "dynamic_seconds_min": min(self.dynamic_seconds),
        }

    def text(self, peak: str) -> str:
        """Returns a few lines, one of which has the peak of the dynamic run."""
        verdict = "equal to the bit" if self.outputs_equal else "DIFFERENT"
        lines = [
            f"outputs of the static, dynamic and poison runs ({len(self.outputs)}): {verdict}",
            times_text("static run", self.static_seconds),
            times_text("dynamic run", self.dynamic_seconds),
            peak,
        ]
        return "\n".join(lines) + "\n\n"


@frozen(eq=False)
class Comparison:
    """The runs of a network that is planned beforehand. The dynamic executor counted `measured_peak_bytes`."""

    plan: ExecutionPlan
    report: Report
    runs: RunTimes
    measured_peak_bytes: int

    @property
    def outputs_equal(self) -> bool:
        """Returns whether all runs gave the same bits."""
        return self.runs.outputs_equal

    def to_json(self) -> dict[str, Any]:
        """Returns the keys of the report, and the measurements."""
        return self.report.to_json() | {"measured_peak_bytes": self.measured_peak_bytes} | self.runs.to_json()

    def text(self, most: int = 10, width: int = UNBOUNDED) -> str:
        """Returns the measurements, then the report with the `most` largest tensors at the peak."""
        peak = f"dynamic peak, measured: {self.measured_peak_bytes} B, as predicted"
        for evicted in self.report.evicted:
            peak = f"dynamic peak within the budget: {self.measured_peak_bytes} B; {evicted.text}"
        return self.runs.text(peak) + self.report.text(most, width)


def compare_graph(
    graph: Graph,
    feeds: Mapping[str, Array],
    *,
    runs: int,
    budget: int | str = "",
    options: PlanOptions | None = None,
    recompute: bool = True,
    evict: str = "",
) -> Comparison:
    """Runs static, dynamic and poison once each, then static and dynamic in turn, `runs` times.

    With `evict`, a heuristic, the dynamic run keeps within the budget, too.
    Raises BudgetError, and JudgeError where the dynamic run or prepacked copies needed other bytes than the plan says.
    """
    plan_options = options or PlanOptions()
    static = compile_graph(graph, budget=budget, recompute=recompute, **plan_options)
    dynamic = (
        compile_graph(graph, mode="dynamic", budget=budget, evict=evict, **plan_options)
        if evict
        else evolve(static, executor=DynamicExecutor(static.plan))
    )
    outputs = static.run(feeds)
    equal = equal_outputs(outputs, dynamic.run(feeds)) and equal_outputs(
        outputs, _poisoned(graph, plan_options).run(feeds)
    )
    report, measured = evolve(static.report(), evicted=dynamic.report().evicted), _peak(dynamic)
    if not evict and measured != report.dynamic_peak_bytes:
        raise JudgeError(
            f"the dynamic run had {measured} bytes at its peak, not {report.dynamic_peak_bytes} as predicted"
        )
    if static.prepacked_bytes != report.prepacked_bytes:
        raise JudgeError(f"kernels packed {static.prepacked_bytes} bytes, not {report.prepacked_bytes} as predicted")
    times = interleaved(runs, lambda: static.run(feeds, copy=False), lambda: dynamic.run(feeds, copy=False))
    return Comparison(static.plan, report, RunTimes(outputs, equal, *times), measured)


def interleaved(runs: int, *functions: Callable[[], object]) -> list[tuple[float, ...]]:
    """Returns the seconds of each run of each function, called in turn so that all see the same machine."""
    rows = [tuple(seconds(function) for function in functions) for _ in each("run", range(runs), lambda _: "")]
    return list(zip(*rows, strict=True))


def seconds(function: Callable[[], object]) -> float:
    """Returns the wall-clock time of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def _poisoned(graph: Graph, options: PlanOptions) -> Executable:
    return compile_graph(graph, debug="poison", **options)


def _peak(executable: Executable) -> int:
    if not isinstance(executable.executor, DynamicExecutor):
        raise TypeError("only a dynamic run counts its peak")
    return executable.executor.peak_bytes


def equal_outputs(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> bool:
    """Returns whether names, shapes, dtypes and every bit are equal."""
    return list(ours) == list(theirs) and all(
        a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(ours.values(), theirs.values(), strict=True)
    )


def times_text(what: str, times: tuple[float, ...]) -> str:
    """Returns a line with the median and the least of some times, which are in seconds."""
    middle, least = (f"{t * 1e3:.2f} ms" for t in (statistics.median(times), min(times)))
    return f"{what + ':':<13}median {middle:>11}, least {least:>11}, of {len(times)}"
