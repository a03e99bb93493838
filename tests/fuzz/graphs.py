"""Random graphs of the tests' own generators: every mode of every plan gives the bits of every other one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import engine
from allocator.errors import UnsupportedProblemError
from allocator.solvers import STRATEGIES
from engine import Executable, Graph
from engine.lower.backends import backends_of
from engine.lower.order import ORDERS
from engine.text.errors import BudgetError
from ops.schema.backends import ONEDNN
from ops.tensor.spec import Array
from tests.fuzz.base import GRAPHS, Kind, Tried, seed_text
from tests.fuzz.modes import WAYS, near, same_bits
from tests.helpers.graphs.concatenations import concat_graph
from tests.helpers.graphs.control_graphs import build_control
from tests.helpers.graphs.formula_graphs import build_formulas
from tests.helpers.graphs.random_graphs import Choose, build, seeded
from tests.helpers.graphs.symbolic_graphs import NAMES, feeds_of, symbolic
from tests.helpers.graphs.training_graphs import random_training
from tests.helpers.graphs.unplanned_run import random_feeds, run_unplanned

_BUILDERS: tuple[Callable[[Choose], Graph], ...] = (build, build, concat_graph, build_control, build_formulas)
BACKENDS = ("numpy", "numba", *(("onednn",) if ONEDNN in backends_of("auto") else ()))
_STEPS = 3
"""Steps of training that are compared."""


def attempt_graph(path: Path) -> Tried:
    """Compares all ways to run two plans of a graph, and without passes a run without a plan."""
    choose = _choices(path)
    graph = _BUILDERS[choose(len(_BUILDERS))](choose)
    kernels, feeds = kernel_options(choose), random_feeds(graph)
    wanted = engine.compile(graph, threads=1, **kernels).run(feeds)
    if kernels["optimise"] == 0 and kernels["backend"] == "numba" and not kernels["store"]:
        same_bits(run_unplanned(graph, feeds), wanted, what="a planned run")
    for _ in range(3):
        options = plan_options(choose, kernels)
        exe = planned(graph, options | WAYS[choose(len(WAYS))])
        if exe is not None:
            same_bits(wanted, exe.run(feeds), exe.run(feeds), what=options)
    return Tried("run")


def attempt_training(path: Path) -> Tried:
    """Compares outputs and parameters of some steps of training in all ways to run."""
    choose = _choices(path)
    seed, kernels = choose(1 << 30), kernel_options(choose) | {"store": ""}
    ways = [kernels, *(plan_options(choose, kernels) | WAYS[choose(len(WAYS))] for _ in range(2))]
    runs = [_trained(exe) for way in ways if (exe := planned(random_training(seeded(seed)), way)) is not None]
    for other in runs[1:]:
        same_bits(runs[0], other, what=ways)
    return Tried("run")


def _trained(exe: Executable) -> Mapping[str, Array]:
    results = [exe.run(random_feeds(exe.graph, step)) for step in range(_STEPS)]
    return {f"{name} {i}": array for i, result in enumerate(results) for name, array in result.items()} | exe.parameters


def attempt_lengths(path: Path) -> Tried:
    """Compares a graph with names for lengths, fed with some, with the graph that has numbers in their place."""
    choose = _choices(path)
    graph, kernels = symbolic(choose), kernel_options(choose) | {"store": ""}
    exe = engine.compile(graph, threads=1, **kernels)
    ranges = engine.compile(graph, threads=1, length_ranges=dict.fromkeys(graph.symbols, (1, 7)), **kernels)
    for _ in range(2):
        lengths = {name: 1 + choose(7) for name in NAMES}
        used = {name: n for name, n in lengths.items() if name in graph.symbols}
        feeds = feeds_of(graph, used, choose(100))
        bound = engine.compile(engine.bind(graph, used), threads=1, **kernels).run(feeds)
        wanted = exe.run(feeds)
        same_bits(wanted, exe.run(feeds), ranges.run(feeds), what=lengths)
        if kernels["optimise"] > 1:  # passes do more where they know numbers
            near(wanted, bound, what=lengths)
        else:
            same_bits(wanted, bound, what=lengths)
    return Tried("run")


def _choices(path: Path) -> Choose:
    return seeded(int(path.read_text()))


def kernel_options(choose: Choose) -> dict[str, Any]:
    """Draws the options that may change last bits."""
    backend = BACKENDS[choose(len(BACKENDS))]
    drawn: dict[str, Any] = {
        "optimise": choose(4),
        "backend": backend,
        "store": ("", "", "", "float16", "bfloat16")[choose(5)],
        "nodes": 50,
    }
    return drawn | ({"nest": False} if backend == "onednn" else {})


def plan_options(choose: Choose, kernels: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options with others that change no bit, according to docs/determinism.md."""
    drawn: dict[str, Any] = {
        "strategy": ("best", "best", *STRATEGIES)[choose(2 + len(STRATEGIES))],
        "order": tuple(ORDERS)[choose(len(ORDERS))],
        "alignment": (1, 16, 64, 256)[choose(4)],
        "padding": (0, 0, 5, 64)[choose(4)],
        "overwrite": choose(4) > 0,
        "reuse": choose(4) > 0,
        "nest": choose(3) > 0,
        "seed": choose(3),
    }
    return {**drawn, **kernels}


def planned(graph: Graph, options: Mapping[str, Any]) -> Executable | None:
    """Compiles a graph, half of the time within a budget that asks for more work; None where no plan can be made."""
    try:
        exe = engine.compile(graph, **options)
        if exe.arena_bytes % 128 or "parallel" in options:
            return exe
        return engine.compile(graph, **options, budget=max(1, exe.arena_bytes * 9 // 10))
    except (UnsupportedProblemError, BudgetError):
        return None


PROJECT_GRAPHS = Kind("graphs", GRAPHS, "seed", seed_text, attempt_graph)
TRAINING = Kind("training", GRAPHS, "seed", seed_text, attempt_training)
LENGTHS = Kind("lengths", GRAPHS, "seed", seed_text, attempt_lengths)
