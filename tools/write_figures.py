"""Writes the memory figures of README.md and docs/ into their pages, between marks, and draws their charts.

    python -m tools.write_figures [SECTION ...]

A section begins with `<!-- NAME -->` and ends with `<!-- end of NAME -->`; a chart is a file of its own. Networks are
planned and not run, except where measured memory or results in 16 bits are shown. What depends on the kernels
(workspaces, prepacked weights, errors of functions) is that of this machine. Times are in docs/benchmarks.md
(tools/write_benchmarks.py).
"""

import contextlib
import io
import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import engine
from allocator.cuts.problem import THROUGHPUT, TRAFFIC
from allocator.heaps import HEAPS, simulate
from allocator.heaps.events import of_chunks
from allocator.io.files import write_whole
from allocator.progress import each
from engine.api import make_plan
from engine.cli.main import main as arenaplan
from engine.cli.options.models import light_model, random_feeds, seeded_subject
from engine.cli.progress import add_quiet, progress_shown
from engine.graph.graph import Graph
from engine.lower.costs import graph_cost
from engine.models.batches import at_batch
from engine.models.named import NamedModel
from engine.models.zoo import PREFIX
from engine.notebook.cards import card_of
from engine.passes import optimise
from engine.passes.storage import cast_storage
from engine.pictures.matplotlib import to_png
from engine.planning.options import LEVELS, STORED
from engine.sweeps.chart import sweep_chart
from engine.sweeps.measures import PLACEMENTS, TRICKS
from engine.sweeps.rows import MODEL, Row
from engine.sweeps.table import Table
from engine.sweeps.task import BATCH
from engine.sweeps.tricks import MODE, MODES
from engine.sweeps.tricks_chart import BARS
from engine.text.units import format_bytes
from engine.trace.buffers import buffers_of
from engine.workers.names import HERE
from engine.zoo import NETWORKS
from tools import (
    bench_budgets,
    bench_nest,
    bench_remat,
    bench_workers,
    budgets_chart,
    function_errors,
    large_decoder,
)
from tools.benchmark_tables import markdown, replaced
from tools.demo import memory_rows
from tools.entry import run_script
from tools.write_benchmarks import machine

ROOT = Path(__file__).resolve().parent.parent
SHOWN = "plan zoo:resnet50 --top 4"
"""The command line whose output docs/report.md shows."""
TRICK_NETWORKS = "inception_bn", "resnet50", "vgg16", "mobilenet_v2", "densenet121", "unet", "bert_base"
TRICK_BATCH = 32
HEAP_NETWORKS = "resnet50", "vgg19", "densenet121", "inception_v2"
MEASURED_NETWORKS = "squeezenet", "inception_v2", "resnet50", "densenet121", "vgg19"
MEASURED = "--measure --weights random --threads 1 --pairs 1 --runs 1 --json"
STORED_NETWORKS = "mobilenet_v2", "resnet18"
BUDGETS, CHAIN_BUDGETS = (90, 70, 50, 40, 30, 20), (80, 60, 40, 30, 20)
"""Percent of the arena without a budget."""
ADVICE_NETWORKS = "mobilenet_v2", "resnet50", "unet", "densenet121", "minilm", "gpt2", "random_wired"
CARD_NETWORKS = "squeezenet", "resnet50", "densenet121"
SHARED_ORDER = "zoo:random_wired?nodes=100", "--order", "memory"


def first_figures() -> str:
    """Returns a line for each of the sizes that `make demo` prints last."""
    plan = make_plan(seeded_subject(light_model("resnet50")).graph)
    return markdown([["ResNet-50, memory of its tensors in one run", "size"], *memory_rows(plan)])


def shown_plan() -> str:
    """Returns what the command prints, as a block."""
    return f"```\n$ arenaplan {SHOWN}\n{_printed(*SHOWN.split())}```"


