"""What a budget costs in training: the static plan, in which operators run again, against eviction at run time.

    python -m tools.bench_budgets [NETWORK ...] [--budgets 100,90,80,70,60,50,40,30] [--rounds 5] [-o budgets.json]

Budgets are in percent of the arena of the plan without one. A number is all work (operations and bytes, as operators
estimate them) over the work of the same run without a budget. Eviction is simulated on a heap that takes the best fit,
as it is executed. Steps of smaller networks are executed, too: all ways in turn, with outputs compared to the bit.
`--rounds 0` only simulates.
"""

import json
import statistics
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, evolve, frozen

import engine
from allocator.errors import OutOfMemoryError, TooMuchWorkError
from allocator.eviction.evict import evict
from allocator.eviction.smallest import smallest_budget
from allocator.heaps.growing import BEST_FIT
from allocator.io.files import check_folder, write_whole
from allocator.progress import each
from allocator.recompute.work import RecomputeProblem
from engine import Executable, Graph
from engine.api import make_plan
from engine.cli.comparison import equal_outputs, interleaved
from engine.cli.progress import add_quiet, progress_shown, say
from engine.execution_plan import ExecutionPlan
from engine.lower.costs import lowered_cost
from engine.lower.work import work_in
from engine.planning.options import EVICTIONS
from engine.planning.unnested import unnested
from engine.text.errors import BudgetError
from engine.text.tables import in_columns
from engine.zoo import NETWORKS
from engine.zoo.gpt2 import SMALL, trained_decoder
from ops.tensor.spec import Array
from tools import bench_remat
from tools.entry import run_script

PLAN = "plan"
"""The way that runs operators again where a plan says so; the others are the heuristics of eviction."""
UNCUT = "dynamic"
"""Reference counting without a budget."""
WAYS = (PLAN, *EVICTIONS)
EXECUTED = (UNCUT, PLAN, "dtr", "coop")
PERCENTS, EXECUTED_PERCENTS = (100, 90, 80, 70, 60, 50, 40, 30), (70, 50)
ROUNDS = 5
OPTIONS: Mapping[str, Any] = {"nodes": bench_remat.NODES, "optimise": 0}


def trained(graph: Graph) -> Graph:
    """Returns a network as a step of gradient descent with momentum."""
    return engine.train_step(graph, graph.outputs["loss"], engine.SGD(0.01, 0.9)).graph


def _zoo(name: str, **options: int) -> Graph:
    return trained(NETWORKS[name](training=True, **options))


CASES: Mapping[str, Callable[[], Graph]] = {
    "resnet50": partial(_zoo, "resnet50", batch=32),
    "unet": partial(_zoo, "unet", batch=4),
    "minilm": partial(_zoo, "minilm", batch=32),
    "gpt2": lambda: trained(trained_decoder(SMALL, "gpt2", batch=8, tokens=256)),
    "random_wired": partial(_zoo, "random_wired", batch=32, nodes=16),
}
"""What is planned and simulated; nothing of it runs."""
EXECUTED_CASES: Mapping[str, Callable[[], Graph]] = {
    "chain32": partial(bench_remat.chain, 32),
    "unet": partial(_zoo, "unet", batch=4, image=64, width=8),
    "random_wired": partial(_zoo, "random_wired", batch=8, image=64, nodes=5),
}
"""What is executed: small enough for seconds, with little memory of parameters."""


@frozen
class Cost:
    """One way within a budget of `percent` of `plain_bytes`, the arena without one.

    `slowdown` is all work over that of one run of each operator; 0 where the budget is not met. The rows of the
    smallest budget that was found have `is_smallest`.
    """

    network: str
    way: str
    percent: float
    budget: int
    plain_bytes: int
    slowdown: float = 0.0
    runs_again: int = 0
    evictions: int = 0
    is_smallest: bool = False


@frozen
class StepTime:
    """The median, over the rounds, of the time of a step over that of the plan without a budget in the same round.

    `slowdown` is what work says, as in `Cost`; both are 0 where the budget is not met.
    """

    network: str
    way: str
    percent: int
    slowdown: float
    time: float
    plain_ms: float


