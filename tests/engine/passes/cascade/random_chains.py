"""Random networks that can be cut into stripes: chains of all operators that compute rows alone, and blocks of them."""

from typing import Any

import numpy as np

import engine
import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.passes.cascade.rows import Stripe, is_image
from ops.common.tiling import ROWS
from ops.spatial.resize_tables import COORDINATES

_Rng = np.random.Generator


def random_chain(seed: int, layers: int = 5, *, upsampled: bool = False, images: int = 1, wide: bool = False) -> Graph:
    """Returns a network of odd sizes, with random strides, pads, dilations and groups, on a batch of images.

    Where it is `upsampled`, its last operators write rows in pairs. Images may be `wide`, and low.
    """
    rng = np.random.default_rng(seed)
    graph = engine.Graph("chain")
    rows, columns = (int(n) for n in rng.integers(17, 40, 2))
    if wide:
        rows, columns = rows // 2, 3 * columns
    x: Var = graph.input("x", (images, int(rng.choice([3, 8, 16])), rows, columns))
    x = _random_layers(rng, x, layers)
    graph.output(ops.depth_to_space(_same(rng, x, 3), 2) if upsampled else x, "y")
    return graph


def random_encoder(seed: int, layers: int = 3, *, images: int = 1, wide: bool = False) -> Graph:
    """Returns a network whose images inside are larger than its input and output, so that most have cascades."""
    rng = np.random.default_rng(seed)
    graph = engine.Graph("encoder")
    rows, columns = (int(n) for n in rng.integers(25, 40, 2))
    if wide:
        rows, columns = rows // 2, 3 * columns
    x: Var = graph.input("x", (images, 2, rows, columns))
    x = ops.relu(ops.conv2d(x, _weights(rng, x, 16, 2, 3, 3), pads=(1, 1, 1, 1)))
    x = _random_layers(rng, x, layers)
    pooled = ops.max_pool(x, tuple(min(n, 2) for n in x.shape[2:]), strides=(2, 2))
    graph.output(ops.reduce_mean(pooled, axes=(2, 3)), "y")
    return graph


def _random_layers(rng: _Rng, x: Var, layers: int) -> Var:
    for _ in range(layers):
        if min(x.shape[2:]) < 7:
            break
        smaller = [_conv, _conv, _depthwise, _pool, _transposed_conv, _pad, _shuffle, _normalise, _space_to_depth]
        same = [_elementwise, _positions, _residual, _branches]
        larger = [_transposed_conv, _depth_to_space, _resize] if max(x.shape[2:]) < 50 else []
        x = rng.choice(np.array([*smaller, *same, *larger]))(rng, x)
    return x


def random_codes(seed: int, layers: int = 5, *, images: int = 1) -> Graph:
    """Returns a network of quantised codes, with random strides, pads, dilations, groups, scales and zero points."""
    rng = np.random.default_rng(seed)
    graph = engine.Graph("codes")
    sizes = int(rng.choice([3, 8])), *(int(n) for n in rng.integers(17, 40, 2))
    x: Var = graph.input("x", (images, *sizes), "uint8")
    x = ops.dequantize_linear(x, *_grid(rng))
    for _ in range(layers):
        if min(x.shape[2:]) < 7:
            break
        layer = rng.choice(np.array([_quantised_conv, _quantised_conv, _quantised_depthwise, _pool, _quantised_sum]))
        x = _on_grid(rng, layer(rng, x))
    graph.output(ops.quantize_linear(x, *_grid(rng)), "y")
    return graph


def large_codes() -> Graph:
    """Returns a network of quantised codes whose first images are much larger than its input and what comes last."""
    rng = np.random.default_rng(3)
    graph = engine.Graph("large codes")
    x: Var = ops.dequantize_linear(graph.input("x", (1, 3, 96, 96), "uint8"), *_grid(rng))
    for outputs in (16, 32):
        w = _quantised_weights(rng, x, outputs, x.shape[1], 3, 3)
        convolved = _on_grid(rng, ops.relu(ops.conv2d(x, w, pads=(1, 1, 1, 1))))
        x = ops.max_pool(convolved, (2, 2), strides=(2, 2))
    graph.output(ops.quantize_linear(ops.reduce_mean(x, axes=(2, 3)), *_grid(rng)), "y")
    return graph


def cascade_to(graph: Graph, end: int, most: int, axis: int = ROWS) -> tuple[int, int]:
    """Returns the longest run of at most `most` operators in front of a position that can be cut into stripes."""
    (result,) = graph.operators[end - 1].outputs
    read_later = {v for operator in graph.operators[end:] for v in operator.inputs} | set(graph.outputs.values())
    first = end
    stripe = Stripe({result: (0, result.shape[axis])} if is_image(result, axis) else {}, axis=axis)
    while first > max(end - most, 0) and (first == end or graph.operators[first - 1].outputs[0] not in read_later):
        if not stripe.take(graph.operators[first - 1]):
            break
        first -= 1
    return first, end


