"""What overwriting and sharing save, in training and forward only: MXNet's experiment on memory.

    python tools/memory_cost.py [NET ...] [--batch 32] [--json FILE] [--chart FILE.png]

A NET is zoo:NAME or NAME, or an ONNX file that leaves its batch open, which is only run forward, as a network without a
loss. Everything is planned, nothing is run.
"""

import json
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from allocator.io.files import write_whole
from engine.cli.batches import at_batch, training_at_batch
from engine.cli.common import count, named_shape, positive
from engine.cli.figures import to_png
from engine.cli.main import Parser, guarded
from engine.cli.memory_cost import FORWARD, TRAINING, MemoryCost, memory_cost, table
from engine.cli.memory_cost_chart import cost_chart
from engine.cli.zoo import PREFIX, can_train, is_zoo
from engine.zoo import NETWORKS

DEFAULT = Path("inception_bn")


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; an exit code as that of `arenaplan`."""
    return guarded(lambda: _run(_parser().parse_args(argv)), "memory_cost")


def _run(arguments: Namespace) -> int:
    rows = [row for model in arguments.models or [DEFAULT] for row in _rows(_named(model), arguments)]
    print(table(rows), end="")
    if arguments.json is not None:
        told = {"rows": [row.to_json() for row in rows]}
        write_whole(arguments.json, (json.dumps(told, indent=1) + "\n").encode())
    if arguments.chart is not None:
        write_whole(arguments.chart, to_png(cost_chart(rows)))
    return 0


def _rows(model: Path, arguments: Namespace) -> list[MemoryCost]:
    batch, shapes, seed = arguments.batch, dict(arguments.shape), arguments.seed
    rows = []
    if is_zoo(model) and can_train(model):
        graph = training_at_batch(model, batch, shapes, seed)
        rows.append(memory_cost(graph, model.name, batch, TRAINING))
    rows.append(memory_cost(at_batch(model, batch, shapes, seed), model.name, batch, FORWARD))
    return rows


def _named(model: Path) -> Path:
    """zoo:NAME for a NAME of the zoo."""
    return Path(PREFIX + str(model)) if str(model).partition("?")[0] in NETWORKS else model


def _parser() -> Parser:
    parser = Parser("memory_cost", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("models", metavar="NET", nargs="*", type=Path, help=f"default: {DEFAULT}")
    parser.add_argument("--batch", metavar="N", type=positive, default=32, help="default: 32")
    parser.add_argument(
        "--shape",
        metavar="NAME=D,D,...",
        type=named_shape,
        action="append",
        default=[],
        help="shape of an input, such as x=1,3,64,64; the batch takes the place of its first dimension; repeatable",
    )
    parser.add_argument("--seed", metavar="N", type=count, default=0, help="of the weights of the zoo (default 0)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all numbers; sizes in bytes")
    parser.add_argument("--chart", metavar="FILE.png", type=Path, help="draw bars; needs matplotlib (extra `charts`)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
