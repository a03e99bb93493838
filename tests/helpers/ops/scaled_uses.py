"""Uses of every operator in any size: tensors whose longest axis is as long as one asks."""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen

import engine
import ops
from engine import Graph, Var
from ops.registry import REGISTRY, find
from ops.schema.schema import OpSchema, Specs
from ops.tensor.spec import BFLOAT16, FLOATS, TensorSpec

F32, F64, BOOL, INT64, INT32, UINT8, INT8 = "float32", "float64", "bool", "int64", "int32", "uint8", "int8"


@frozen(eq=False)
class Use:
    """An operator with the specs of its inputs, of which `constants` are known beforehand, and its attributes."""

    schema: OpSchema = field(repr=lambda schema: schema.name)
    inputs: Specs
    attrs: Mapping[str, Any] = {}
    constants: frozenset[int] = frozenset()

    def stored_in(self, dtype: Any) -> "Use":
        """Returns the use with float32 tensors stored in another type."""
        specs = tuple(s.with_dtype(dtype) if s.dtype == F32 else s for s in self.inputs)
        return Use(self.schema, specs, self.attrs, self.constants)


def _t(*shape: int, dtype: str = F32) -> TensorSpec:
    return TensorSpec(shape, dtype)


def _use(name: str, *inputs: TensorSpec, constants: tuple[int, ...] = (), **attrs: Any) -> Use:
    return Use(find(name), inputs, attrs, frozenset(constants))


_OF_ONE = frozenset(
    (
        *("relu", "tanh", "leaky_relu", "thresholded_relu", "shrink", "hard_sigmoid", "hard_swish", "softsign"),
        *("sigmoid", "swish", "gelu", "elu", "selu", "celu", "softplus", "mish"),
        *("abs", "neg", "sign", "exp", "log", "sqrt", "reciprocal", "floor", "ceil", "round", "erf", "is_nan"),
        *("is_inf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
        *("arg_max", "arg_min", "hardmax", "softmax", "log_softmax", "copy", "identity", "transpose", "unique"),
        *(name for name in REGISTRY if name.startswith("reduce_")),
    )
)
_OF_TWO = frozenset(
    (
        *("add", "sub", "mul", "div", "mod", "pow", "equal", "less", "less_or_equal", "greater", "greater_or_equal"),
        *("sum", "mean", "min", "max", "prelu", "assign", "where"),
    )
)
_OF_A_GRADIENT = frozenset(
    (
        *("relu", "leaky_relu", "hard_sigmoid", "hard_swish", "softsign", "tanh", "sigmoid", "softplus", "elu"),
        *("swish", "gelu", "mish", "shrink", "softmax", "log_softmax"),
    )
)
_WINDOW: Mapping[str, Any] = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}


def uses(n: int) -> Iterator[Use]:
    """Yields uses of all operators whose longest axis has `n` elements, or whose two longest have the root of that."""
    root = round(n**0.5)
    yield from _elementwise(n)
    for rows, columns in ((n, 4), (4, n), (root, root)):
        yield from _rows(rows, columns)
    for batch, channels, height, width in ((n, 8, 4, 4), (1, 8, root, root), (1, n, 4, 4)):
        yield from _images(batch, channels, height, width)
    for m, k, columns in ((n, 8, 16), (8, n, 8), (8, 8, n), (root, 8, root)):
        yield from _products(m, k, columns)
    yield from _others(n)
    yield from _control(n)


def stored_uses(n: int) -> Iterator[Use]:
    """Yields the same, and all that take them with float16 and bfloat16 in place of float32."""
    for use in uses(n):
        yield use
        if any(s.dtype == F32 for s in use.inputs) and all(s.dtype not in FLOATS or s.dtype == F32 for s in use.inputs):
            yield use.stored_in("float16")
            yield use.stored_in(BFLOAT16)