@frozen(eq=False)
class Uncut:
    """A graph planned without a budget, and its work for runs that evict."""

    graph: Graph
    plan: ExecutionPlan
    work: RecomputeProblem

    @classmethod
    def of(cls, graph: Graph) -> "Uncut":
        """Plans a graph."""
        plan = make_plan(graph, **OPTIONS)
        lowered = unnested(plan.graph, plan.options, plan.lowered)
        return cls(graph, plan, work_in(lowered, overwrite=False))

    def planned(self, budget: int) -> dict[str, Any]:
        """Returns the numbers of the plan within a budget. Raises BudgetError."""
        plan = make_plan(self.graph, budget=budget, **OPTIONS)
        slowdown = lowered_cost(plan.lowered) / lowered_cost(self.plan.lowered)
        return {"slowdown": slowdown, "runs_again": sum(len(r.operators) for r in plan.recomputed)}

    def evicted(self, budget: int, way: str) -> dict[str, Any]:
        """Returns the numbers of a run that evicts. Raises OutOfMemoryError, TooMuchWorkError."""
        done = evict(self.work, budget, way, BEST_FIT.name)
        return {"slowdown": done.slowdown, "runs_again": done.reruns, "evictions": done.evictions}

    def within(self, budget: int, way: str) -> dict[str, Any]:
        """Returns the numbers of a way; {} where it does not keep within the budget."""
        try:
            return self.planned(budget) if way == PLAN else self.evicted(budget, way)
        except (BudgetError, OutOfMemoryError, TooMuchWorkError):
            return {}

    def smallest(self, way: str) -> tuple[int, dict[str, Any]]:
        """Returns the smallest budget that is found, and its numbers."""
        if way != PLAN:
            budget = smallest_budget(self.work, way, BEST_FIT.name).budget
            return budget, self.evicted(budget, way)
        try:
            least = make_plan(self.graph, budget=1, **OPTIONS).arena_bytes
        except BudgetError as error:
            least = error.least
        return least, self.planned(least)


def costs_of(name: str, graph: Graph, percents: Sequence[int], ways: Sequence[str] = WAYS) -> Iterator[Cost]:
    """Yields a row for each budget and way, and for the smallest budget that is found for each way."""
    uncut = Uncut.of(graph)
    plain = uncut.plan.arena_bytes
    rows = [
        Cost(name, way, percent, plain * percent // 100, plain, **uncut.within(plain * percent // 100, way))
        for percent in each("budget", tuple(percents), lambda percent: f"{percent} %")
        for way in ways
    ]
    yield from rows
    for way in each("smallest budget", tuple(ways)):
        budget, numbers = uncut.smallest(way)
        least = Cost(name, way, 100 * budget / plain, budget, plain, is_smallest=True, **numbers)
        met = [evolve(row, is_smallest=True) for row in rows if row.way == way and row.slowdown]
        yield min([least, *met], key=lambda row: row.budget)  # bisection may miss a budget that suffices


def times_of(name: str, graph: Graph, percents: Sequence[int], rounds: int) -> Iterator[StepTime]:
    """Trains a network in all ways in turn, from the same parameters on the same data.

    Raises SystemExit where a bit of an output differs from that of the plan without a budget.
    """
    plain = engine.compile(graph, **OPTIONS)
    feeds = feeds_of(graph)
    for percent in each("budget", tuple(percents), lambda percent: f"{percent} %"):
        budget = plain.plan.arena_bytes * percent // 100
        exes = {way: exe for way in EXECUTED for exe in _compiled(graph, budget, way)}
        plain.load(next(iter(exes.values())).parameters)
        wanted = plain.run(feeds)
        for way, exe in exes.items():
            if not equal_outputs(wanted, exe.run(feeds)):
                raise SystemExit(f"{name}: outputs of {way} differ from those of the plan without a budget")
        runs = [partial(exe.run, feeds, copy=False) for exe in (plain, *exes.values())]
        first, *others = interleaved(rounds, *runs)
        after = plain.parameters
        for (way, exe), seconds in zip(exes.items(), others, strict=True):
            if not equal_outputs(after, exe.parameters):
                raise SystemExit(f"{name}: parameters after training differ: {way}")
            ratio = statistics.median(s / p for s, p in zip(seconds, first, strict=True))
            yield StepTime(name, way, percent, _slowdown(exe, plain), ratio, 1e3 * statistics.median(first))
        for way in EXECUTED:
            if way not in exes:
                yield StepTime(name, way, percent, 0.0, 0.0, 1e3 * statistics.median(first))


def _compiled(graph: Graph, budget: int, way: str) -> Iterator[Executable]:
    """Yields what runs in a way; nothing where it does not keep within the budget."""
    mode: dict[str, Any] = {} if way == PLAN else {"mode": "dynamic"}
    within: dict[str, Any] = {} if way == UNCUT else {"budget": budget}
    evicts: dict[str, Any] = {"evict": way} if way in EVICTIONS else {}
    try:
        yield engine.compile(graph, **mode, **within, **evicts, **OPTIONS)
    except BudgetError:
        return


def _slowdown(exe: Executable, plain: Executable) -> float:
    eviction = getattr(exe.executor, "eviction", None)
    if eviction is not None:
        return float(eviction.slowdown)
    return lowered_cost(exe.plan.lowered) / lowered_cost(plain.plan.lowered)


def feeds_of(graph: Graph) -> dict[str, Array]:
    """Returns normally distributed inputs; labels are 0 or 1."""
    rng = np.random.default_rng(0)
    drawn = {n: rng.standard_normal(v.shape, dtype=np.float32) for n, v in graph.inputs.items()}
    return {n: a if graph.inputs[n].dtype.kind == "f" else (a > 0).astype(np.int64) for n, a in drawn.items()}


def cost_table(costs: Sequence[Cost]) -> list[list[str]]:
    """Returns a line for each network and way: the slow-down within each budget, and the smallest budget found."""
    percents = list(dict.fromkeys(c.percent for c in costs if not c.is_smallest))
    lines = [["network", "arena, MiB", "way", *(f"{p:.0f} %" for p in percents), "smallest budget"]]
    for network, way in dict.fromkeys((c.network, c.way) for c in costs):
        mine = [c for c in costs if (c.network, c.way) == (network, way)]
        cells = {c.percent: f"{c.slowdown:.3f}" for c in mine if c.slowdown and not c.is_smallest}
        least = [f"{c.percent:.0f} %, {c.slowdown:.2f}" for c in mine if c.is_smallest]
        head = [network, f"{mine[0].plain_bytes / 2**20:,.0f}", way]
        lines.append([*head, *(cells.get(p, "") for p in percents), *least])
    return lines


def time_table(times: Sequence[StepTime]) -> list[list[str]]:
    """Returns a line for each network and budget: the time of a step in each way, with what work says in brackets."""
    lines = [["network", "step, ms", "budget", *EXECUTED]]
    for network, percent in dict.fromkeys((t.network, t.percent) for t in times):
        mine = {t.way: t for t in times if (t.network, t.percent) == (network, percent)}
        cells = [f"{mine[w].time:.2f} ({mine[w].slowdown:.2f})" if mine[w].time else "" for w in EXECUTED]
        lines.append([network, f"{mine[UNCUT].plain_ms:.0f}", f"{percent} %", *cells])
    return lines


def slower(costs: Iterable[Cost]) -> list[str]:
    """Returns where the plan does more work than a run that evicts within the same budget, or has none there."""
    rows = [c for c in costs if not c.is_smallest]
    planned = {(c.network, c.percent): c for c in rows if c.way == PLAN}
    cases = []
    for cost in rows:
        plan = planned.get((cost.network, cost.percent), cost)
        if cost.slowdown and (not plan.slowdown or plan.slowdown > cost.slowdown):
            other = f"{plan.slowdown:.3f}" if plan.slowdown else "none"
            cases.append(f"{cost.network} within {cost.percent:.0f} %: {cost.way} {cost.slowdown:.3f}, plan {other}")
    return cases


def verdict(costs: Sequence[Cost]) -> str:
    """Returns a sentence on whether eviction ever beats the plan."""
    cases, least = slower(costs), [c for c in costs if c.is_smallest]
    planned = {c.network: c for c in least if c.way == PLAN}
    below = [c for c in least if c.network in planned and c.budget < planned[c.network].budget]
    sentence = (
        f"Runs that evict do less work than the plan here: {'; '.join(cases)}."
        if cases
        else "Within no budget of the table does a run that evicts do less work than the plan."
    )
    if not below:
        return f"{sentence} None keeps within less than the smallest budget of the plan."
    named = "; ".join(f"{c.network}, {c.way}: {c.percent:.0f} %, {c.slowdown:.2f} of the work" for c in below)
    return f"{sentence} These keep within less than the smallest budget of the plan: {named}."


def measure_costs(names: Sequence[str], percents: Sequence[int]) -> list[Cost]:
    """Returns the rows of networks, and prints each network's as it is done."""
    costs = list[Cost]()
    for name in each("network", tuple(names)):
        mine = list(costs_of(name, CASES[name](), percents))
        say("\n".join(in_columns(list(map(tuple, cost_table(mine))))))
        costs += mine
    return costs


def measure_times(rounds: int) -> list[StepTime]:
    """Returns the times of steps of all networks that are executed."""
    names = tuple(EXECUTED_CASES) if rounds else ()
    return [t for n in each("network", names) for t in times_of(n, EXECUTED_CASES[n](), EXECUTED_PERCENTS, rounds)]


def _network(text: str) -> str:
    if text not in CASES:
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(CASES)}")
    return text


