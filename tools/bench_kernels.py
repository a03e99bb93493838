"""Times kernels alone: each operator of some networks once, in all its sizes, by the kernels of each back-end.

    python -m tools.bench_kernels [--networks resnet50 ...] [--operators nhwc_conv ...] [-o FILE]

One thread. Inputs are seeded normal numbers; a kernel finds them in the caches, as far as they fit. Seconds are of
processor time, the least of several turns, since the machine may be busy with other things.
"""

import json
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.passes.pipeline import optimise
from engine.planning.options import LEVELS
from engine.system.arrays import aligned_empty
from engine.system.threads import limit_threads
from ops.registry import find
from ops.schema.schema import Binding, Kernel, OpSchema, Signature, Thunk
from ops.schema.workspace import STEP, carve
from ops.tensor.spec import Array, TensorSpec, new_arrays
from tools.benchmark_tables import markdown
from tools.entry import run_script
from tools.run_networks import NETWORKS, loaded, network_file

OPERATORS = (
    *("nhwc_conv", "nhwc_max_pool", "nhwc_average_pool", "nhwc_lrn", "fused_conv", "conv"),
    *("fused_matmul", "matmul", "gemm", "softmax", "layer_norm", "fused_elementwise"),
)
BACKENDS = ("numba", "onednn", "numpy")
MOST_PLAIN = 3
"""Inputs of a convolution or product that adds no tensor."""
TURNS, SECONDS = 7, 0.005
"""Turns of a kernel, and how long one takes at least."""

Row = dict[str, Any]


@frozen(eq=False)
class Layer:
    """An operator in one size; how often the network has it."""

    schema: OpSchema
    signature: Signature
    count: int

    @property
    def text(self) -> str:
        """The operator, its shapes and its strides, in one line."""
        shapes = " ".join("x".join(map(str, s.shape)) or "1" for s in self.signature.inputs[:2])
        steps = self.signature.attrs.get("strides", ())
        group = self.signature.attrs.get("group", 1)
        stride = f" / {steps[-1]}" if steps and max(steps) > 1 else ""
        added = " + x" if len(self.signature.inputs) > MOST_PLAIN else ""
        return f"{self.schema.name} {shapes}{stride}{f' in {group} groups' if group > 1 else ''}{added}"


def layers(path: Path, operators: Sequence[str], level: int) -> list[Layer]:
    """Returns the sizes of these operators in a network, in the order of their first use."""
    graph = optimise(loaded(path)[0], level)
    wanted = [o for o in graph.operators if o.schema.name in operators]
    keys = [(o.schema.name, str(o.signature.inputs), str(dict(o.signature.attrs))) for o in wanted]
    counts, first = Counter(keys), dict(zip(reversed(keys), reversed(wanted), strict=True))
    return [Layer(first[k].schema, first[k].signature, n) for k, n in counts.items()]


def _values(spec: TensorSpec, seed: int) -> Array:
    """Returns seeded numbers, small enough that sums of many stay finite."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_normal(spec.shape) / max(spec.shape, default=1), spec.dtype)


def bind(kernel: Kernel, signature: Signature) -> Thunk:
    """Binds the kernel to new arrays, with its constants packed."""
    inputs = tuple(_values(s, i) for i, s in enumerate(signature.inputs))
    outputs = new_arrays(signature.outputs)
    temporaries = carve(aligned_empty(kernel.workspace(signature), STEP), *kernel.temporaries(signature))
    packed = kernel.pack(signature, {i: inputs[i] for i in signature.constants})
    return kernel.bind(Binding(signature, inputs, outputs, temporaries, packed))


def least(thunk: Thunk) -> float:
    """Returns the processor seconds of one call: the least average of some turns."""
    thunk()
    start = time.process_time()
    thunk()
    calls = max(1, int(SECONDS / max(time.process_time() - start, 1e-6)))
    times = []
    for _ in range(TURNS):
        start = time.process_time()
        for _ in range(calls):
            thunk()
        times.append((time.process_time() - start) / calls)
    return min(times)


def measure(number: int, layer: Layer, backends: Sequence[str]) -> Iterator[Row]:
    """Times a layer. Yields a row for each back-end that has a kernel."""
    schema, signature = layer.schema, layer.signature
    for backend in backends:
        kernel = next((k for k in schema.kernels if k.backend == backend and k.supports(signature)), None)
        if kernel is not None:
            flops, seconds = schema.cost(signature).flops, least(bind(kernel, signature))
            row = {
                "number": number,
                "layer": layer.text,
                "count": layer.count,
                "backend": backend,
                "kernel": kernel.name,
            }
            room = kernel.workspace(signature)
            yield row | {"seconds": seconds, "gflops": flops / seconds / 1e9, "workspace_bytes": room}


def table(rows: Sequence[Row], backends: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yields a line for each layer: milliseconds and GFLOP/s of each back-end; last, the sums over a network."""
    yield ["layer", "times", *(f"{b}, ms (GFLOP/s)" for b in backends)]
    for number in dict.fromkeys(r["number"] for r in rows):
        by_backend = {r["backend"]: r for r in rows if r["number"] == number}
        cells = (f"{r['seconds'] * 1e3:.3f} ({r['gflops']:.0f})" if r else "-" for r in map(by_backend.get, backends))
        first = next(iter(by_backend.values()))
        yield [first["layer"], str(first["count"]), *cells]
    sums = (sum(r["seconds"] * r["count"] for r in rows if r["backend"] == b) for b in backends)
    yield ["all", str(sum(r["count"] for r in rows if r["backend"] == backends[0])), *(f"{s * 1e3:.2f}" for s in sums)]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table for each network; writes rows as JSON where asked."""
    arguments = _arguments(argv)
    rows: list[Row] = []
    with progress_shown(arguments.quiet), limit_threads(1):
        for name in arguments.networks:
            layer_list = list(enumerate(layers(network_file(name), arguments.operators, arguments.optimise)))
            here = [
                row | {"network": name} for at in each("layer", layer_list) for row in measure(*at, arguments.backend)
            ]
            print(f"\n{NETWORKS[name].title}\n\n{markdown(table(here, arguments.backend))}")
            rows += here
            if arguments.output is not None:
                write_whole(arguments.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())
    return 0


def _arguments(argv: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=tuple(NETWORKS), metavar="NAME")
    parser.add_argument("--operators", nargs="+", default=OPERATORS, metavar="NAME", help="which operators")
    parser.add_argument("--backend", nargs="+", choices=BACKENDS, default=BACKENDS, help="whose kernels")
    parser.add_argument("--optimise", type=int, choices=LEVELS, default=max(LEVELS), help="of the networks")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    for name in arguments.operators:
        find(name)
    return arguments


if __name__ == "__main__":
    run_script(main)