def _printed(*arguments: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        arenaplan([*arguments, "--quiet"])
    return printed.getvalue()


def zoo_table() -> str:
    """Returns a line for each network of the zoo, planned with default options at batch 1."""
    return markdown(_zoo_rows())


def _zoo_rows() -> Iterable[Sequence[str]]:
    yield [
        *("`zoo:`", "weights, MiB", "operators", "after passes", "arena, MiB", "lower bound, MiB"),
        "10^9 operations",
    ]
    for name in each("network", tuple(NETWORKS)):
        graph = at_batch(NamedModel(Path(PREFIX + name)), 1)
        report = make_plan(graph).report()
        sizes = (f"{size / 2**20:.2f}" for size in (report.arena_bytes, report.lower_bound))
        weights = f"{make_plan(graph, optimise=0).weights_bytes / 2**20:.2f}"
        work = f"{graph_cost(graph).flops / 1e9:.2f}"
        yield [f"`{name}`", weights, str(len(graph.operators)), str(report.operators), *sizes, work]


def placements_table() -> str:
    """Returns a line for each network and batch of the preset `placements`."""
    head = ["network", "batch", *_SIZES, "saved"]
    return markdown([head, *map(_placement, _placements().rows)])


def placements_chart() -> bytes:
    """Returns the same as bars; the file holds the table as text."""
    return to_png(sweep_chart(_placements()), description=placements_table())


@cache
def _placements() -> Table:
    return engine.sweep(preset=PLACEMENTS, on=HERE)


_SIZES = {
    "weights": "weights_bytes",
    "not optimised": "unoptimised_bytes",
    "PyTorch's allocator": "pytorch_bytes",
    "reference counting": "refcount_bytes",
    "TensorFlow Lite's": "tflite_bytes",
    "arena": "arena_bytes",
    "lower bound": "lower_bound",
}
"""Columns of the preset, by their names on the page."""


def _placement(row: Row) -> Sequence[str]:
    sizes = (format_bytes(row[column]) for column in _SIZES.values())
    return [row[MODEL].removeprefix(PREFIX), str(row[BATCH]), *sizes, f"{row['saved']:.1%}"]


def tricks_table() -> str:
    """Returns two lines for each network of the preset `tricks`: trained, and run forward."""
    return markdown(_trick_rows(TRICK_NETWORKS))


def _trick_rows(names: Sequence[str]) -> Iterable[Sequence[str]]:
    yield ["network", "mode", "operators", "weights and state", *(name for name, _ in BARS.values()), "both / none"]
    for row in (row for name in each("network", names) for row in _tricks(name).rows):
        sizes = (format_bytes(row[column]) for column in ("held_bytes", *BARS))
        name, mode = row[MODEL].removeprefix(PREFIX), MODES[row[MODE]]
        yield [name, mode, str(row["operators"]), *sizes, f"{row['both_over_none']:.1%}"]


def tricks_chart() -> bytes:
    """Returns the first two lines as bars, of MXNet's network; the file holds them as text."""
    first, *_ = TRICK_NETWORKS
    return to_png(sweep_chart(_tricks(first)), description=markdown(_trick_rows([first])))


@cache
def _tricks(name: str) -> Table:
    return engine.sweep([PREFIX + name], preset=TRICKS, vary={BATCH: [TRICK_BATCH]}, on=HERE)


def heaps_table() -> str:
    """Returns a line for each network: MiB of the arena, and what dynamic allocators would reserve for the same run."""
    return markdown(_heap_rows())


def _heap_rows() -> Iterable[Sequence[str]]:
    yield ["network", "arena", *HEAPS]
    for name in each("network", HEAP_NETWORKS):
        plan = make_plan(seeded_subject(light_model(name)).graph)
        events = of_chunks(buffers_of(plan, "dynamic").chunks)
        sizes = (plan.arena_bytes, *(simulate(heap, events).peak_reserved for heap in HEAPS))
        yield [name, *(f"{size / 2**20:.2f}" for size in sizes)]


def measured_table() -> str:
    """Returns a line for each network that is run in processes of its own: what was predicted and what was seen."""
    return markdown(_measured_rows())


def _measured_rows() -> Iterable[Sequence[str]]:
    yield ["network", *(f"{mode}: {what}" for mode in ("static", "dynamic") for what in _SEEN)]
    for name in each("network", MEASURED_NETWORKS):
        printed = json.loads(_printed("compare", str(light_model(name)), *MEASURED.split()))
        modes = (printed[mode] for mode in ("static", "dynamic"))
        yield [name, *(tell(mode) for mode in modes for tell in _SEEN.values())]


_SEEN: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "predicted": lambda mode: f"{mode['predicted_bytes'] / 2**20:.2f}",
    "measured": lambda mode: f"{mode['peak_bytes'] / 2**20:.2f}",
    "off by": lambda mode: f"{mode['difference']:.1%}",
    "faults of the first run": lambda mode: f"{mode['first_minor_faults']:.0f}",
}


def nested_table() -> str:
    """Returns a line for each network of `tools/bench_nest.py`: bytes of the arena without nesting and with it."""
    return markdown(_nested_rows())


