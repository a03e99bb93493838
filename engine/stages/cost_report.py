"""What a run in stages cost: each stage, all together, and beside a plan that knew all sizes from the start."""

from typing import Any

from attrs import asdict, frozen

from engine.planning.planner import plan_graph
from engine.planning.reserved import SEAM
from engine.stages.cache import CacheStatistics
from engine.stages.partial_graph import draft_whole
from engine.stages.run import StagedExecutor
from engine.stages.stage import Stage
from engine.text.tables import in_columns
from engine.text.units import format_bytes


@frozen(eq=False)
class StageStory:
    """One stage. Sizes in bytes: what was alive before it, the arena that it ended with, and its lower bound.

    No plan of this stage that leaves alone what is alive has an arena below the bound. `decides` are the tensors whose
    data fixed the sizes of the next stage.
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
class Story:
    """`arena_bytes`: what the stages needed in the end; `known_bytes`: the arena of one plan that knew all sizes.

    `loss` is the first over the second less 1. `cache` tells of the plans that are kept.
    """

    model: str
    lengths: dict[str, int]
    stages: tuple[StageStory, ...]
    arena_bytes: int
    known_bytes: int
    known_bound: int
    loss: float
    cache: CacheStatistics

    def to_json(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return asdict(self)

    def text(self) -> str:
        """A page for people."""
        told = ", ".join(f"{n}={v}" for n, v in self.lengths.items())
        rows = [_HEAD, *(_row(s) for s in self.stages)]
        cache = self.cache
        lines = [
            f"{self.model}{' with ' + told if told else ''}: {len(self.stages)} stage(s)",
            *in_columns(rows),
            f"arena {format_bytes(self.arena_bytes)}; one plan that knew all sizes: {format_bytes(self.known_bytes)} "
            f"({self.loss:+.1%}; its lower bound: {format_bytes(self.known_bound)})",
            f"plans kept {cache.plans} of {cache.size}; {cache.hits} asked for were there, {cache.misses} were made",
        ]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.text()


_HEAD = ("stage", "operators", "from", "to", "alive before", "arena", "lower bound", "decides next sizes")


def story(executor: StagedExecutor) -> Story:
    """The story of the last run."""
    stages = executor.stages
    template, start = executor.template, stages[0].before
    whole = draft_whole(template, start, template.graph.name, executor.history)
    known = plan_graph(whole, executor.terms.options)
    arena = max(s.arena_bytes for s in stages)
    return Story(
        model=executor.template.graph.name,
        lengths=dict(start.facts.lengths),
        stages=tuple(map(_told, stages)),
        arena_bytes=arena,
        known_bytes=known.arena_bytes,
        known_bound=known.plan.lower_bound,
        loss=arena / known.arena_bytes - 1 if known.arena_bytes else 0.0,
        cache=executor.cache.statistics,
    )


def _told(stage: Stage) -> StageStory:
    lowered = stage.plan.lowered
    operators = lowered.graph.operators
    alive = sum(lowered.values[v].spec.nbytes for v in lowered.inputs.values())
    return StageStory(
        number=stage.number,
        operators=len(operators),
        first=operators[0].name if operators else "",
        last=operators[-1].name if operators else "",
        alive_bytes=alive,
        arena_bytes=stage.arena_bytes,
        lower_bound=stage.plan.plan.lower_bound - SEAM * len(stage.after.seams),
        strategy=stage.plan.plan.strategy,
        decides=tuple(stage.reads.values()),
    )


def _row(stage: StageStory) -> tuple[str, ...]:
    sizes = (stage.alive_bytes, stage.arena_bytes, stage.lower_bound)
    decides = ", ".join(stage.decides)
    return str(stage.number), str(stage.operators), stage.first, stage.last, *map(format_bytes, sizes), decides
