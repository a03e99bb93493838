"""Steps that random networks are made of: each adds one node of ONNX, or some, for tensors that are there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tests.fuzz.bounded import ELEMENTWISE, Bounded, largest, layer_norm, mean, monotone, peak, softmax, total
from tests.fuzz.programs import Program

_MOST_ELEMENTS = 4000
_EPSILON = float(np.float32(1e-3))
"""ONNX has it in 32 bits."""
Grow = Callable[[Program, str], None]


def random_program(rng: np.random.Generator, dtype: str) -> Program:
    """Returns a network of two to twelve steps or so, of one or two inputs."""
    program = Program(rng, dtype)
    shapes = ((2, 3, 5, 6), (1, 8, 4, 4), (4, 6), (2, 3, 8), (7,), (1, 16, 7, 5), (3, 16))
    for _ in range(1 + rng.integers(2)):
        program.input(shapes[rng.integers(len(shapes))])
    for least in range(2 + rng.integers(10)):
        if least == 0 or not program.steps:
            _unary(program, "x0")
        names = list(program.shapes)
        name = names[-1 - rng.integers(min(3, len(names)))] if rng.random() < 0.7 else names[rng.integers(len(names))]
        _STEPS[rng.integers(len(_STEPS))](program, name)
    return program


def _pick(program: Program, items: Sequence[Any]) -> Any:
    return items[int(program.rng.integers(len(items)))]


def _unary(program: Program, x: str) -> None:
    op_type = _pick(program, tuple(ELEMENTWISE))
    program.add(op_type, [x], ELEMENTWISE[op_type])


_ARITHMETIC: dict[str, Callable[[Bounded, Bounded], Bounded]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Max": largest,
}


def _binary(program: Program, x: str) -> None:
    """Adds arithmetic on two tensors of one shape, or with a constant that is broadcast."""
    op_type, shape = _pick(program, tuple(_ARITHMETIC)), program.shapes[x]
    alike = [n for n, s in program.shapes.items() if s == shape]
    narrow = tuple(1 if program.rng.random() < 0.4 else n for n in shape)
    other = (
        program.weights(narrow[program.rng.integers(len(shape) + 1) :])
        if program.rng.random() < 0.4
        else _pick(program, alike)
    )
    operands = [x, other] if program.rng.random() < 0.7 else [other, x]
    program.add(op_type, operands, _ARITHMETIC[op_type])


def _quotient(program: Program, x: str) -> None:
    below = program.weights(program.shapes[x][-1:], low=0.25)
    program.add("Div", [x, below], lambda a, b: a / b)


def _root(program: Program, x: str) -> None:
    """Adds sqrt(|x|), behind a constant that keeps it off zero."""
    program.add("Abs", [x], ELEMENTWISE["Abs"])
    program.add("Add", [list(program.shapes)[-1], program.weights((1,), low=0.5)], _ARITHMETIC["Add"])
    program.add("Sqrt", [list(program.shapes)[-1]], partial(monotone, lambda v: np.sqrt(np.maximum(v, 0)), roundings=4))


def _clip(program: Program, x: str) -> None:
    program.constants |= {"low": np.float64(-0.5), "high": np.float64(0.75)}
    program.add("Clip", [x, "low", "high"], _clipped)


def _clipped(x: Bounded, low: Bounded, high: Bounded) -> Bounded:
    return monotone(lambda n: np.clip(n, low.value, high.value), x, 0)


def _product(program: Program, x: str) -> None:
    shape = program.shapes[x]
    if len(shape) < 2:
        return
    width = int(1 + program.rng.integers(20))
    program.add("MatMul", [x, program.weights((shape[-1], width))], lambda a, b: a @ b)
    if program.rng.random() < 0.5:
        program.add("Add", [list(program.shapes)[-1], program.weights((width,))], _ARITHMETIC["Add"])


def _gram(program: Program, x: str) -> None:
    """Multiplies a tensor by itself, turned."""
    ndim = len(program.shapes[x])
    if ndim < 2:
        return
    order = [*range(ndim - 2), ndim - 1, ndim - 2]
    program.add("Transpose", [x], lambda v: v.moved(lambda a: a.transpose(order)), perm=order)
    program.add("MatMul", [x, list(program.shapes)[-1]], lambda a, b: a @ b)


def _windows(array: Any, kernel: int, stride: int, pad: int, fill: float) -> Any:
    padded = np.pad(array, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]


def _conv(program: Program, x: str) -> None:
    shape = program.shapes[x]
    kernel, stride = int(1 + 2 * program.rng.integers(2)), int(1 + program.rng.integers(2))
    if len(shape) != 4 or min(shape[2:]) < 1:
        return
    groups = shape[1] if program.rng.random() < 0.2 else 1
    filters = groups if groups > 1 else int(1 + program.rng.integers(18))
    names = [x, program.weights((filters, shape[1] // groups, kernel, kernel)), program.weights((filters,))]
    compute = partial(_convolved, stride=stride, pad=kernel // 2, groups=groups)
    pads = [kernel // 2] * 4
    program.add("Conv", names, compute, strides=[stride] * 2, pads=pads, kernel_shape=[kernel] * 2, group=groups)


def _convolved(x: Bounded, w: Bounded, b: Bounded, *, stride: int, pad: int, groups: int) -> Bounded:
    """Returns a convolution as a product of rows of windows and filters, group by group."""
    kernel, parts = w.value.shape[2], []
    taps = x.moved(lambda a: _windows(a, kernel, stride, pad, 0.0))
    each = x.value.shape[1] // groups
    for g in range(groups):
        inside = slice(g * each, (g + 1) * each)
        rows = Bounded(taps.value[:, inside], taps.error[:, inside], x.unit)
        rows = rows.moved(lambda a: a.transpose(0, 2, 3, 1, 4, 5).reshape(a.shape[0], a.shape[2], a.shape[3], -1))
        own = Bounded(np.split(w.value, groups)[g], np.split(w.error, groups)[g], x.unit)
        parts.append(rows @ own.moved(lambda a: a.reshape(len(a), -1).T))
    value, error = (np.concatenate([getattr(p, n) for p in parts], -1) for n in ("value", "error"))
    return (Bounded(value, error, x.unit) + b).moved(lambda a: a.transpose(0, 3, 1, 2))


def _pool(program: Program, x: str) -> None:
    shape = program.shapes[x]
    if len(shape) != 4 or min(shape[2:]) < 2:
        return
    if program.rng.random() < 0.3:
        program.add("GlobalAveragePool", [x], partial(mean, axes=(2, 3)))
        return
    op_type, stride = _pick(program, ("MaxPool", "AveragePool")), int(1 + program.rng.integers(2))
    reduce = peak if op_type == "MaxPool" else mean
    program.add(op_type, [x], partial(_pooled, reduce, stride=stride), kernel_shape=[2, 2], strides=[stride] * 2)


def _pooled(reduce: Callable[[Bounded, tuple[int, ...]], Bounded], x: Bounded, stride: int) -> Bounded:
    return reduce(x.moved(lambda a: _windows(a, 2, stride, 0, 0.0)), (4, 5)).moved(lambda a: a[..., 0, 0])


def _normal(program: Program, x: str) -> None:
    shape = program.shapes[x]
    if len(shape) < 2:
        return
    names = [x, program.weights(shape[-1:]), program.weights(shape[-1:])]
    program.add("LayerNormalization", names, lambda v, s, b: layer_norm(v, _EPSILON) * s + b, axis=-1, epsilon=_EPSILON)


def _batch_norm(program: Program, x: str) -> None:
    shape = program.shapes[x]
    if len(shape) < 2:
        return
    names = [x, *(program.weights(shape[1:2], low) for low in (-1, -1, -1, 0.25))]
    program.add("BatchNormalization", names, _batch_normed, epsilon=_EPSILON)


def _batch_normed(x: Bounded, scale: Bounded, bias: Bounded, centre: Bounded, variance: Bounded) -> Bounded:
    wide = (-1, *(1,) * (x.value.ndim - 2))
    s, b, c, v = (p.moved(lambda a: a.reshape(wide)) for p in (scale, bias, centre, variance))
    factor = s / monotone(lambda n: np.sqrt(n + _EPSILON), v, 4)
    # where scale and shift are computed beforehand, both products are rounded by themselves
    shift = b - c * factor
    return x * factor + shift


def _softmax(program: Program, x: str) -> None:
    axis = int(program.rng.integers(len(program.shapes[x]))) if program.shapes[x] else 0
    if program.shapes[x]:
        program.add("Softmax", [x], partial(softmax, axis=axis), axis=axis)


def _reduce(program: Program, x: str) -> None:
    if not program.shapes[x]:
        return
    axis = int(program.rng.integers(len(program.shapes[x])))
    op_type = _pick(program, ("ReduceSum", "ReduceMean", "ReduceMax"))
    compute = {"ReduceSum": total, "ReduceMean": mean, "ReduceMax": peak}[op_type]
    program.add(op_type, [x, program.integers([axis])], lambda v, _: compute(v, (axis,)), keepdims=1)


def _transpose(program: Program, x: str) -> None:
    order = program.rng.permutation(len(program.shapes[x])).tolist()
    program.add("Transpose", [x], lambda v: v.moved(lambda a: a.transpose(order)), perm=order)


def _reshape(program: Program, x: str) -> None:
    shape = program.shapes[x]
    if not shape:
        return
    cut = int(program.rng.integers(len(shape)))
    wanted = [*shape[:cut], int(np.prod(shape[cut:]))]
    program.add("Reshape", [x, program.integers(wanted)], lambda v, to: v.moved(lambda a: a.reshape(to)))


def _concat(program: Program, x: str) -> None:
    shape = program.shapes[x]
    if not shape or np.prod(shape) > _MOST_ELEMENTS:
        return
    axis = int(program.rng.integers(len(shape)))
    alike = [
        n
        for n, s in program.shapes.items()
        if s[:axis] == shape[:axis] and s[axis + 1 :] == shape[axis + 1 :] and len(s) == len(shape)
    ]
    names = [x, *(_pick(program, alike) for _ in range(1 + program.rng.integers(2)))]
    program.add("Concat", names, partial(_joined, axis), axis=axis)


def _joined(axis: int, *parts: Bounded) -> Bounded:
    value, error = (np.concatenate([getattr(p, n) for p in parts], axis) for n in ("value", "error"))
    return Bounded(value, error, parts[0].unit)


def _slice(program: Program, x: str) -> None:
    shape = program.shapes[x]
    if not shape or max(shape) < 2:
        return
    axis, step = int(np.argmax(shape)), int(_pick(program, (1, 2, -1)))
    begin, end = (shape[axis] - 1, -(2**31)) if step < 0 else (int(program.rng.integers(shape[axis] - 1)), 2**31)
    names = [x, *(program.integers([n]) for n in (begin, end, axis, step))]
    cut = (*(slice(None),) * axis, slice(begin, None if step < 0 else end, step))
    program.add("Slice", names, lambda v, *_: v.moved(lambda a: a[cut]))


def _split(program: Program, x: str) -> None:
    shape = program.shapes[x]
    axes = [a for a, n in enumerate(shape) if n > 1]
    if not axes:
        return
    axis = int(_pick(program, axes))
    first = int(1 + program.rng.integers(shape[axis] - 1))
    names = [x, program.integers([first, shape[axis] - first])]
    program.add("Split", names, partial(_parted, first, axis), outputs=2, axis=axis)


def _parted(first: int, axis: int, x: Bounded, _: Any) -> list[Bounded]:
    values, errors = (np.split(a, [first], axis) for a in (x.value, x.error))
    return [Bounded(value, error, x.unit) for value, error in zip(values, errors, strict=True)]


_STEPS: tuple[Grow, ...] = (
    *(_unary, _unary, _unary, _binary, _binary, _binary, _quotient, _root, _clip, _product, _product, _gram, _conv),
    *(_conv, _pool, _normal, _batch_norm, _softmax, _reduce, _transpose, _reshape, _concat, _concat, _slice, _split),
)
