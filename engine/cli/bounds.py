"""`arenaplan plan --bounds`: one plan for all lengths up to a bound, and what it costs beside exact ones."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from engine.api import compile_graph
from engine.cli.options.common import plan_options
from engine.execution_plan import ExecutionPlan, execution_plan
from engine.graph.graph import Graph
from engine.stages.bounded import BoundCosts, BoundedPlanner
from engine.stages.run import StagedExecutor
from engine.text.tables import in_columns


@frozen(eq=False)
class Bounded:
    """The plan for the greatest lengths, and exact plans at some choices of lengths beside it."""

    plan: ExecutionPlan
    bounds: Mapping[str, tuple[int, int]]
    costs: BoundCosts

    def to_json(self) -> dict[str, Any]:
        """What comes beside the report: plain data with stable keys, sizes in bytes."""
        rows = [{"lengths": dict(c.lengths), "exact_bytes": c.exact_bytes, "factor": c.factor} for c in self.costs]
        bounds = {name: list(pair) for name, pair in self.bounds.items()}
        return {"bounds": bounds, "bound_costs": rows, "left_out_choices": self.costs.left_out}

    def text(self) -> str:
        """A line for each choice."""
        told = ", ".join(f"{name} from {low} to {high}" for name, (low, high) in self.bounds.items())
        names = tuple(self.bounds)
        rows = [(*names, "exact arena", "this one is")]
        for cost in self.costs:
            lengths = (str(cost.lengths[name]) for name in names)
            rows.append((*lengths, f"{cost.exact_bytes} B", f"{cost.factor:.2f} x"))
        head = f"one plan for {told}: {self.plan.arena_bytes} B; beside exact plans"
        lines = [head, *in_columns(rows, set(range(len(names) + 2)))]
        if self.costs.left_out:
            lines.append(f"left out, as the graph does not allow them: {self.costs.left_out} choice(s) of lengths")
        return "".join(f"{line}\n" for line in lines)


def plan_bounded(graph: Graph, arguments: Namespace) -> Bounded:
    """Plans for the greatest lengths; what --dim says is one of its own. Raises OptionError, BudgetError."""
    bounds = {name: (length, length) for name, length in arguments.dim} | dict(arguments.bounds)
    executable = compile_graph(graph, bounds=bounds, budget=arguments.budget, **plan_options(arguments))
    executor = executable.executor
    if not isinstance(executor, StagedExecutor) or not isinstance(executor.plan_first, BoundedPlanner):
        raise TypeError("a graph that was compiled with bounds has a planner for them")
    return Bounded(execution_plan(executor.plan_first.plan), bounds, executable.bound_costs())
