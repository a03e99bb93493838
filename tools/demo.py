"""ResNet-50 planned, run in three ways and compared: what `make demo` shows."""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from allocator.io.files import open_whole
from engine.cli.comparison import Comparison, compare_graph
from engine.cli.options.models import light_model, seeded_subject
from engine.cli.progress import add_quiet, progress_shown
from engine.exporters import FORMATS
from engine.system.threads import limit_threads
from engine.text.units import format_bytes

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


def _summary(comparison: Comparison) -> str:
    report = comparison.report
    sizes = (report.naive_bytes, report.dynamic_peak_bytes, report.arena_bytes)
    naive, dynamic, static = map(format_bytes, sizes)
    return f"One arena of {static} instead of {dynamic} with reference counting and {naive} with no reuse at all.\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
