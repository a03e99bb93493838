"""The report of a run in stages: each stage, all stages together, and one plan that knew all sizes from the start."""

from functools import reduce
from operator import or_
from typing import Any

from attrs import asdict, frozen

from engine.planning.placed import Optimisation
from engine.planning.planner import plan_graph
from engine.planning.reserved import BOUNDARY_BYTES
from engine.stages.cache import CacheStatistics
from engine.stages.partial_graph import whole_graph
from engine.stages.run import StagedExecutor
from engine.stages.stage import Stage
from engine.text.tables import in_columns, joined
from engine.text.units import format_bytes


@frozen(eq=False)
class StageCosts:
    """One stage of a run. Sizes in bytes: tensors alive before it, the arena after it, and its lower bound.

    No plan of this stage that keeps the tensors that are alive has an arena below the bound. `decides` names the
    tensors whose data fix the sizes of the next stage.
    """

    number: int
    operators: int
    first: str
    last: str
    alive_bytes: int
    arena_bytes: int
    lower_bound: int
    strategy: str
    decides: tuple[str, ...]


@frozen(eq=False)
class StageReport:
    """A run in stages. `arena_bytes`: the arena of all stages; `known_bytes`: that of one plan that knew all sizes.

    `loss` is the first divided by the second, less 1. The weights are those of all stages, each counted once.
    `cache` has the numbers of the plans that are kept. `optimisation` says what passes did to the network before it was
    cut into stages; empty where none ran.
    """

    model: str
    lengths: dict[str, int]
    stages: tuple[StageCosts, ...]
    arena_bytes: int
    known_bytes: int
    known_bound: int
    loss: float
    weights_bytes: int
    prepacked_bytes: int
    resident_weights_bytes: int
    cache: CacheStatistics
    optimisation: tuple[Optimisation, ...]

    def __repr__(self) -> str:
        """Returns one line; `print` shows the report."""
        return f"<stage report of {self.model!r}: {len(self.stages)} stages, arena {self.arena_bytes} B>"

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self)

    def text(self) -> str:
        """Returns a page for people."""
        lengths = ", ".join(f"{n}={v}" for n, v in self.lengths.items())
        rows = [_HEAD, *(_row(s) for s in self.stages)]
        cache = self.cache
        lines = [
            f"{self.model}{' with ' + lengths if lengths else ''}: {len(self.stages)} stage(s)",
            *(done.text for done in self.optimisation),
            *in_columns(rows),
            f"arena {format_bytes(self.arena_bytes)}; one plan that knew all sizes: {format_bytes(self.known_bytes)} "
            f"({self.loss:+.1%}; its lower bound: {format_bytes(self.known_bound)})",
            f"weights {format_bytes(self.weights_bytes)}, prepacked {format_bytes(self.prepacked_bytes)}, "
            f"resident weights {format_bytes(self.resident_weights_bytes)}",
            f"plans kept {cache.plans} of {cache.size}; {cache.hits} asked for were there, {cache.misses} were made",
        ]
        return joined(lines)

    def __str__(self) -> str:
        return self.text()


_HEAD = ("stage", "operators", "from", "to", "alive before", "arena", "lower bound", "decides next sizes")


def stage_report(executor: StagedExecutor) -> StageReport:
    """Returns the report of the last run."""
    stages = executor.stages
    template, start = executor.template, stages[0].before
    whole = whole_graph(template, start, template.graph.name, executor.history)
    weights = reduce(or_, (stage.plan.weight_memory for stage in stages))
    whole_plan = plan_graph(whole, executor.terms.options)
    arena = max(s.arena_bytes for s in stages)
    return StageReport(
        model=executor.template.graph.name,
        lengths=dict(start.bindings.lengths),
        stages=tuple(map(_costs, stages)),
        arena_bytes=arena,
        known_bytes=whole_plan.arena_bytes,
        known_bound=whole_plan.plan.lower_bound,
        loss=arena / whole_plan.arena_bytes - 1 if whole_plan.arena_bytes else 0.0,
        weights_bytes=weights.weights_bytes,
        prepacked_bytes=weights.prepacked_bytes,
        resident_weights_bytes=weights.resident_weights_bytes,
        cache=executor.cache.statistics,
        optimisation=executor.terms.optimisation,
    )


def _costs(stage: Stage) -> StageCosts:
    lowered = stage.plan.lowered
    operators = lowered.graph.operators
    alive = sum(lowered.values[v].spec.nbytes for v in lowered.inputs.values())
    return StageCosts(
        number=stage.number,
        operators=len(operators),
        first=operators[0].name if operators else "",
        last=operators[-1].name if operators else "",
        alive_bytes=alive,
        arena_bytes=stage.arena_bytes,
        lower_bound=stage.plan.plan.lower_bound - BOUNDARY_BYTES * len(stage.after.boundaries),
        strategy=stage.plan.plan.strategy,
        decides=tuple(stage.reads.values()),
    )


def _row(stage: StageCosts) -> tuple[str, ...]:
    sizes = (stage.alive_bytes, stage.arena_bytes, stage.lower_bound)
    decides = ", ".join(stage.decides)
    return str(stage.number), str(stage.operators), stage.first, stage.last, *map(format_bytes, sizes), decides
