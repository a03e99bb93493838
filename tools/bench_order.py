"""What the order of operators costs: the arena as given, depth first and in the memory order, and what no order avoids.

    python -m tools.bench_order [NETWORK ...] [--markdown] [-o order.json]

A NETWORK is zoo:NAME?OPTIONS, train:NAME?OPTIONS (a step of training with momentum) or light:NAME (of the onnx
package); there is a list of its own. Everything is planned with all judges, nothing is run. Arenas have values nested,
"live" is before that. Seconds are those of finding the order, the kernels loaded.
"""

import json
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import asdict, frozen

from allocator.io.files import write_whole
from engine import SGD, Graph, load_onnx, make_plan, train_step
from engine.cli.models import light_model
from engine.cli.zoo import PREFIX, zoo_graph
from engine.lowering import lower
from engine.ordering import GIVEN, MEMORY, arrange
from engine.tables import in_columns
from tools.benchmark_tables import markdown

TRAIN, LIGHT = "train:", "light:"
NETWORKS = (
    *(f"{PREFIX}random_wired?wiring={i}" for i in range(3)),
    "zoo:random_wired?nodes=48",
    *("zoo:densenet121", "zoo:inception_v3", "zoo:inception_bn", "zoo:unet", "zoo:squeezenet", "zoo:resnet50"),
    *("zoo:mobilenet_v2", "zoo:minilm", "zoo:gpt2"),
    *("light:inception_v1", "light:shufflenet", "light:densenet121"),
    *("train:resnet18?batch=8", "train:resnet50?batch=8", "train:densenet121?batch=8", "train:inception_v3?batch=8"),
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
    begin = time.perf_counter()
    found = arrange(lowered, MEMORY).ordering
    seconds = time.perf_counter() - begin
    arenas = [make_plan(graph, order=order).arena_bytes for order in (GIVEN, "depth_first", MEMORY)]
    live = found.given_bytes, found.chosen_bytes, found.bound
    return Row(network, len(graph.operators), *arenas, *live, found.is_proved, seconds)


def built(network: str) -> Graph:
    """The graph of a network."""
    if network.startswith(LIGHT):
        return load_onnx(light_model(network.removeprefix(LIGHT)))
    if network.startswith(TRAIN):
        name = Path(PREFIX + network.removeprefix(TRAIN))
        graph = zoo_graph(name, {}, (), 0, fixed={"training": True})
        return train_step(graph, graph.outputs["loss"], SGD(momentum=0.9)).graph
    return zoo_graph(Path(network), {}, (), 0)


def table(rows: Iterable[Row]) -> Iterable[Sequence[str]]:
    """Bytes in MiB; arenas beside that of the given order."""
    yield (
        "network",
        "operators",
        "given",
        "depth first",
        "memory",
        "saved",
        "live",
        "in memory order",
        "any",
        "seconds",
    )
    for row in rows:
        arenas = row.given_arena, row.depth_first_arena, row.memory_arena
        live = row.given_live, row.memory_live
        bound = f"{_mib(row.bound)}{'*' if row.is_proved else ''}"
        saved = f"{1 - row.memory_arena / row.given_arena:.1%}"
        name = row.network.removeprefix(PREFIX)
        yield (name, str(row.operators), *map(_mib, arenas), saved, *map(_mib, live), bound, f"{row.seconds:.2f}")


def _mib(nbytes: int) -> str:
    return f"{nbytes / 2**20:.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints, writes."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("networks", metavar="NETWORK", nargs="*", default=NETWORKS)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args(argv)
    arrange(lower(built("zoo:random_wired?image=64")), MEMORY)  # loads the kernels
    rows = []
    for network in arguments.networks:
        print(network, file=sys.stderr, flush=True)
        rows.append(measure(network))
    print(markdown(table(rows)) if arguments.markdown else "\n".join(in_columns(list(table(rows)))))
    if arguments.output is not None:
        told = {"rows": [asdict(row) for row in rows]}
        write_whole(arguments.output, (json.dumps(told, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