def _nested_rows() -> Iterable[Sequence[str]]:
    yield ["network", "batch", "training", "arena without", "arena", "saved", "computed in place", "their bytes"]
    for case in each("network", bench_nest.CASES):
        name, batch, *train = case.split(":")
        graph = bench_nest.built(name, int(batch), bool(train))
        plain, nested = (make_plan(graph, nest=nest, optimise=0) for nest in (False, True))
        inside, before, after = nested.report().savings.nested, plain.arena_bytes, nested.arena_bytes
        sizes = f"{before:,}", f"{after:,}", f"{1 - after / before:.1%}", str(inside.tensors), f"{inside.bytes:,}"
        yield [name, batch, "yes" if train else "", *sizes]


def levels_table() -> str:
    """Returns a line for each level of passes: the arena of the U-Net, and with nothing nested."""
    graph = NETWORKS["unet"]()
    plans = [[make_plan(graph, optimise=level, nest=nest).arena_bytes for nest in (True, False)] for level in LEVELS]
    rows = [[str(level), *(f"{size / 2**20:.2f}" for size in sizes)] for level, sizes in enumerate(plans)]
    return markdown([["level", "arena, MiB", "with `--no-nest`, MiB"], *rows])


def stored_table() -> str:
    """Returns a line for each network and type of 16 bits, after passes of level 3."""
    return markdown(_stored_rows())


def _stored_rows() -> Iterable[Sequence[str]]:
    yield ["network", "`--store`", "arena, MiB", "without workspaces, MiB", "largest difference"]
    for name in each("network", STORED_NETWORKS):
        graph = optimise(NETWORKS[name](), 3)
        expected = _outputs(graph)
        for store in ("", *STORED):
            stored = cast_storage(graph, store) if store else graph
            report = make_plan(stored, optimise=0).report()
            sizes = (f"{size / 2**20:.2f}" for size in (report.arena_bytes, report.arena_without_workspace))
            yield [
                name,
                f"`{store}`" if store else "",
                *sizes,
                _difference(_outputs(stored), expected) if store else "",
            ]


def _outputs(graph: Graph) -> Mapping[str, Any]:
    return engine.compile(graph, optimise=0).run(random_feeds(graph, 0, {}))