def _elementwise(n: int) -> Iterator[Use]:
    x, byte, word, flag = _t(n, 4), _t(n, 4, dtype=UINT8), _t(n, 4, dtype=INT64), _t(n, 4, dtype=BOOL)
    for name in _OF_TWO - {"where"}:
        yield _use(name, x, x)
        if name != "assign":
            yield _use(name, x, _t(4))
            yield _use(name, x, _t(1))
        if name not in ("assign", "prelu"):
            yield _use(name, _t(4, n), _t(2, 1, n))
    for name in _OF_A_GRADIENT:
        yield _use(f"{name}_gradient", x, x)
    yield _use("where", flag, x, x)
    yield _use("where", flag, x, _t(4))
    yield _use("clip", x, _t(), _t())
    yield _use("prelu_gradient", x, x, x)
    yield _use("clip_gradient", x, x, _t(), _t())
    for name in ("and", "or", "xor"):
        yield _use(name, flag, flag)
    yield _use("not", flag)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield _use(name, byte, byte)
    yield _use("bitwise_not", byte)
    yield _use("bit_shift", byte, byte, direction="LEFT")
    yield _use("cast", x, to="float16")
    yield _use("bit_cast", x, to="int32")
    yield _use("cast", word, to=F32)
    yield _use("look_up", byte, table=tuple(range(256)))
    yield _use("quantised_add", byte, byte, a_factor=0.5, b_factor=0.25)
    yield _use("dropout_training", x, _t(dtype=INT64))
    for name, state, scalars in (("sgd", 0, 1), ("momentum", 1, 1), ("adam", 2, 2)):
        yield _use(f"{name}_step", *(x,) * (2 + state), *(_t(dtype=F64),) * scalars)
    yield _use("fused_elementwise", x, x, program=_program(x))


def _program(x: TensorSpec) -> Any:
    """Returns the program that passes make of a chain."""
    graph = Graph()
    a, b = (graph.input(name, x.shape) for name in "ab")
    graph.output(ops.tanh(a * b + a), "y")
    return next(op.attrs["program"] for op in engine.optimise(graph, 3).operators if "program" in op.attrs)


def _rows(n: int, m: int) -> Iterator[Use]:
    x, at, row = _t(n, m), _t(n, m, dtype=INT64), _t(m)
    for name in _OF_ONE:
        yield _use(name, x)
    for axis in (0, 1):
        yield _use("softmax", x, axis=axis)
        yield _use("softmax_gradient", x, x, axis=axis)
        yield _use("log_softmax_gradient", x, x, axis=axis)
        yield _use("hardmax", x, axis=axis)
        yield _use("arg_max", x, axis=axis)
        for name in ("cum_sum", "cum_prod"):
            yield _use(name, x, axis=axis)
        yield _use("top_k", x, k=2, axis=axis)
        yield _use("top_k", x, k=x.shape[axis], axis=axis)
        yield _use("unique", x, axis=axis)
        yield _use("concat", x, x, axis=axis)
        yield _use("split", x, sizes=(1, x.shape[axis] - 1), axis=axis)
        yield _use("gather", x, _t(x.shape[axis], dtype=INT64), axis=axis)
        yield _use("gather_gradient", x, _t(x.shape[axis], dtype=INT64), shape=x.shape, axis=axis)
        yield _use("gather_elements", x, at, axis=axis)
        yield _use("gather_elements_gradient", x, at, shape=x.shape, axis=axis)
        yield _use("scatter_elements", x, at, x, axis=axis)
        yield _use("compress", x, _t(x.shape[axis], dtype=BOOL), count=2, axis=axis)
        for name in (n for n in REGISTRY if n.startswith("reduce_")):
            yield _use(name, x, axes=(axis,))
    yield _use("gather_nd", x, _t(n, 1, dtype=INT64))
    yield _use("gather_nd_gradient", x, _t(n, 1, dtype=INT64), shape=x.shape)
    yield _use("scatter_nd", x, _t(n, 1, dtype=INT64), x)
    yield _use("scatter_nd", x, _t(n, 1, dtype=INT64), x, reduction="add")
    yield _use("nonzero", x, count=n)
    yield _use("count_nonzero", x)
    yield _use("trilu", x)
    yield _use("eye_like", x)
    yield _use("one_hot", _t(n, dtype=INT64), _t(2), depth=m)
    yield _use("reverse_sequence", _t(n, m, 2), _t(m, dtype=INT64))
    yield _use("tile", x, repeats=(2, 3))
    yield _use("tile", _t(2, 3), repeats=(n, m))
    yield _use("expand", row, shape=x.shape)
    yield _use("reshape", x, shape=(-1,))
    yield _use("slice", x, starts=(1, 1), ends=(n, m), steps=(2, 1))
    yield _use("slice_gradient", _t(n - 1, m - 1), shape=x.shape, starts=(1, 1), ends=(n, m))
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield _use("pad", x, pads=(1, 2, 1, 0), mode=mode)
    yield _use("pad", _t(2, 3), pads=(n, 1, 1, m))
    yield _use("layer_norm", x, row, row)
    yield _use("layer_norm", x, row, with_stats=True)
    yield _use("rms_norm", x, row)
    yield _use("norm_data_gradient", x, x, row)
    yield _use("norm_scale_gradient", x, x)
    for reduction in ("mean", "none"):
        yield _use("softmax_cross_entropy", x, _t(n, dtype=INT64), reduction=reduction)
        loss = _t() if reduction == "mean" else _t(n)
        yield _use("softmax_cross_entropy_gradient", x, _t(n, dtype=INT64), loss, reduction=reduction)
    yield _use("quantize_linear", x, _t(m), _t(m, dtype=UINT8))
    yield _use("dequantize_linear", _t(n, m, dtype=UINT8), _t(m), _t(m, dtype=UINT8))
    yield _use("dynamic_quantize_linear", x)
    yield _use("quantised_mean", _t(n, m, dtype=UINT8), axes=(0,), factor=0.5)


