"""What the order of operators costs: the arena as given, depth first and in the memory order, and what no order avoids.

    python -m tools.bench_order [NETWORK ...] [--markdown] [-o order.json]

A NETWORK is zoo:NAME?OPTIONS, train:NAME?OPTIONS (a step of training with momentum), late:NAME?OPTIONS (a step that
computes all gradients and then updates all weights) or light:NAME (of the onnx package); there is a list of its own.
Everything is planned with all judges, nothing is run. Arenas have values nested, "alive" is before that. Seconds are
those of one processor for finding the order, the kernels loaded.
"""

import json
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from allocator.io.files import write_whole
from allocator.progress import each
from engine import SGD, Graph, gradients, load_onnx, make_plan, train_step
from engine.cli.options.models import light_model
from engine.cli.progress import add_quiet, progress_shown
from engine.lower.lowering import lower
from engine.lower.order import GIVEN, MEMORY, arrange
from engine.models.zoo import PREFIX, zoo_graph
from engine.text.tables import in_columns
from tools.benchmark_tables import markdown, order_table
from tools.entry import run_script

TRAIN, LATE, LIGHT = "train:", "late:", "light:"
LEARNING_RATE = 0.01
NETWORKS = (
    *(f"{PREFIX}random_wired?wiring={i}" for i in range(3)),
    "zoo:random_wired?nodes=48",
    *("zoo:densenet121", "zoo:inception_v3", "zoo:inception_bn", "zoo:unet", "zoo:squeezenet", "zoo:resnet50"),
    *("zoo:mobilenet_v2", "zoo:minilm", "zoo:gpt2"),
    *("light:inception_v1", "light:shufflenet", "light:densenet121"),
    *("train:resnet18?batch=8", "train:resnet50?batch=8", "train:densenet121?batch=8", "train:inception_v3?batch=8"),
    *("late:resnet18?image=64", "late:resnet18?batch=8", "late:resnet50?batch=8", "late:minilm?batch=4"),
    *("train:unet?batch=2", "train:minilm?batch=4", "train:random_wired?batch=4"),
)


@frozen
class Row:
    """One network; bytes and seconds. `is_proved`: no order has fewer bytes alive at once."""

    network: str
    operators: int
    given_arena: int
    depth_first_arena: int
    memory_arena: int
    given_live: int
    memory_live: int
    bound: int
    is_proved: bool
    seconds: float


def measure(network: str) -> Row:
    """Plans a network in all orders."""
    graph = built(network)
    lowered = lower(graph)
    begin = time.process_time()
    ordering = arrange(lowered, MEMORY).ordering
    seconds = time.process_time() - begin
    file_order, depth_first, memory = (
        make_plan(graph, order=o, optimise=0).arena_bytes for o in (GIVEN, "depth_first", MEMORY)
    )
    live = ordering.given_bytes, ordering.chosen_bytes, ordering.bound
    return Row(network, len(graph.operators), file_order, depth_first, memory, *live, ordering.is_proved, seconds)


def built(network: str) -> Graph:
    """Builds the graph of a network, of its training step, or of a step that updates all weights at the end."""
    if network.startswith(LIGHT):
        return load_onnx(light_model(network.removeprefix(LIGHT)))
    if not network.startswith((TRAIN, LATE)):
        return zoo_graph(Path(network), {}, (), 0)
    graph = zoo_graph(Path(PREFIX + network.partition(":")[2]), {}, (), 0, fixed={"training": True})
    if network.startswith(TRAIN):
        return train_step(graph, graph.outputs["loss"], SGD(momentum=0.9)).graph
    weights = [v for v, parameter in graph.parameters.items() if parameter.trainable]
    for weight, gradient in zip(weights, gradients(graph.outputs["loss"], weights), strict=True):
        graph.assign(weight, weight - gradient * LEARNING_RATE)
    return graph


def main(argv: Sequence[str] | None = None) -> int:
    """Measures the networks and prints the table; writes it as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("networks", metavar="NETWORK", nargs="*", default=NETWORKS)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        arrange(lower(built("zoo:random_wired?image=64")), MEMORY)  # loads the kernels
        rows: list[dict[str, Any]] = [asdict(measure(name)) for name in each("network", arguments.networks)]
    print(markdown(order_table(rows)) if arguments.markdown else "\n".join(in_columns(list(order_table(rows)))))
    if arguments.output is not None:
        data = {"rows": rows}
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
