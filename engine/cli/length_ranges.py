"""`arenaplan plan --length-ranges`: one plan for all lengths within ranges, and what it costs beside exact plans."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from engine import stages
from engine.api import compile_graph
from engine.cli.options.common import plan_options
from engine.execution_plan import ExecutionPlan, execution_plan
from engine.graph.graph import Graph
from engine.text.tables import in_columns, joined


@frozen(eq=False)
class LengthRangePlan:
    """The plan for the greatest lengths, and the costs of exact plans for some choices of lengths."""

    plan: ExecutionPlan
    ranges: Mapping[str, tuple[int, int]]
    costs: "stages.LengthRangeCosts"

    def to_json(self) -> dict[str, Any]:
        """Returns what JSON has beside the report: plain data with stable keys, sizes in bytes."""
        rows = [{"lengths": dict(c.lengths), "exact_bytes": c.exact_bytes, "factor": c.factor} for c in self.costs]
        ranges = {name: list(pair) for name, pair in self.ranges.items()}
        return {"bounds": ranges, "bound_costs": rows, "left_out_choices": self.costs.left_out}

    def text(self) -> str:
        """Returns a table with a line for each choice of lengths."""
        ranges = ", ".join(f"{name} from {low} to {high}" for name, (low, high) in self.ranges.items())
        names = tuple(self.ranges)
        rows = [(*names, "exact arena", "this one is")]
        for cost in self.costs:
            lengths = (str(cost.lengths[name]) for name in names)
            rows.append((*lengths, f"{cost.exact_bytes} B", f"{cost.factor:.2f} x"))
        head = f"one plan for {ranges}: {self.plan.arena_bytes} B; beside exact plans"
        lines = [head, *in_columns(rows, set(range(len(names) + 2)))]
        if self.costs.left_out:
            lines.append(f"left out, as the graph does not allow them: {self.costs.left_out} choice(s) of lengths")
        return joined(lines)


def plan_length_ranges(graph: Graph, arguments: Namespace) -> LengthRangePlan:
    """Plans for the greatest lengths; a length of --dim counts as a range of one. Raises OptionError, BudgetError."""
    ranges = {name: (length, length) for name, length in arguments.dim} | dict(arguments.length_ranges)
    executable = compile_graph(graph, length_ranges=ranges, budget=arguments.budget, **plan_options(arguments))
    executor = executable.executor
    if not isinstance(executor, stages.StagedExecutor) or not isinstance(
        executor.plan_first, stages.LengthRangePlanner
    ):
        raise TypeError("a graph that was compiled with ranges of lengths has a planner for them")
    return LengthRangePlan(execution_plan(executor.plan_first.plan), ranges, executable.length_range_costs())