def _images(n: int, c: int, h: int, w: int) -> Iterator[Use]:
    x, row = _t(n, c, h, w), _t(c)
    pixels, byte = _t(n, h, w, c), _t(n, c, h, w, dtype=UINT8)
    yield _use("batch_norm", x, row, row, row, row)
    yield _use("batch_norm_training", x, row, row)
    yield _use("channel_sums", x, x, row, row)
    yield _use("batch_norm_data_gradient", x, x, row, row, row, row, row)
    yield _use("instance_norm", x, row, row)
    yield _use("group_norm", x, row, row, num_groups=2)
    yield _use("norm_data_gradient", x, x, row, num_groups=2)
    yield _use("norm_scale_gradient", x, x, num_groups=2)
    for name in ("global_average_pool", "global_max_pool", "global_lp_pool"):
        yield _use(name, x)
    for name in ("max_pool", "average_pool", "lp_pool"):
        yield _use(name, x, **_WINDOW)
        yield _use(name, x, kernel_shape=(2, 2), strides=(2, 2))
    yield _use("max_pool", x, with_indices=True, **_WINDOW)
    yield _use("max_pool_gradient", x, x, **_WINDOW)
    yield _use("spread_windows", x, sizes=(h, w), **_WINDOW)
    yield _use("nhwc_max_pool", pixels, **_WINDOW)
    yield _use("nhwc_average_pool", pixels, **_WINDOW)
    yield _use("lrn", x, size=3)
    yield _use("lrn_gradient", x, x, size=3)
    yield _use("nhwc_lrn", pixels, size=3)
    yield _use("depth_to_space", x, blocksize=2)
    yield _use("space_to_depth", x, blocksize=2)
    if c < 100:
        yield from _convolutions(n, c, h, w)
    for mode in ("nearest", "linear", "cubic"):
        yield _use("resize", x, sizes=(n, c, 2 * h, 2 * w), mode=mode)
        yield _use("resize", x, scales=(1.0, 1.0, 1.5, 0.75), mode=mode)
        yield _use("resize_gradient", _t(n, c, 2 * h, 2 * w), shape=x.shape, sizes=(n, c, 2 * h, 2 * w), mode=mode)
    yield _use("resize", x, sizes=(n, c, h, w))
    yield _use("grid_sample", x, _t(n, h, w, 2))
    yield _use("roi_align", x, _t(n, 4), _t(n, dtype=INT64), output_height=h, output_width=w, sampling_ratio=2)
    yield _use("max_roi_pool", x, _t(n, 5), pooled_shape=(h, w))
    yield _use("deformed_windows", x, _t(n, 18, h, w), _t(n, 9, h, w), **_WINDOW)
    yield _use("det", _t(n, c, 4, 4))
    yield _use("tensor_scatter", x, _t(n, c, 1, w), _t(n, dtype=INT64))
    trees = _t(9, 4, dtype=INT32), _t(9), _t(2, dtype=INT32), _t(5, dtype=INT32), _t(5)
    for aggregate in ("sum", "max"):
        yield _use("tree_ensemble", _t(n * c * h, w), *trees, outputs=3, aggregate=aggregate)
    roi = (*(0.25,) * 4, *(0.75,) * 4)
    crop: dict[str, Any] = {"coordinate_transformation_mode": "tf_crop_and_resize", "roi": roi}
    yield _use("resize", x, sizes=(n, c, 2 * h, w), **crop)
    yield _use("resize", _t(1, 1, 1, 1), sizes=(n, c, h, w), mode="linear")
    yield _use("quantize_linear", x, row, _t(c, dtype=UINT8))
    yield _use("dequantize_linear", byte, row, _t(c, dtype=UINT8))


