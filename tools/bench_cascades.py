"""What cascades save and cost: bytes of the arena, operations and time, beside the run of whole images.

    python -m tools.bench_cascades [mobilenet_v2 ...] [--percents 10 15 30] [--runs 10] [--threads 1] [-o cascades.json]

Networks are those of images in the zoo, and those of tools/run_networks.py; for each whose name ends with _int8 there
is one with _codes, which reads the image as the codes that the first operator makes of it. With ":outside" behind the
name, images lie in an array of the caller, not in the arena. Both run in turn in one process, with the same threads;
the outputs are compared to the bit. `--runs 0` only plans. The last column has the operations that take as long as a
call more: what cascades add to the time beyond their operations, shared out to their calls.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, frozen

import engine
from allocator.io.files import write_whole
from allocator.progress import each
from engine import Executable, Graph
from engine.cli.progress import add_quiet, progress_shown, say
from engine.execution_plan import ExecutionPlan
from engine.lower.costs import graph_cost
from engine.onnx.file import read_model
from engine.onnx.load import load_onnx
from engine.text.tables import in_columns
from engine.zoo import IMAGE_NETWORKS
from ops.tensor.spec import Array, TensorSpec
from tools.entry import run_script
from tools.run_networks import NETWORKS, loaded, network_file

INT8, CODES, OUTSIDE = "_int8", "_codes", ":outside"
"""The ends of names: of a network in int8, of one that reads codes, of one whose images lie outside of the arena."""
CASES = (
    *("mobilenet_v2", f"mobilenet_v2{OUTSIDE}", f"mobilenet_v2{CODES}", f"mobilenet_v2{CODES}{OUTSIDE}"),
    *("efficientnet_b0", "resnet50", "vgg16", "unet", "densenet121", "yolo_nano"),
)
PERCENTS = (10, 15, 30)


@frozen
class Row:
    """One network with cascades that add at most `percent` percent of the work.

    `plain_bytes` is the arena of whole images, `share` what cascades add to all operations, `calls` how often kernels
    are called for one call without, `more_calls` how many are added. The times are the least processor times, of all
    threads; a time of 0 was not taken. `operations` are those of whole images.
    """

    network: str
    percent: int
    plain_bytes: int
    arena_bytes: int
    share: float
    cascades: int
    calls: float
    more_calls: int
    operations: int
    plan_seconds: float
    plain_run_ms: float
    run_ms: float

    @property
    def of_a_call(self) -> float:
        """The operations that take as long as a call more."""
        slower = self.run_ms / self.plain_run_ms - 1 - self.share if self.plain_run_ms else 0.0
        return slower * self.operations / max(self.more_calls, 1)


def _network(text: str) -> str:
    """Reads the name of a network. Raises ArgumentTypeError."""
    codes = (name.replace(INT8, CODES) for name in NETWORKS if name.endswith(INT8))
    names = dict.fromkeys((*IMAGE_NETWORKS, *NETWORKS, *codes))
    if text.removesuffix(OUTSIDE) not in names:
        raise argparse.ArgumentTypeError(f"{text!r} is no network of images; there are {', '.join(names)}")
    return text


def network(name: str) -> Graph:
    """Returns a network: that of the zoo where it has one of this name."""
    if name.endswith(CODES):
        return _reading_codes(network_file(name.replace(CODES, INT8)))
    return IMAGE_NETWORKS[name]() if name in IMAGE_NETWORKS else loaded(network_file(name))[0]


def _reading_codes(path: Path) -> Graph:
    """Returns the network of a file without the operator that makes codes of its image, which are the input then."""
    proto = read_model(path).proto
    (image,), nodes = proto.graph.input, proto.graph.node
    first = next(node for node in nodes if node.op_type == "QuantizeLinear" and node.input[0] == image.name)
    (zero,) = (entry for entry in proto.graph.initializer if entry.name == first.input[2])
    image.name, image.type.tensor_type.elem_type = first.output[0], zero.data_type
    nodes.remove(first)
    return load_onnx(proto)


def _calls(plan: ExecutionPlan) -> int:
    return len(plan.lowered.calls)


def processor_ms(work: Callable[[], object]) -> float:
    """Returns the milliseconds of processor time that work takes: other work on the machine hardly changes them."""
    start = time.process_time()
    work()
    return round(1e3 * (time.process_time() - start), 3)


def _run_times(plain: Executable, cut: Executable, runs: int) -> tuple[float, float]:
    """Returns the least processor milliseconds of both, in turn. Raises SystemExit where a bit of outputs differs."""
    feeds = {name: _image(v.spec) for name, v in plain.graph.inputs.items()}
    wanted, outputs = plain.run(feeds), cut.run(feeds)
    if not all(np.array_equal(outputs[name], array) for name, array in wanted.items()):
        raise SystemExit(f"{plain.graph.name}: outputs differ")
    pairs = [[processor_ms(partial(e.run, feeds)) for e in (plain, cut)] for _ in range(runs)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def _image(spec: TensorSpec) -> Array:
    rng = np.random.default_rng(0)
    if spec.dtype == np.float32:
        return rng.standard_normal(spec.shape, np.float32)
    return rng.integers(0, 256, spec.shape).astype(spec.dtype)


def measure(name: str, percents: Iterable[int], runs: int, threads: int) -> Iterator[Row]:
    """Yields a row for each percentage of a network."""
    graph = network(name.removesuffix(OUTSIDE))
    options: Any = {"threads": threads, "caller_buffers": tuple(graph.inputs) if name.endswith(OUTSIDE) else ()}
    plain = engine.compile(graph, **options) if runs else None
    plain_plan = plain.plan if plain else engine.make_plan(graph, **options)
    for percent in percents:
        begin = time.perf_counter()
        cut: Any = engine.compile(graph, cascade=percent, **options) if runs else None
        plan = cut.plan if cut else engine.make_plan(graph, cascade=percent, **options)
        seconds = time.perf_counter() - begin
        cascades = [cascaded for done in plan.optimisation for cascaded in done.cascades]
        times = _run_times(plain, cut, runs) if plain else (0.0, 0.0)
        yield Row(
            name,
            percent,
            plain_plan.arena_bytes,
            plan.arena_bytes,
            sum(each.share for each in cascades),
            sum(len(each.runs) for each in cascades),
            round(_calls(plan) / _calls(plain_plan), 2),
            _calls(plan) - _calls(plain_plan),
            graph_cost(plain_plan.graph).flops,
            round(seconds, 1),
            *times,
        )


def show(rows: Iterable[Row]) -> str:
    """Returns the rows as a table."""
    head = (
        "network",
        "at most",
        "arena without",
        "arena",
        "more operations",
        "cascades",
        "calls",
        "run ms",
        "with",
        "a call",
    )
    texts = [
        (
            row.network,
            f"{row.percent} %",
            f"{row.plain_bytes:,}",
            f"{row.arena_bytes:,}",
            f"{row.share:.1%}",
            str(row.cascades),
            f"x {row.calls:.1f}",
            f"{row.plain_run_ms:.1f}",
            f"{row.run_ms:.1f}",
            f"{row.of_a_call:,.0f}",
        )
        for row in rows
    ]
    return "\n".join(in_columns([head, *texts], right=range(1, len(head))))


def main() -> None:
    """Prints the table; writes it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "networks", nargs="*", type=_network, default=CASES, help="of the zoo, or of tools/run_networks.py"
    )
    parser.add_argument("--percents", type=int, nargs="+", default=PERCENTS)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    args = parser.parse_args()
    rows: list[Row] = []
    with progress_shown(args.quiet):
        for name in each("network", tuple(args.networks)):
            for row in measure(name, args.percents, args.runs, args.threads):
                rows.append(row)
                say(show(rows[-1:]))
    print(show(rows))
    if args.output:
        write_whole(args.output, (json.dumps({"rows": [asdict(row) for row in rows]}, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
