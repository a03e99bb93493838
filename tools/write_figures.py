"""Writes the memory figures of README.md and docs/ into their pages, between marks; nothing is run but plans.

    python -m tools.write_figures [SECTION ...]

A section begins with `<!-- NAME -->` and ends with `<!-- end of NAME -->`. What depends on the kernels (workspaces,
prepacked weights) is that of this machine; tools/write_benchmarks.py writes docs/benchmarks.md, which has times.
"""

import contextlib
import io
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from allocator.heaps import HEAPS, simulate
from allocator.heaps.events import of_chunks
from allocator.io.files import write_whole
from allocator.progress import each
from engine.api import make_plan
from engine.cli.batches import at_batch, training_at_batch
from engine.cli.main import main as arenaplan
from engine.cli.memory_cost import FORWARD, TRAINING, TRICKS, memory_cost
from engine.cli.options.models import light_model
from engine.cli.options.zoo import PREFIX
from engine.cli.placements import Placements, place
from engine.cli.progress import add_quiet, progress_shown
from engine.lower.costs import graph_cost
from engine.onnx.load import load_onnx
from engine.text.units import format_bytes
from engine.trace.buffers import buffers_of
from engine.zoo import NETWORKS
from tools.benchmark_tables import markdown, replaced
from tools.compare_plans import MODELS

ROOT = Path(__file__).resolve().parent.parent
SHOWN = "plan zoo:resnet50 --top 4"
"""The command line whose output README.md shows."""
BATCHES = 1, 128
TRICK_NETWORKS = "inception_bn", "resnet50", "vgg16", "mobilenet_v2", "densenet121", "unet", "bert_base"
TRICK_BATCH = 32
HEAP_NETWORKS = "resnet50", "vgg19", "densenet121", "inception_v2"


def shown_plan() -> str:
    """Returns what the command prints, as a block."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        arenaplan([*SHOWN.split(), "--quiet"])
    return f"```\n$ arenaplan {SHOWN}\n{printed.getvalue()}```"


def zoo_table() -> str:
    """Returns a line for each network of the zoo, planned with default options at batch 1."""
    return markdown(_zoo_rows())


def _zoo_rows() -> Iterable[Sequence[str]]:
    yield [
        *("`zoo:`", "weights, MiB", "operators", "after passes", "arena, MiB", "lower bound, MiB"),
        "10^9 operations",
    ]
    for name in each("network", tuple(NETWORKS)):
        graph = at_batch(Path(PREFIX + name), 1, {}, 0)
        report = make_plan(graph).report()
        sizes = (f"{size / 2**20:.2f}" for size in (report.arena_bytes, report.lower_bound))
        weights = f"{make_plan(graph, optimise=0).weights_bytes / 2**20:.2f}"
        work = f"{graph_cost(graph).flops / 1e9:.2f}"
        yield [f"`{name}`", weights, str(len(graph.operators)), str(report.operators), *sizes, work]


def placements_table() -> str:
    """Returns a line for each network and batch of `tools/compare_plans.py`."""
    cases = [(model, batch) for model in MODELS for batch in BATCHES]
    rows = [place(at_batch(m, b, {}, 0), m.name, b, repeats=1) for m, b in each("network", cases, str)]
    head = ["network", "batch", *_SIZES, "saved"]
    return markdown([head, *(_placement(row) for row in rows)])


_SIZES: Mapping[str, Callable[[Placements], int]] = {
    "weights": lambda row: row.weights_bytes,
    "not optimised": lambda row: row.unoptimised_bytes,
    "PyTorch's allocator": lambda row: row.reserved_bytes["pytorch"],
    "reference counting": lambda row: row.refcount_bytes,
    "TensorFlow Lite's": lambda row: row.tflite_bytes,
    "arena": lambda row: row.arena_bytes,
    "lower bound": lambda row: row.lower_bound,
}


def _placement(row: Placements) -> Sequence[str]:
    sizes = (format_bytes(tell(row)) for tell in _SIZES.values())
    name = row.model.removeprefix(PREFIX)
    return [name, str(row.batch), *sizes, f"{1 - row.arena_bytes / row.unoptimised_bytes:.1%}"]


def tricks_table() -> str:
    """Returns two lines for each network of `tools/memory_cost.py`: trained, and run forward."""
    return markdown(_trick_rows())


def _trick_rows() -> Iterable[Sequence[str]]:
    yield ["network", "mode", "operators", "weights and state", *TRICKS, "both / none"]
    for name, mode in each("network", [(n, m) for n in TRICK_NETWORKS for m in (TRAINING, FORWARD)], str):
        make = training_at_batch if mode == TRAINING else at_batch
        row = memory_cost(make(Path(PREFIX + name), TRICK_BATCH, {}, 0), name, TRICK_BATCH, mode)
        none, *_, both = row.internal_bytes.values()
        sizes = map(format_bytes, (row.held_bytes, *row.internal_bytes.values()))
        yield [name, mode, str(row.operators), *sizes, f"{both / none:.1%}"]


def heaps_table() -> str:
    """Returns a line for each network: MiB of the arena, and what dynamic allocators would reserve for the same run."""
    return markdown(_heap_rows())


def _heap_rows() -> Iterable[Sequence[str]]:
    yield ["network", "arena", *HEAPS]
    for name in each("network", HEAP_NETWORKS):
        plan = make_plan(load_onnx(light_model(name)))
        events = of_chunks(buffers_of(plan, "dynamic").chunks)
        sizes = (plan.arena_bytes, *(simulate(heap, events).peak_reserved for heap in HEAPS))
        yield [name, *(f"{size / 2**20:.2f}" for size in sizes)]


SECTIONS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "shown plan": ("README.md", shown_plan),
    "zoo": ("docs/zoo.md", zoo_table),
    "placements": ("docs/compare_plans.md", placements_table),
    "heaps": ("docs/heaps.md", heaps_table),
    "tricks": ("docs/memory_cost.md", tricks_table),
}
"""The page of each section, and what makes its text."""


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the sections that are named, or all."""
    parser = ArgumentParser("write_figures", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("sections", metavar="SECTION", nargs="*", help=", ".join(SECTIONS))
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        for section in each("section", tuple(arguments.sections or SECTIONS)):
            page, make = SECTIONS[section]
            text, path = make(), ROOT / page
            write_whole(path, replaced(path.read_text(), section, text).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