def _convolutions(n: int, c: int, h: int, w: int) -> Iterator[Use]:
    x, pixels, byte = _t(n, c, h, w), _t(n, h, w, c), _t(n, c, h, w, dtype=UINT8)
    for constants in ((), (1, 2)):
        for group in (1, c):
            kernel = _t(16 if group == 1 else c, c // group, 3, 3)
            bias = _t(kernel.shape[0])
            window = {**_WINDOW, "group": group}
            yield _use("conv", x, kernel, bias, constants=constants, **window)
            yield _use("fused_conv", x, kernel, bias, constants=constants, activation="clip", low=0.0, **window)
            yield _use("nhwc_conv", pixels, kernel, bias, constants=constants, **window)
            whole = _t(c, 16 // group if group == 1 else 1, 3, 3)
            wide = _t(whole.shape[1] * group)
            yield _use("conv_transpose", x, whole, wide, constants=constants, **window)
            yield _use("nhwc_conv_transpose", pixels, whole, wide, constants=constants, **window)
        small = _t(16, c, 3, 3, dtype=INT8)
        yield _use("conv_integer", byte, small, constants=constants[:1], **_WINDOW)
        scale, zero = _t(), _t(dtype=UINT8)
        yield _use(
            "qlinear_conv",
            *(byte, scale, zero, small, _t(), _t(dtype=INT8), scale, zero),
            constants=tuple(range(1, 8)) if constants else (),
            **_WINDOW,
        )
        yield _use(
            "nhwc_quantised_conv",
            *(_t(n, h, w, c, dtype=UINT8), small, _t(16), _t(16, dtype=INT32)),
            constants=(1, 2, 3),
            **_WINDOW,
        )
    kernel = _t(16, c, 3, 3)
    yield _use("conv_input_gradient", _t(n, 16, h, w), kernel, **_WINDOW)
    yield _use("conv_weight_gradient", _t(n, 16, h, w), x, **_WINDOW)


def _products(m: int, k: int, n: int) -> Iterator[Use]:
    a, b = _t(m, k), _t(k, n)
    for constants in ((), (1,)):
        yield _use("matmul", a, b, constants=constants)
        yield _use("matmul", _t(3, m, k), b, constants=constants)
        yield _use("gemm", a, b, _t(n), constants=constants)
        yield _use("gemm", a, _t(n, k), trans_b=True, constants=constants)
        yield _use("fused_matmul", a, b, _t(n), constants=constants, activation="clip", low=0.0)
        yield _use("matmul_integer", _t(m, k, dtype=UINT8), _t(k, n, dtype=INT8), constants=constants)
        scale, zero = _t(), _t(dtype=UINT8)
        yield _use(
            "qlinear_matmul",
            *(_t(m, k, dtype=UINT8), scale, zero, _t(k, n, dtype=UINT8), scale, zero, scale, zero),
            constants=tuple(range(1, 8)) if constants else (),
        )
    yield _use("matmul", _t(m, 4, k), _t(m, k, 4))
    yield _use("einsum", a, b, equation="mk,kn->mn")
    yield _use("einsum", a, a, equation="mk,mk->m")


def _others(n: int) -> Iterator[Use]:
    yield _use("arange", *(_t(dtype=INT64),) * 3, count=n)
    yield _use("random_uniform", _t(dtype=INT64), shape=(n, 4))
    yield _use("arange_count", *(_t(dtype=INT64),) * 3)
    yield _use("non_max_suppression", _t(2, n, 4), _t(2, 3, n), max_output=3)
    for name, gates in (("rnn", 1), ("gru", 3), ("lstm", 4)):
        for time, batch, width in ((n, 2, 4), (2, n, 4)):
            x, w, r = _t(time, batch, width), _t(1, gates * 8, width), _t(1, gates * 8, 8)
            yield _use(name, x, w, r)
            yield _use(name, x, w, r, constants=(1, 2))


def _control(n: int) -> Iterator[Use]:
    """Yields uses of operators with bodies, as functions make them."""

    def add(_: Var, x: Var) -> Var:
        return ops.tanh(x) + x

    graph = Graph()
    x, flag = graph.input("x", (4, n)), graph.input("flag", (), BOOL)
    engine.fori_loop(3, add, x)
    engine.fori_loop(n, add, graph.input("few", (4,)))
    engine.cond(flag, ops.tanh, ops.relu, x)
    engine.scan(lambda state, row: (state + row, row * 2.0), graph.input("state", (n,)), x)
    engine.scan(lambda state, row: (state + row, row * 2.0), graph.input("s", (4,)), graph.input("rows", (n, 4)))
    for operator in graph.operators:
        yield Use(operator.schema, operator.signature.inputs, operator.attrs)