def _percents(text: str) -> tuple[int, ...]:
    percents = tuple(int(word) for word in text.split(",") if word.isdecimal())
    if len(percents) != len(text.split(",")) or not all(0 < p <= 100 for p in percents):
        raise ArgumentTypeError(f"{text!r}: percents are whole numbers from 1 to 100, such as 90,70,50")
    return percents


def _rounds(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no number of rounds")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables; writes the rows as JSON where asked."""
    parser = ArgumentParser("bench_budgets", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", type=_network, default=tuple(CASES), help=", ".join(CASES))
    parser.add_argument("--budgets", type=_percents, default=PERCENTS, help="percent of the arena without a budget")
    parser.add_argument("--rounds", type=_rounds, default=ROUNDS, help="executed steps of each way (default 5)")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    if arguments.output is not None:
        check_folder(arguments.output)
    with progress_shown(arguments.quiet):
        costs = measure_costs(arguments.networks, arguments.budgets)
        times = measure_times(arguments.rounds)
    print("\n".join(in_columns(list(map(tuple, cost_table(costs))))), verdict(costs), sep="\n\n")
    if times:
        print("", *in_columns(list(map(tuple, time_table(times)))), sep="\n")
    if arguments.output is not None:
        data = {"costs": [asdict(c) for c in costs], "times": [asdict(t) for t in times]}
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
