"""ResNet-50 planned, run in three ways and compared: what `make demo` shows."""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from allocator.heaps import simulate
from allocator.heaps.events import of_chunks
from allocator.io.files import open_whole
from engine.cli.comparison import Comparison, compare_graph
from engine.cli.options.models import light_model, seeded_subject
from engine.cli.progress import add_quiet, progress_shown
from engine.execution_plan import ExecutionPlan
from engine.exporters import FORMATS
from engine.system.threads import limit_threads
from engine.text.tables import in_columns, joined
from engine.text.units import format_bytes
from engine.trace.buffers import buffers_of

RUNS = 5
TRACE = Path("out/resnet50_trace.json")


def main(argv: Sequence[str] = ()) -> int:
    """Prints the comparison and writes the trace. Returns 1 where outputs differ."""
    parser = ArgumentParser("demo", description=__doc__)
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    print("ResNet-50 from the onnx package, seeded random weights, batch 1, one thread\n")
    with progress_shown(arguments.quiet), limit_threads(1):
        return demonstrate(light_model("resnet50"), TRACE, RUNS)


def demonstrate(model: Path, trace: Path, runs: int) -> int:
    """Compares a model's runs on random weights and inputs; writes the static run as a page and for Perfetto."""
    subject = seeded_subject(model)
    for name, var in subject.graph.inputs.items():
        print(f"input {name}: {var.spec}")
    comparison = compare_graph(subject.graph, subject.feeds, runs=runs)
    print(comparison.text())
    print(_summary(comparison))
    trace.parent.mkdir(parents=True, exist_ok=True)
    page = trace.with_suffix(".html")
    for path, name in ((page, "html"), (trace, "chrome")):
        with open_whole(path) as out:
            FORMATS[name].write(comparison.plan.trace(), out)
    print(f"Wrote {page}: every byte over time, in any browser.")
    print(f"Wrote {trace}: open it at https://ui.perfetto.dev or in chrome://tracing.")
    return 0 if comparison.outputs_equal else 1


def memory_rows(plan: ExecutionPlan) -> list[tuple[str, str]]:
    """Returns what one run needs: in one arena, on PyTorch's allocator (simulated), and with no reuse at all."""
    report = plan.report()
    heap = simulate("pytorch", of_chunks(buffers_of(plan, "dynamic").chunks))
    proof = ", and no plan of these calls is smaller" if report.status == "optimal" else ""
    return [
        (f"one arena, planned before the run{proof}", format_bytes(report.arena_bytes)),
        ("reference counting on PyTorch's caching allocator, simulated", format_bytes(heap.peak_reserved)),
        ("no reuse: bytes of its own for every tensor", format_bytes(report.naive_bytes)),
    ]


def _summary(comparison: Comparison) -> str:
    name = comparison.plan.lowered.graph.name
    return joined((f"memory of {name}'s tensors in one run:", *in_columns(memory_rows(comparison.plan), {1}))) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
