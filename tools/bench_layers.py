"""Times the backward pass of layers (convolution, pooling, normalization, loss) against PyTorch's, in one process.

One thread each, in turn, the least processor time of several runs: the machine may be busy with other things.

python -m tools.bench_layers [-o FILE]
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    sys.exit("bench_layers compares with PyTorch, which is not installed: pip install -e '.[test-torch]'")

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown, say
from engine.executor.binding import kernel_state
from engine.system.threads import limit_threads
from ops.registry import find
from ops.schema.schema import Thunk
from ops.tensor.spec import Array, spec_of
from tools.bench_gradients import bind
from tools.entry import run_script

Call = tuple[str, list[Array], dict[str, Any]]
Case = tuple[str, list[Call], Callable[[], Any]]
_REPEAT = 7
_CONVOLUTIONS = {
    "conv 3x3, 64 of 56x56": (64, 56, 64, 3, 1, 1),
    "conv 3x3 / 2, 64 to 128 of 56x56": (64, 56, 128, 3, 2, 1),
    "conv 3x3, 256 of 14x14": (256, 14, 256, 3, 1, 1),
    "conv 3x3, 512 of 7x7": (512, 7, 512, 3, 1, 1),
    "conv 7x7 / 2, 3 to 64 of 112x112": (3, 112, 64, 7, 2, 1),
    "conv 1x1, 64 to 256 of 56x56": (64, 56, 256, 1, 1, 1),
    "depthwise 3x3, 64 of 56x56": (64, 56, 64, 3, 1, 64),
    "depthwise 3x3 / 2, 96 of 56x56": (96, 56, 96, 3, 2, 96),
}
"""Channels, size, filters, kernel, stride, groups; 8 images each."""


def normal(*shape: int) -> Array:
    """Returns seeded normal numbers in float32."""
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def convolutions() -> Iterator[Case]:
    """Yields two cases for each convolution: the gradients of its input and of its weight."""
    for name, (channels, size, filters, kernel, stride, group) in _CONVOLUTIONS.items():
        x, w, pad = normal(8, channels, size, size), normal(filters, channels // group, kernel, kernel), kernel // 2
        dy = normal(8, filters, *((size + 2 * pad - kernel) // stride + 1,) * 2)
        attrs = {"strides": (stride,) * 2, "pads": (pad,) * 4, "group": group}
        rest = {"output_padding": ((size + 2 * pad - kernel) % stride,) * 2}
        tensors = tuple(map(torch.from_numpy, (dy, x, w)))
        window = [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], group
        for which, call in (
            ("dx", ("conv_input_gradient", [dy, w], attrs | rest)),
            ("dw", ("conv_weight_gradient", [x, dy], attrs | {"kernel_shape": (kernel,) * 2})),
        ):
            mask = [which == "dx", which == "dw", False]
            yield f"{name}: {which}", [call], _convolution(tensors, window, mask)


def _convolution(tensors: tuple[Any, ...], window: tuple[Any, ...], mask: list[bool]) -> Callable[[], Any]:
    return lambda: torch.ops.aten.convolution_backward(*tensors, None, *window, mask)


def backward(function: Callable[..., Any], arrays: list[Array], dy: Array) -> Callable[[], Any]:
    """Runs a function of tensors forward in PyTorch. Returns a function that runs its backward pass by autograd."""
    tensors = [torch.from_numpy(a).requires_grad_() for a in arrays]
    y, seed = function(*tensors), torch.from_numpy(dy)
    return lambda: torch.autograd.grad(y, tensors, seed, retain_graph=True)


def others() -> Iterator[Case]:
    """Yields cases of batch and layer normalization, LRN, pooling and cross entropy."""
    functional = torch.nn.functional
    x, dy, c = normal(8, 64, 56, 56), normal(8, 64, 56, 56)[::-1].copy(), normal(64)
    statistics = [np.zeros_like(c), np.ones_like(c)]
    calls: list[Call] = [
        ("channel_sums", [dy, x, *statistics], {}),
        ("batch_norm_data_gradient", [dy, x, c, *statistics, c, c], {}),
    ]
    norm = backward(lambda x, s, b: functional.batch_norm(x, None, None, s, b, True), [x, c, c], dy)
    yield "batch norm, 64 of 56x56", calls, norm
    pool = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
    small = normal(8, 64, 28, 28)
    largest = backward(lambda x: functional.max_pool2d(x, 3, 2, 1), [x], small)
    yield "max pool 3x3 / 2, 64 of 56x56", [("max_pool_gradient", [small, x], pool)], largest
    mean = backward(lambda x: functional.avg_pool2d(x, 3, 2, 1), [x], small)
    yield "average pool 3x3 / 2, 64 of 56x56", [("spread_windows", [small], {**pool, "sizes": (56, 56)})], mean
    image = x[:, :, :28, :28].copy()
    local = backward(lambda x: functional.local_response_norm(x, 5), [image], image)
    yield "LRN of 5, 64 of 28x28", [("lrn_gradient", [image, image], {"size": 5})], local
    rows, scale = normal(1024, 768), normal(768)
    calls = [
        ("norm_scale_gradient", [rows, rows], {"axis": 1}),
        ("norm_data_gradient", [rows, rows, scale], {"axis": 1}),
    ]
    layer = backward(lambda x, s, b: functional.layer_norm(x, (768,), s, b), [rows, scale, scale], rows)
    yield "layer norm, 1024 rows of 768", calls, layer
    logits, labels = normal(512, 30522), np.arange(512)
    target = torch.from_numpy(labels)
    loss = backward(lambda x: functional.cross_entropy(x, target), [logits], np.ones((), np.float32))
    inputs = [logits, labels, np.ones((), np.float32)]
    yield "cross entropy, 512 of 30522 classes", [("softmax_cross_entropy_gradient", inputs, {})], loss


def least(run: Callable[[], Any]) -> float:
    """Returns the least processor seconds of some runs."""
    times = []
    run()
    for _ in range(_REPEAT):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def measure(case: Case) -> dict[str, Any]:
    """Times a case. Returns a row: milliseconds here and in PyTorch, and bytes of workspace here."""
    name, calls, theirs = case
    thunks: list[Thunk] = [bind(*call) for call in calls]
    signatures = [(find(n), find(n).sign([spec_of(a) for a in arrays], attrs)) for n, arrays, attrs in calls]
    workspace = max(schema.kernel(s).workspace(s) for schema, s in signatures)
    ours = least(lambda: [thunk() for thunk in thunks])
    return {"layer": name, "ms": ours * 1e3, "torch_ms": least(theirs) * 1e3, "workspace_bytes": workspace}


def main() -> None:
    """Prints a table; writes JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with progress_shown(arguments.quiet), limit_threads(1), kernel_state():
        for case in each("layer", (*convolutions(), *others()), lambda case: case[0]):
            rows.append(measure(case))
            row = rows[-1]
            say(
                f"{row['layer']:<42} {row['ms']:8.2f} ms {row['torch_ms']:8.2f} ms {row['workspace_bytes'] >> 10:6} KiB"
            )
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps(rows, indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