def longest_cascade(graph: Graph, axis: int = ROWS) -> tuple[int, int]:
    """Returns the longest run of operators that can be cut into stripes; an empty one where there is none."""
    count = len(graph.operators)
    runs = (cascade_to(graph, end, count, axis) for end in range(1, count + 1))
    return max(runs, default=(0, 0), key=lambda run: run[1] - run[0])


def _grid(rng: _Rng) -> tuple[np.float32, np.uint8]:
    return np.float32(rng.uniform(0.02, 0.1)), np.uint8(rng.integers(100, 150))


def _on_grid(rng: _Rng, x: Var) -> Var:
    grid = _grid(rng)
    return ops.dequantize_linear(ops.quantize_linear(x, *grid), *grid)


def _quantised_weights(rng: _Rng, x: Var, *shape: int) -> Var:
    codes: Var = x.graph.constant(rng.integers(-100, 100, shape).astype(np.int8))
    scales = (rng.uniform(0.5, 1, shape[0]) / 50 / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    return ops.dequantize_linear(codes, scales, np.zeros(shape[0], np.int8), axis=0)


def _quantised_conv(rng: _Rng, x: Var) -> Var:
    group = int(rng.choice([1, 1, 2])) if x.shape[1] % 2 == 0 else 1
    kernel = tuple(int(n) for n in rng.choice([1, 2, 3], 2))
    w = _quantised_weights(rng, x, int(rng.choice([8, 16])), x.shape[1] // group, *kernel)
    return ops.relu(ops.conv2d(x, w, group=group, **_window(rng)))


def _quantised_depthwise(rng: _Rng, x: Var) -> Var:
    return ops.conv2d(x, _quantised_weights(rng, x, x.shape[1], 1, 3, 3), group=x.shape[1], **_window(rng))


def _quantised_sum(rng: _Rng, x: Var) -> Var:
    w = _quantised_weights(rng, x, x.shape[1], x.shape[1], 3, 3)
    return x + _on_grid(rng, ops.conv2d(x, w, pads=(1, 1, 1, 1)))


def large_images(images: int = 1) -> Graph:
    """Returns a network whose first images are much larger than its input and what comes last."""
    rng = np.random.default_rng(3)
    graph = engine.Graph("large")
    x: Var = graph.input("x", (images, 3, 64, 48))
    for outputs in (16, 32):
        w = _weights(rng, x, outputs, x.shape[1], 3, 3)
        x = ops.max_pool(ops.relu(ops.conv2d(x, w, pads=(1, 1, 1, 1))), (2, 2), strides=(2, 2))
    graph.output(ops.softmax(ops.reduce_mean(x, axes=(2, 3), keepdims=False)), "y")
    return graph


def large_decoder() -> Graph:
    """Returns a network whose transposed convolutions make the largest images; pads cut off parts of these."""
    rng = np.random.default_rng(0)
    graph = engine.Graph("decoder")
    x: Var = graph.input("x", (1, 4, 24, 24))
    x = ops.relu(ops.conv2d(x, _weights(rng, x, 16, 4, 3, 3), pads=(1, 1, 1, 1)))
    x = ops.relu(ops.conv_transpose(x, _weights(rng, x, 16, 16, 4, 4), strides=(2, 2), pads=(1, 1, 1, 1)))
    x = ops.conv_transpose(x, _weights(rng, x, 16, 8, 4, 4), strides=(2, 2), pads=(1, 1, 1, 1))
    graph.output(ops.reduce_mean(ops.max_pool(x, (4, 4), strides=(4, 4)), axes=(2, 3)), "y")
    return graph


def _weights(rng: _Rng, x: Var, *shape: int) -> Var:
    values = rng.standard_normal(shape, np.float32) / np.sqrt(np.prod(shape[1:]))
    constant: Var = x.graph.constant(values.astype(np.float32))
    return constant


def _window(rng: _Rng) -> dict[str, Any]:
    return {
        "strides": tuple(int(n) for n in rng.integers(1, 3, 2)),
        "pads": tuple(int(n) for n in rng.integers(0, 3, 4)),
        "dilations": tuple(int(n) for n in rng.integers(1, 3, 2)),
    }


def _conv(rng: _Rng, x: Var) -> Var:
    group = int(rng.choice([1, 1, 2])) if x.shape[1] % 2 == 0 else 1
    kernel = tuple(int(n) for n in rng.choice([1, 2, 3], 2))
    w = _weights(rng, x, int(rng.choice([8, 16, 24])), x.shape[1] // group, *kernel)
    return ops.relu(ops.conv2d(x, w, _weights(rng, x, w.shape[0]), group=group, **_window(rng)))


def _depthwise(rng: _Rng, x: Var) -> Var:
    return ops.conv2d(x, _weights(rng, x, x.shape[1], 1, 3, 3), group=x.shape[1], **_window(rng))


def _pool(rng: _Rng, x: Var) -> Var:
    kernel = tuple(int(n) for n in rng.integers(2, 4, 2))
    pads = tuple(int(n) for n in rng.integers(0, 2, 4))
    options: dict[str, Any] = {"strides": (int(rng.integers(1, 3)), 2), "pads": pads}
    options["ceil_mode"] = bool(rng.integers(2))
    if rng.integers(2):
        return ops.max_pool(x, kernel, **options)
    return ops.average_pool(x, kernel, count_include_pad=bool(rng.integers(2)), **options)


def _transposed_conv(rng: _Rng, x: Var) -> Var:
    group = int(rng.choice([1, 1, 2])) if x.shape[1] % 4 == 0 else 1
    w = _weights(rng, x, x.shape[1], int(rng.choice([4, 8])), *(int(n) for n in rng.integers(1, 5, 2)))
    strides = tuple(int(n) for n in rng.integers(1, 4, 2)) if max(x.shape[2:]) < 50 else (1, 1)
    more = tuple(int(rng.integers(n)) for n in strides)
    window = {**_window(rng), "pads": tuple(int(n) for n in rng.integers(0, 2, 4)), "strides": strides}
    bias = _weights(rng, x, w.shape[1] * group)
    return ops.conv_transpose(x, w, bias, group=group, output_padding=more, **window)


def _resize(rng: _Rng, x: Var) -> Var:
    factors = rng.integers(1, 4, 2) if rng.integers(2) else rng.uniform(0.6, 3, 2)
    sizes = tuple(int(n * times) for n, times in zip(x.shape[2:], factors, strict=True))
    options: dict[str, Any] = {"mode": str(rng.choice(["nearest", "linear", "cubic"]))}
    options["coordinate_transformation_mode"] = str(rng.choice(sorted(COORDINATES.keys() - {"tf_crop_and_resize"})))
    options["antialias"] = bool(rng.integers(2))
    return ops.resize(x, (*x.shape[:2], *sizes), **options)


def _pad(rng: _Rng, x: Var) -> Var:
    sides = rng.integers(-1, 3, 2).tolist(), rng.integers(-1, 3, 2).tolist()
    if rng.integers(2):
        return ops.pad(x, (0, sides[0][1], 0, sides[1][1]), str(rng.choice(["reflect", "edge", "wrap"])), axes=(2, 3))
    return ops.pad(x, (*sides[0], *sides[1]), value=np.float32(0.5), axes=(2, 3))


def _shuffle(_: _Rng, x: Var) -> Var:
    """Returns a channel shuffle (Zhang et al., "ShuffleNet", 2018)."""
    n, channels, *sizes = x.shape
    groups = 2 if channels % 2 == 0 else 1
    apart = ops.transpose(ops.reshape(x, (n, groups, channels // groups, *sizes)), (0, 2, 1, 3, 4))
    return ops.reshape(apart, x.shape)


def _normalise(rng: _Rng, x: Var) -> Var:
    return ops.softmax(x, axis=int(rng.choice([1, 3]))) if rng.integers(2) else ops.lrn(x, 3)


def _depth_to_space(rng: _Rng, x: Var) -> Var:
    return ops.depth_to_space(x, 2, str(rng.choice(["DCR", "CRD"]))) if x.shape[1] % 4 == 0 else x


def _space_to_depth(_: _Rng, x: Var) -> Var:
    even = [n - n % 2 for n in x.shape[2:]]
    cropped = ops.slice(x, (0, 0), even, axes=(2, 3))
    return ops.space_to_depth(cropped, 2) if x.shape[1] < 16 else cropped


def _elementwise(rng: _Rng, x: Var) -> Var:
    scale, shift = (_weights(rng, x, x.shape[1], 1, 1) for _ in range(2))
    return ops.sigmoid(x * scale + shift)


def _positions(rng: _Rng, x: Var) -> Var:
    """Returns an image with what other rows, and perhaps other images, have another value of."""
    shape = [n if rng.integers(2) else 1 for n in x.shape[1:]]
    images = x.shape[0] if x.shape[0] > 1 and rng.integers(2) else 1
    shape[1] = x.shape[2] if images == 1 or rng.integers(2) else 1
    return x + _weights(rng, x, images, *shape)


def _residual(rng: _Rng, x: Var) -> Var:
    w = _weights(rng, x, x.shape[1], x.shape[1], 3, 3)
    return ops.relu(x + ops.conv2d(ops.relu(x), w, pads=(1, 1, 1, 1)))


def _branches(rng: _Rng, x: Var) -> Var:
    return ops.concat([_same(rng, x, 1), _same(rng, x, 3)], axis=1)


def _same(rng: _Rng, x: Var, kernel: int) -> Var:
    return ops.conv2d(x, _weights(rng, x, 8, x.shape[1], kernel, kernel), pads=(kernel // 2,) * 4)
