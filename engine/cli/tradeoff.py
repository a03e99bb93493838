"""What running operators at once costs in bytes and gains in time: each policy against one operator after the other."""

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import asdict, evolve, frozen

from allocator.policies import POLICIES
from allocator.progress import each
from engine.api import Executable, compile_graph
from engine.cli.comparison import equal_outputs, interleaved
from engine.executor.parallel import ParallelExecutor
from engine.executor.static import StaticExecutor
from engine.graph.graph import Graph
from engine.planning.options import PlanOptions
from engine.report.parallelism import parallelism, predicted_seconds
from engine.system.threads import cpus, limit_threads
from engine.system.timing import Timing
from engine.text.screen import UNBOUNDED
from engine.text.tables import in_columns, joined
from ops.tensor.spec import Array

SEQUENCE = "sequence"
_HEAD: tuple[str, ...] = (
    *("policy", "arena", "of sequence", "at once", "by cost", "predicted", "measured", "time", "sequence"),
)
_REHEARSALS = 3
"""Timed runs of which each call's least time counts."""


@frozen(eq=False)
class PolicyCosts:
    """One policy: bytes, how many calls run at once on average, seconds of a run (medians), and what that gains.

    `predicted` and `measured` are speed-ups, the time of a run in sequence over that of a run by this policy.
    `sequence_seconds` is the median of the runs in sequence that took turns with those of this policy; `measured` is
    its ratio to `seconds`. `predicted` schedules the times that the calls took alone. `outputs_equal` is to the bit.
    """

    policy: str
    arena_bytes: int
    lower_bound: int
    parallelism_by_count: float
    parallelism_by_cost: float
    predicted: float
    measured: float
    seconds: float
    sequence_seconds: float
    outputs_equal: bool


@frozen(eq=False)
class TradeOff:
    """The results of the sequence first, then those of all policies."""

    model: str
    threads: int
    runs: int
    policies: tuple[PolicyCosts, ...]

    @property
    def outputs_equal(self) -> bool:
        """Returns whether all outputs are the same to the bit."""
        return all(p.outputs_equal for p in self.policies)

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self)

    def text(self, width: int = UNBOUNDED) -> str:
        """Returns a table."""
        verdict = "equal to the bit" if self.outputs_equal else "DIFFERENT"
        head = f"{self.model}: {self.threads} threads, medians of {self.runs} runs; outputs {verdict}"
        rows = [_HEAD, *(_row(p, self.policies[0].arena_bytes) for p in self.policies)]
        notes = (
            "at once, by cost: calls that can run at once on average, by their number and by their estimated cost",
            "predicted, measured: speed-up against the sequence, whose kernels may use all threads in BLAS",
            "time, sequence: medians of this policy and of the sequence, which ran in turn; measured is their ratio",
        )
        return joined((head, *in_columns(rows, set(range(1, len(_HEAD))), width), *notes))


def compare_policies(
    graph: Graph,
    feeds: Mapping[str, Array],
    *,
    runs: int,
    threads: int,
    budget: int | str = "",
    options: PlanOptions | None = None,
    recompute: bool = True,
) -> TradeOff:
    """Plans and runs a graph by each policy, in turn with the run in sequence.

    Raises BudgetError where a plan is above the budget, EngineError where threadpoolctl is not installed.
    """
    plan_options = options or PlanOptions()
    compiled = partial(compile_graph, graph, budget=budget, recompute=recompute)
    sequence = compiled(**plan_options)
    with limit_threads(min(threads, max(1, cpus() // threads))):  # what BLAS has when calls run at once: the same bits
        outputs = sequence.run(feeds)
    with limit_threads(threads):
        policies = [_measured(sequence, sequence, feeds, outputs, runs)]
        for name in each("policy", tuple(POLICIES)):
            exe = compiled(threads=threads, **(plan_options | PlanOptions(parallel=name)))
            policies.append(_measured(exe, sequence, feeds, outputs, runs))
    return TradeOff(graph.name, threads, runs, tuple(policies))


def _measured(
    exe: Executable, sequence: Executable, feeds: Mapping[str, Array], outputs: Mapping[str, Array], runs: int
) -> PolicyCosts:
    same = exe is sequence or equal_outputs(outputs, exe.run(feeds))
    at_once, timings = parallelism(exe.plan), _rehearse(exe, feeds)
    alone = sum(t.end - t.begin for t in timings)
    ours, theirs = interleaved(runs, lambda: exe.run(feeds, copy=False), lambda: sequence.run(feeds, copy=False))
    seconds = statistics.median(ours)
    sequence_seconds = seconds if exe is sequence else statistics.median(theirs)
    threads = exe.executor.threads if isinstance(exe.executor, ParallelExecutor) else 1
    return PolicyCosts(
        policy=exe.plan.schedule.policy or SEQUENCE,
        arena_bytes=exe.arena_bytes,
        lower_bound=exe.plan.plan.lower_bound,
        parallelism_by_count=at_once.by_count,
        parallelism_by_cost=at_once.by_cost,
        predicted=alone / max(predicted_seconds(exe.plan, timings, threads), 1e-9),
        measured=sequence_seconds / seconds,
        seconds=seconds,
        sequence_seconds=sequence_seconds,
        outputs_equal=same,
    )


def _rehearse(exe: Executable, feeds: Mapping[str, Array]) -> Sequence[Timing]:
    """Measures how long each call takes when nothing else runs."""
    if isinstance(exe.executor, ParallelExecutor):
        exe = evolve(exe, executor=StaticExecutor(exe.plan, exe.executor.arena))
    rehearsals = [{t.tick: t for t in exe.timed(feeds)[1]} for _ in range(_REHEARSALS)]
    return [min((r[tick] for r in rehearsals), key=lambda t: t.end - t.begin) for tick in rehearsals[0]]


def _row(policy: PolicyCosts, sequence_bytes: int) -> tuple[str, ...]:
    return (
        policy.policy,
        f"{policy.arena_bytes} B",
        f"{policy.arena_bytes / max(sequence_bytes, 1):.1%}",
        f"{policy.parallelism_by_count:.2f}",
        f"{policy.parallelism_by_cost:.2f}",
        f"{policy.predicted:.2f} x",
        f"{policy.measured:.2f} x",
        f"{policy.seconds * 1e3:.2f} ms",
        f"{policy.sequence_seconds * 1e3:.2f} ms",
    )