def _difference(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Returns the largest difference of an output, as a share of its largest number."""
    shares = (np.abs(actual[name] - right).max() / np.abs(right).max() for name, right in expected.items())
    return f"{max(shares):.2%}"


def budgets_table() -> str:
    """Returns a line for each network of `tools/bench_remat.py`: what a budget costs in operations."""
    graphs = ((name, bench_remat.trained(name, TRICK_BATCH)) for name in each("network", bench_remat.DEFAULT))
    return markdown(_budget_rows(graphs, BUDGETS))


def chains_table() -> str:
    """Returns the same for chains of equal layers."""
    graphs = ((graph.name, graph) for graph in map(bench_remat.chain, bench_remat.LAYERS))
    return markdown(_budget_rows(graphs, CHAIN_BUDGETS))


def _budget_rows(graphs: Iterable[tuple[str, Graph]], percents: Sequence[int]) -> Iterable[Sequence[str]]:
    yield ["network", "arena, MiB", *(f"{percent} %" for percent in percents), "smallest arena that was found"]
    for name, graph in graphs:
        rows = list(bench_remat.rows_of(name, graph, percents))
        reached = [f"{row.share:.1%}" for row in rows if row.reached]
        last = rows[-1]
        least = "" if last.reached else f"{last.arena / last.plain:.0%} for {last.share:.0%}"
        missed = [""] * (len(percents) - len(reached))
        yield [name, f"{last.plain / 2**20:,.0f}", *reached, *missed, least]


def eviction_table() -> str:
    """Returns a line for each network and way of `tools/bench_budgets.py`, and a sentence on what is slower."""
    costs = _eviction_costs()
    return f"{markdown(bench_budgets.cost_table(costs))}\n\n{bench_budgets.verdict(costs)}"


def eviction_chart() -> bytes:
    """Returns the same as lines; the file holds the table as text."""
    return budgets_chart.budgets_chart(_eviction_costs(), eviction_table())


@cache
def _eviction_costs() -> list[bench_budgets.Cost]:
    return bench_budgets.measure_costs(tuple(bench_budgets.CASES), bench_budgets.PERCENTS)


def functions_table() -> str:
    """Returns a line for each function of one variable: its largest error over all of float32."""
    return markdown(function_errors.rows())


def advice_table() -> str:
    """Returns a line for each network: the other way to plan that saves most, as `explain` tells it."""
    return markdown(_advice_rows())


def _advice_rows() -> Iterable[Sequence[str]]:
    yield ["network", "operators", "arena", "what saves most"]
    for name in each("network", ADVICE_NETWORKS):
        plan = make_plan(NETWORKS[name]())
        best = max(plan.explain().advised.tried, key=lambda other: other.saves)
        advice = (
            f"`{best.how.removeprefix('Python: ')}`: {best.saves / plan.arena_bytes:.1%}"
            if best.saves > 0
            else "nothing"
        )
        yield [name, str(len(plan.lowered.graph.operators)), format_bytes(plan.arena_bytes), advice]


def cards_table() -> str:
    """Returns a line for each network: the size of its card in a notebook."""
    plans = [make_plan(NETWORKS[name]()) for name in each("network", CARD_NETWORKS)]
    rows = [[p.lowered.graph.name, str(len(p.lowered.graph.operators)), f"{len(card_of(p)) / 1e3:.0f}"] for p in plans]
    return markdown([["network", "operators", "card of a plan, kB"], *rows])


def workers_table() -> str:
    """Returns a line for each kind of workers: what it costs, and what two of them do. See `simulated_table`."""
    return f"{bench_workers.measured_table(_workers())}\n\nMeasured on {machine()}"


def simulated_table() -> str:
    """Returns what many workers do by the model; to be written together with what it was drawn from and its chart."""
    return bench_workers.simulated_table(_workers())


def simulated_chart() -> bytes:
    """Returns the same as lines; the file holds the table as text."""
    return bench_workers.simulated_chart(_workers())


@cache
def _workers() -> dict[str, Any]:
    return bench_workers.measured()


def shared_orders_table() -> str:
    """Returns a line for a wide network without workers, and one with two: its memory order and its arena."""
    return markdown(_shared_order_rows())


def _shared_order_rows() -> Iterable[Sequence[str]]:
    yield [f"`{SHARED_ORDER[0]}`", "memory order", "arena"]
    for workers in each("workers", ((), ("--workers", "2"))):
        printed = json.loads(_printed("plan", *SHARED_ORDER, *workers, "--json"))
        order, arena = (f"{size:,} B" for size in (printed["orderings"][-1]["chosen_bytes"], printed["arena_bytes"]))
        yield ["`--workers 2`" if workers else "without workers", order, arena]


SECTIONS: Mapping[str, tuple[str, Callable[[], str | bytes]]] = {
    "first figures": ("README.md", first_figures),
    "shown plan": ("docs/report.md", shown_plan),
    "zoo": ("docs/zoo.md", zoo_table),
    "placements": ("docs/compare_plans.md", placements_table),
    "placements chart": ("docs/images/compare_plans.png", placements_chart),
    "heaps": ("docs/heaps.md", heaps_table),
    "measured": ("docs/measure.md", measured_table),
    "tricks": ("docs/memory_cost.md", tricks_table),
    "tricks chart": ("docs/images/memory_cost.png", tricks_chart),
    "nested": ("docs/nesting.md", nested_table),
    "levels": ("docs/passes.md", levels_table),
    "stored": ("docs/kernels.md", stored_table),
    "functions": ("docs/kernels.md", functions_table),
    "budgets": ("docs/remat.md", budgets_table),
    "chains": ("docs/remat.md", chains_table),
    "eviction": ("docs/eviction.md", eviction_table),
    "eviction chart": ("docs/images/eviction.svg", eviction_chart),
    "advice": ("docs/explain.md", advice_table),
    "cards": ("docs/notebooks.md", cards_table),
    "workers": ("docs/cluster.md", workers_table),
    "many workers": ("docs/cluster.md", simulated_table),
    "many workers chart": ("docs/images/many_workers.png", simulated_chart),
    "shared orders": ("docs/cluster.md", shared_orders_table),
    "large decoder, traffic": ("docs/partition.md", partial(large_decoder.table, large_decoder.Size(), TRAFFIC)),
    "large decoder, throughput": ("docs/partition.md", partial(large_decoder.table, large_decoder.Size(), THROUGHPUT)),
}
"""The page or the chart of each section, and what makes its text or the bytes of its file."""


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the sections that are named, or all."""
    parser = ArgumentParser("write_figures", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("sections", metavar="SECTION", nargs="*", help=", ".join(SECTIONS))
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    if unknown := [section for section in arguments.sections if section not in SECTIONS]:
        parser.error(f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    with progress_shown(arguments.quiet):
        for section in each("section", tuple(arguments.sections or SECTIONS)):
            name, make = SECTIONS[section]
            figure, path = make(), ROOT / name
            page = figure if isinstance(figure, bytes) else replaced(path.read_text(), section, figure).encode()
            write_whole(path, page)
    return 0


if __name__ == "__main__":
    run_script(main)
