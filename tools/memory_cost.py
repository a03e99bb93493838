"""What overwriting and sharing save, in training and forward only: MXNet's experiment on memory.

    python tools/memory_cost.py [NET ...] [--batch 32] [--json FILE] [--chart FILE.png]

A NET is zoo:NAME or NAME, or an ONNX file that leaves its batch open, which is only run forward, as a network without a
loss. Everything is planned, nothing is run.
"""

import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from allocator.progress import each
from engine.cli.experiment import add_experiment, write_rows
from engine.cli.main import Parser, guarded
from engine.cli.memory_cost import FORWARD, TRAINING, MemoryCost, memory_cost, table
from engine.cli.memory_cost_chart import cost_chart
from engine.cli.options.common import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.models.batches import at_batch, training_at_batch
from engine.models.named import NamedModel
from engine.models.zoo import PREFIX, can_train, is_zoo
from engine.zoo import NETWORKS

DEFAULT = Path("inception_bn")


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table. Returns an exit code as that of `arenaplan`."""
    return guarded(lambda: _run(_parser().parse_args(argv)), "memory_cost")


def _run(arguments: Namespace) -> int:
    with progress_shown(arguments.quiet):
        rows = [
            row for model in each("network", arguments.models or [DEFAULT]) for row in _rows(_named(model), arguments)
        ]
    print(table(rows), end="")
    write_rows(arguments, rows, cost_chart)
    return 0


def _rows(model: Path, arguments: Namespace) -> list[MemoryCost]:
    batch, shapes = arguments.batch, tuple(dict(arguments.shape).items())
    named = NamedModel(model, shapes=shapes, seed=arguments.seed)
    rows = []
    if is_zoo(model) and can_train(model):
        graph = training_at_batch(named, batch)
        rows.append(memory_cost(graph, model.name, batch, TRAINING))
    rows.append(memory_cost(at_batch(named, batch, is_forward=True), model.name, batch, FORWARD))
    return rows


def _named(model: Path) -> Path:
    """Returns zoo:NAME for a NAME of the zoo, and for a word that is no file: the error then lists the zoo's names."""
    name = str(model).partition("?")[0]
    is_name = name in NETWORKS or (name.isidentifier() and not model.exists())
    return Path(PREFIX + str(model)) if is_name else model


def _parser() -> Parser:
    parser = Parser("memory_cost", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("models", metavar="NET", nargs="*", type=Path, help=f"default: {DEFAULT}")
    parser.add_argument("--batch", metavar="N", type=positive, default=32, help="default: 32")
    add_experiment(parser)
    add_quiet(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
