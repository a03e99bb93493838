"""Static planning against none, against dynamic allocators and TensorFlow Lite: the table of MegEngine's article.

    python tools/compare_plans.py [MODEL ...] [--batch 1,128] [--json FILE] [--chart FILE.png]

A MODEL is zoo:NAME or an ONNX file that leaves its batch open. Everything is planned or simulated, nothing is run.
"""

import sys
from argparse import ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from allocator.progress import each
from engine.cli.charts import bar_chart
from engine.cli.experiment import add_experiment, write_rows
from engine.cli.main import Parser, guarded
from engine.cli.options.common import positive
from engine.cli.placements import Placements, place, table
from engine.cli.progress import add_quiet, progress_shown
from engine.models.batches import at_batch
from engine.models.zoo import PREFIX

MODELS = [Path(PREFIX + name) for name in ("vgg16", "resnet50", "mobilenet_v2")]
"""The networks of MegEngine's article."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table. Returns an exit code as that of `arenaplan`."""
    return guarded(lambda: _run(_parser().parse_args(argv)), "compare_plans")


def _run(arguments: Namespace) -> int:
    with progress_shown(arguments.quiet):
        rows = [row for model in each("model", arguments.models or MODELS) for row in _rows(model, arguments)]
    print(table(rows), end="")
    write_rows(arguments, rows, bar_chart)
    return 0


def _rows(model: Path, arguments: Namespace) -> list[Placements]:
    """Returns one row for each batch. A graph is held until the next one is there, so that both share their weights."""
    rows, shapes = [], dict(arguments.shape)
    for batch in each("batch", arguments.batch):
        graph = at_batch(model, batch, shapes, arguments.seed)
        rows.append(place(graph, model.name, batch))
    return rows


def _batches(text: str) -> tuple[int, ...]:
    batches = tuple(positive(part.strip()) for part in text.split(","))
    if len(set(batches)) < len(batches):
        raise ArgumentTypeError(f"{text!r} names a batch twice")
    return batches


def _parser() -> Parser:
    parser = Parser("compare_plans", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    names = " ".join(map(str, MODELS))
    parser.add_argument("models", metavar="MODEL", nargs="*", type=Path, help=f"default: {names}")
    parser.add_argument("--batch", metavar="N,N,...", type=_batches, default=(1, 128), help="default: 1,128")
    add_experiment(parser)
    add_quiet(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
