"""Times kernels of gradients against PyTorch's, one thread each, in turn, in one process.

python -m tools.bench_gradients [-o FILE]
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    sys.exit("bench_gradients compares with PyTorch, which is not installed: pip install -e '.[test-torch]'")

from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.executor.binding import kernel_state
from engine.system.threads import limit_threads
from ops.registry import find
from ops.schema.schema import Binding, Thunk
from ops.tensor.spec import Array, new_arrays, spec_of
from tools.entry import run_script

Case = tuple[str, list[Array], dict[str, Any], Callable[..., Any]]
_ATEN = torch.ops.aten
_REPEAT = 30


def bind(name: str, arrays: list[Array], attrs: dict[str, Any]) -> Thunk:
    """Returns the kernel of an operator, bound to these arrays and to new outputs."""
    schema = find(name)
    signature = schema.sign([spec_of(a) for a in arrays], attrs)
    kernel = schema.kernel(signature)
    outputs, temporaries = new_arrays(signature.outputs), new_arrays(kernel.temporaries(signature))
    return kernel.bind(Binding(signature, tuple(arrays), outputs, temporaries))


def slopes() -> list[Case]:
    """Returns cases of gradients of activations and of softmax, 1024 x 1024."""
    rng = np.random.default_rng(0)
    dy, x = (rng.normal(size=(1024, 1024)).astype(np.float32) for _ in range(2))
    limits = [np.array(v, np.float32) for v in (-1, 1)]
    share = (np.exp(x) / np.exp(x).sum(1, keepdims=True)).astype(np.float32)
    single = torch.float32
    return [
        ("relu_gradient", [dy, x], {}, lambda d, x: _ATEN.threshold_backward(d, x, 0)),
        ("leaky_relu_gradient", [dy, x], {}, lambda d, x: _ATEN.leaky_relu_backward(d, x, 0.01, False)),
        ("clip_gradient", [dy, x, *limits], {}, lambda d, x, *_: _ATEN.hardtanh_backward(d, x, -1, 1)),
        ("sigmoid_gradient", [dy, x], {}, _ATEN.sigmoid_backward),
        ("tanh_gradient", [dy, x], {}, _ATEN.tanh_backward),
        ("gelu_gradient", [dy, x], {}, _ATEN.gelu_backward),
        ("swish_gradient", [dy, x], {}, _ATEN.silu_backward),
        ("mish_gradient", [dy, x], {}, _ATEN.mish_backward),
        ("elu_gradient", [dy, x], {}, lambda d, x: _ATEN.elu_backward(d, 1, 1, 1, True, x)),
        ("softmax_gradient", [dy, share], {}, lambda d, y: _ATEN._softmax_backward_data(d, y, -1, single)),
        (
            "log_softmax_gradient",
            [dy, np.log(share)],
            {},
            lambda d, y: _ATEN._log_softmax_backward_data(d, y, -1, single),
        ),
    ]


def movement() -> list[Case]:
    """Returns cases of gradients of a table of 30,000 words, 256 wide, and of images enlarged from 64 x 64 twofold."""
    rng = np.random.default_rng(0)
    words, dy = rng.integers(0, 30_000, (32, 128)), rng.normal(size=(32, 128, 256)).astype(np.float32)
    large = rng.normal(size=(4, 32, 128, 128)).astype(np.float32)
    shape, sizes = (4, 32, 64, 64), (4, 32, 128, 128)
    linear = {"shape": shape, "sizes": sizes, "mode": "linear"}
    return [
        (
            "gather_gradient",
            [dy, words],
            {"shape": (30_000, 256)},
            lambda d, i: _ATEN.embedding_dense_backward(d, i, 30_000, -1, False),
        ),
        (
            "resize_gradient",
            [large],
            linear,
            lambda d: _ATEN.upsample_bilinear2d_backward(d, [128, 128], shape, False),
        ),
        (
            "resize_gradient",
            [large],
            {**linear, "mode": "nearest"},
            lambda d: _ATEN.upsample_nearest2d_backward(d, [128, 128], shape),
        ),
    ]


def measure(case: Case) -> dict[str, Any]:
    """Times both implementations in turn. Returns the least milliseconds of each."""
    name, arrays, attrs, theirs = case
    ours, tensors = bind(name, arrays, attrs), [torch.from_numpy(a) for a in arrays]
    times: tuple[list[float], list[float]] = ([], [])
    works: tuple[Callable[[], object], Callable[[], object]] = (ours, partial(theirs, *tensors))
    for _ in range(_REPEAT):
        for work, seconds in zip(works, times, strict=True):
            begin = time.perf_counter()
            work()
            seconds.append((time.perf_counter() - begin) * 1e3)
    label = f"{name} ({attrs['mode']})" if "mode" in attrs else name
    return {"operator": label, "arenaplan_ms": min(times[0]), "torch_ms": min(times[1])}


def main() -> None:
    """Measures all cases and prints the table; writes it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="a JSON file")
    add_quiet(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with progress_shown(arguments.quiet), kernel_state(), limit_threads(1):
        cases = each("operator", (*slopes(), *movement()), lambda case: case[0])
        rows = [measure(case) for case in cases]
    for row in rows:
        print(f"{row['operator']:28s} {row['arenaplan_ms']:8.2f} ms   torch {row['torch_ms']:8.2f} ms")
    if arguments.output:
        arguments.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    run_script(main)
