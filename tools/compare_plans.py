"""Static planning against none, against dynamic allocators and TensorFlow Lite: the table of MegEngine's article.

    python tools/compare_plans.py [MODEL ...] [--batch 1,128] [--json FILE] [--chart FILE.png]

A MODEL is zoo:NAME or an ONNX file that leaves its batch open. Everything is planned or simulated, nothing is run.
"""

import json
import sys
from argparse import ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from allocator.io.files import write_whole
from engine.cli.batches import at_batch
from engine.cli.charts import bar_chart
from engine.cli.common import count, named_shape, positive
from engine.cli.figures import to_png
from engine.cli.main import Parser, guarded
from engine.cli.placements import Placements, place, table
from engine.cli.zoo import PREFIX

MODELS = [Path(PREFIX + name) for name in ("vgg16", "resnet50", "mobilenet_v2")]
"""Those of MegEngine's article."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; an exit code as that of `arenaplan`."""
    return guarded(lambda: _run(_parser().parse_args(argv)), "compare_plans")


def _run(arguments: Namespace) -> int:
    rows = [row for model in arguments.models or MODELS for row in _rows(model, arguments)]
    print(table(rows), end="")
    if arguments.json is not None:
        told = {"rows": [row.to_json() for row in rows]}
        write_whole(arguments.json, (json.dumps(told, indent=1) + "\n").encode())
    if arguments.chart is not None:
        write_whole(arguments.chart, to_png(bar_chart(rows)))
    return 0


def _rows(model: Path, arguments: Namespace) -> list[Placements]:
    """One row a batch. The last graph is held until the next is there, so that the two share their weights."""
    rows, shapes = [], dict(arguments.shape)
    for batch in arguments.batch:
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
    parser.add_argument(
        "--shape",
        metavar="NAME=D,D,...",
        type=named_shape,
        action="append",
        default=[],
        help="shape of an input, such as x=1,3,64,64; each batch takes the place of its first dimension; repeatable",
    )
    parser.add_argument("--seed", metavar="N", type=count, default=0, help="of the weights of the zoo (default 0)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all numbers; sizes in bytes, times in seconds")
    parser.add_argument("--chart", metavar="FILE.png", type=Path, help="draw bars; needs matplotlib (extra `charts`)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
