"""Uses of operators at points where they have a gradient, valid by construction; every choice is a number below n."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

import ops
from ops.tensor.spec import Array, Shape
from tests.helpers.graphs.random_graphs import Choose
from tests.helpers.ops.gradient_checks import Build

_GRID = 32


@frozen(eq=False)
class Case:
    """A function of vars and where to differentiate it."""

    name: str
    build: Build = field(repr=False)
    arrays: tuple[Array, ...] = field(repr=lambda arrays: str([a.shape for a in arrays]))


Family = Callable[[Choose], Case]


def numbers(choose: Choose, shape: Shape, low: float = -2.0, high: float = 2.0, nth: int = 0) -> Array:
    """Draws numbers that all differ, from low to high, and are never near a multiple of 1 / 32, where kinks are.

    Those of inputs with another `nth` (up to 3) are never near each other.
    """
    count = int(np.prod(shape))
    cells = np.arange(int(low * _GRID), int(high * _GRID))
    picked = np.random.default_rng(choose(1 << 30)).choice(cells, count, replace=count > len(cells))
    return (picked.reshape(shape) + (2 * nth + 1) / 8) / _GRID


def _dims(choose: Choose, ndim: int, most: int = 3) -> Shape:
    """Draws lengths from 1 on, now and then one of 0."""
    shape = [1 + choose(most) for _ in range(ndim)]
    if ndim and choose(12) == 0:
        shape[choose(ndim)] = 0
    return tuple(shape)


def _shape(choose: Choose, least: int = 0, most: int = 3) -> Shape:
    return _dims(choose, least + choose(most - least + 1))


def _narrowed(choose: Choose, shape: Shape) -> Shape:
    """Draws a shape that broadcasts to this one."""
    kept = tuple(1 if choose(3) == 0 else n for n in shape)
    return kept[choose(len(kept) + 1) :]


def _axis(choose: Choose, ndim: int) -> int:
    return choose(2 * ndim) - ndim


def _pick(choose: Choose, items: Sequence[Any]) -> Any:
    return items[choose(len(items))]


_DOMAINS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("abs", "neg", "exp", "erf", "sin", "cos", "atan", "sinh", "cosh", "asinh", "tanh"), (-2.0, 2.0)),
    **dict.fromkeys(("sigmoid", "softplus", "mish", "softsign", "relu"), (-3.0, 3.0)),
    **dict.fromkeys(("log", "sqrt", "reciprocal"), (0.25, 3.0)),
    **dict.fromkeys(("tan", "asin", "acos", "atanh"), (-0.75, 0.75)),
    **dict.fromkeys(("floor", "ceil", "round", "sign", "identity"), (-2.0, 2.0)),
    "acosh": (1.5, 4.0),
    "hard_swish": (-5.0, 5.0),
}


def functions_of_one(choose: Choose) -> Case:
    name = _pick(choose, tuple(_DOMAINS))
    return Case(name, getattr(ops, name), (numbers(choose, _shape(choose), *_DOMAINS[name]),))


def activations(choose: Choose) -> Case:
    alpha, beta = (0.0625 * (1 + choose(24)) for _ in range(2))
    sign = (1, -1)[choose(2)]
    name, build = _pick(
        choose,
        (
            ("leaky_relu", lambda x: ops.leaky_relu(x, sign * alpha)),
            ("thresholded_relu", lambda x: ops.thresholded_relu(x, sign * alpha)),
            ("shrink", lambda x: ops.shrink(x, sign * alpha, beta)),
            ("hard_sigmoid", lambda x: ops.hard_sigmoid(x, 0.5, sign * beta)),
            ("elu", lambda x: ops.elu(x, sign * alpha)),
            ("selu", lambda x: ops.selu(x, alpha, sign * beta)),
            ("celu", lambda x: ops.celu(x, sign * alpha)),
            ("swish", lambda x: ops.swish(x, sign * alpha)),
            ("gelu", lambda x: ops.gelu(x, ("none", "tanh")[sign > 0])),
        ),
    )
    return Case(name, build, (numbers(choose, _shape(choose), -3.0, 3.0),))


def activations_of_several(choose: Choose) -> Case:
    shape = _shape(choose)
    x = numbers(choose, shape)
    if choose(2):
        return Case("prelu", ops.prelu, (x, numbers(choose, _narrowed(choose, shape), nth=1)))
    bounds = (numbers(choose, (1,) * choose(2), -1.0, 1.0, nth=nth) for nth in (1, 2))
    return Case("clip", ops.clip, (x, *bounds))


def binary(choose: Choose) -> Case:
    shape = _shape(choose)
    a = numbers(choose, _narrowed(choose, shape))
    name, build = _pick(
        choose,
        (
            *((n, getattr(ops, n)) for n in ("add", "sub", "mul", "div", "mod")),
            ("fmod", lambda a, b: ops.mod(a, b, True)),
            ("where", lambda a, b: ops.where(ops.less(a, b), a, b)),
            ("one input twice", lambda a, b: a * b * a),
        ),
    )
    return Case(name, build, (a, numbers(choose, _narrowed(choose, shape), 0.5, 2.5, nth=1) + 1 / _GRID / 8))


def power(choose: Choose) -> Case:
    shape = _shape(choose)
    base = numbers(choose, shape, 0.25, 2.0)
    kind = choose(3)
    if kind == 0:
        return Case("pow", ops.pow, (base, numbers(choose, _narrowed(choose, shape), nth=1)))
    if kind == 1:
        whole = np.random.default_rng(choose(99)).integers(-2, 4, _narrowed(choose, shape))
        return Case("pow of integers", lambda x: ops.pow(x, whole), (numbers(choose, shape),))
    exponent = _pick(choose, (-1.0, 0.5, 1.0, 2.0, 3.0, 1.75))
    return Case(f"pow {exponent}", lambda x: ops.pow(x, exponent), (base,))


def variadic(choose: Choose) -> Case:
    shape = _shape(choose)
    name = _pick(choose, ("sum", "mean", "min", "max"))
    arrays = tuple(numbers(choose, _narrowed(choose, shape), nth=nth) for nth in range(1 + choose(3)))
    return Case(name, getattr(ops, name), arrays)


_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum", "log_sum_exp")


def reductions(choose: Choose) -> Case:
    name = _pick(choose, _REDUCTIONS)
    shape = _shape(choose)
    axes = None if choose(3) == 0 else tuple(a for a in range(len(shape)) if choose(2))
    if name in ("log_sum", "l2", "log_sum_exp", "mean"):
        shape = tuple(max(n, 1) for n in shape)  # of nothing they are infinite, or not even a number
    low = 0.25 if name == "log_sum" else -2.0
    keepdims = bool(choose(2))
    return Case(
        f"reduce_{name} {axes}",
        lambda x: getattr(ops, f"reduce_{name}")(x, axes, keepdims),
        (numbers(choose, shape, low),),
    )


def along_one_axis(choose: Choose) -> Case:
    shape = _shape(choose, least=1)
    axis, yes, no = _axis(choose, len(shape)), bool(choose(2)), bool(choose(2))
    k = choose(shape[axis] + 1)
    name, build = _pick(
        choose,
        (
            ("softmax", lambda x: ops.softmax(x, axis)),
            ("log_softmax", lambda x: ops.log_softmax(x, axis)),
            ("cum_sum", lambda x: ops.cum_sum(x, axis, yes, no)),
            ("top_k", lambda x: ops.top_k(x, k, axis, yes)),
            ("hardmax", lambda x: ops.hardmax(x, axis) if shape[axis] else x),
        ),
    )
    return Case(f"{name} {axis}", build, (numbers(choose, shape),))


def matmul(choose: Choose) -> Case:
    batch, (m, k, n) = _dims(choose, choose(3), 2), _dims(choose, 3)
    left = (k,) if choose(4) == 0 else (*_narrowed(choose, batch), m, k)
    right = (k,) if choose(4) == 0 else (*_narrowed(choose, batch), k, n)
    return Case(f"matmul {left} {right}", ops.matmul, (numbers(choose, left), numbers(choose, right)))


def gemm(choose: Choose) -> Case:
    m, k, n = _dims(choose, 3)
    flags: dict[str, Any] = {"trans_a": bool(choose(2)), "trans_b": bool(choose(2))}
    flags |= {"alpha": 0.5 * choose(4), "beta": 0.5 * choose(4)}
    a, b = ((k, m) if flags["trans_a"] else (m, k)), ((n, k) if flags["trans_b"] else (k, n))
    arrays = [numbers(choose, a), numbers(choose, b)]
    if choose(2):
        arrays.append(numbers(choose, _narrowed(choose, (m, n))))
    return Case(f"gemm {flags}", lambda *v: ops.gemm(*v, **flags), tuple(arrays))


def einsum(choose: Choose) -> Case:
    sizes = dict(zip("abcd", _dims(choose, 4), strict=True))
    terms = ["".join(_pick(choose, "abcd") for _ in range(choose(4))) for _ in range(1 + choose(3))]
    left = "".join(dict.fromkeys("".join(terms)))
    result = "".join(label for label in left if choose(2))
    shapes = [tuple(sizes[n] if t.count(n) > 1 or choose(5) else 1 for n in t) for t in terms]
    equation = f"{','.join(terms)}->{result}"
    if choose(3) == 0:
        equation, shapes = _with_dots(choose, terms, result, shapes)
    arrays = tuple(numbers(choose, shape) for shape in shapes)
    return Case(f"einsum {equation}", lambda *v: ops.einsum(equation, *v), arrays)


def _with_dots(choose: Choose, terms: list[str], result: str, shapes: list[Shape]) -> tuple[str, list[Shape]]:
    batch = _dims(choose, choose(3), 2)
    fronts = [_narrowed(choose, batch) for _ in terms]
    dotted = ",".join(f"...{term}" for term in terms)
    return f"{dotted}->...{result}", [(*f, *s) for f, s in zip(fronts, shapes, strict=True)]


def views(choose: Choose) -> Case:
    shape = _shape(choose, least=1)
    axis, perm = _axis(choose, len(shape)), np.random.default_rng(choose(99)).permutation(len(shape)).tolist()
    cut, times = choose(shape[axis] + 1), (1 + choose(2),) * choose(2)
    name, build = _pick(
        choose,
        (
            ("reshape", lambda x: ops.reshape(x, (*shape[::-1], 1))),
            ("transpose", lambda x: ops.transpose(x, perm) * 2.0),
            ("expand", lambda x: ops.expand(x, (*times, *shape))),
            ("split", lambda x: tuple(ops.split(x, (cut, shape[axis] - cut), axis))),
            ("a part of a split", lambda x: ops.split(x, (cut, shape[axis] - cut), axis)[1]),
            ("cast", lambda x: ops.cast(ops.cast(x, "float64"), "float64")),
            ("dropout", ops.dropout),
        ),
    )
    return Case(name, build, (numbers(choose, shape),))


def slices(choose: Choose) -> Case:
    shape = _shape(choose, least=1)
    axes = [a for a in range(len(shape)) if choose(2)]
    starts, ends = ([choose(11) - 5 for _ in axes] for _ in range(2))
    steps = [_pick(choose, (1, 1, 2, -1, -2)) for _ in axes]
    return Case(
        f"slice {starts} {ends} {axes} {steps}",
        lambda x: ops.slice(x, starts, ends, axes, steps),
        (numbers(choose, shape),),
    )


def joined(choose: Choose) -> Case:
    shape = _shape(choose, least=1)
    axis = choose(len(shape))
    if choose(3) == 0:
        return Case("stack", lambda *v: ops.stack(v, axis), tuple(numbers(choose, shape) for _ in range(2)))
    shapes = [(*shape[:axis], choose(3), *shape[axis + 1 :]) for _ in range(1 + choose(3))]
    return Case(f"concat {axis}", lambda *v: ops.concat(v, axis), tuple(numbers(choose, s) for s in shapes))


def spread(choose: Choose) -> Case:
    shape = tuple(max(n, 1) for n in _shape(choose, most=2))
    if choose(2):
        repeats = [choose(3) for _ in shape]
        return Case(f"tile {repeats}", lambda x: ops.tile(x, repeats), (numbers(choose, shape),))
    mode = _pick(choose, ("constant", "constant", "reflect", "edge", "wrap"))
    pads = [max(choose(5) - 1, -(n - 1) // 2) for _ in range(2) for n in shape]
    if mode == "constant" and choose(2):
        arrays = (numbers(choose, shape), numbers(choose, ()))
        return Case(f"pad {pads} with", lambda x, v: ops.pad(x, pads, value=v), arrays)
    return Case(f"pad {pads} {mode}", lambda x: ops.pad(x, pads, mode), (numbers(choose, shape),))


def _indices(choose: Choose, shape: Shape, length: int) -> Array:
    dtype = (np.int64, np.int32)[choose(2)]
    return np.random.default_rng(choose(999)).integers(-length, length, shape).astype(dtype)


def picked(choose: Choose) -> Case:
    shape = tuple(max(n, 1) for n in _shape(choose, least=1))
    x, axis, kind = numbers(choose, shape), _axis(choose, len(shape)), choose(3)
    if kind == 0:
        at = _indices(choose, _shape(choose, most=2), shape[axis])
        return Case(f"gather {axis}", lambda x: ops.gather(x, at, axis), (x,))
    if kind == 1:
        here = [1 + choose(n) for n in shape]
        here[axis] = choose(4)
        at = _indices(choose, tuple(here), shape[axis])
        return Case(f"gather_elements {axis}", lambda x: ops.gather_elements(x, at, axis), (x,))
    batch = choose(len(shape))
    depth = 1 + choose(len(shape) - batch)
    rows = (*shape[:batch], *(() if choose(2) else (choose(3),)))
    at = np.stack([_indices(choose, rows, n) for n in shape[batch : batch + depth]], -1).astype(np.int64)
    return Case(f"gather_nd {batch}", lambda x: ops.gather_nd(x, at, batch), (x,))


def scattered(choose: Choose) -> Case:
    """Draws a scatter; without a reduction, its indices differ."""
    reduction, rows, width = ("none", "add")[choose(2)], 2 + choose(3), 1 + choose(2)
    rng = np.random.default_rng(choose(999))
    count = choose(rows + 1)
    at = rng.permutation(rows)[:count] if reduction == "none" else rng.integers(-rows, rows, count)
    data, updates = numbers(choose, (rows, width)), numbers(choose, (count, width), nth=1)
    if choose(2):
        return Case(
            f"scatter_nd {reduction}", lambda x, u: ops.scatter_nd(x, at[:, None], u, reduction), (data, updates)
        )
    columns = np.repeat(at[:, None], width, 1)
    return Case(
        f"scatter_elements {reduction}",
        lambda x, u: ops.scatter_elements(x, columns, u, 0, reduction),
        (data, updates),
    )


def arranged(choose: Choose) -> Case:
    b, mode, upper = 1 + choose(2), ("DCR", "CRD")[choose(2)], bool(choose(2))
    images, sequences, k = (1, 2 * b * b, 1 + choose(2), 1), (3, 2, 1 + choose(2)), choose(5) - 2
    wide = (1, 1 + choose(2), b, 2 * b)
    lengths = _indices(choose, (2,), 2).astype(np.int64) % 4
    off_on, hot = np.array([0, 2, 1, 5]), -1 if choose(2) else 0
    name, build, shape = _pick(
        choose,
        (
            ("depth_to_space", lambda x: ops.depth_to_space(x, b, mode), images),
            ("space_to_depth", lambda x: ops.space_to_depth(x, b, mode), wide),
            ("trilu", lambda x: ops.trilu(x, upper, k), (2, *wide[1:])),
            ("reverse_sequence", lambda x: ops.reverse_sequence(x, lengths), sequences),
            ("one_hot", lambda v: ops.one_hot(v.graph.constant(off_on), v, 3, hot), (2,)),
            ("eye_like", ops.eye_like, (2, 3)),
        ),
    )
    return Case(name, build, (numbers(choose, shape),))


def resized(choose: Choose) -> Case:
    shape = tuple(max(n, 1) for n in _shape(choose, least=1, most=2))
    options: dict[str, Any] = {
        "mode": _pick(choose, ("nearest", "linear", "cubic")),
        "coordinate_transformation_mode": _pick(
            choose, ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
        ),
        "exclude_outside": bool(choose(2)),
        "antialias": bool(choose(2)),
        "roi": (-0.25,) * len(shape) + (1.25,) * len(shape),
    }
    if options["mode"] == "nearest":
        options |= {"exclude_outside": False, "antialias": False}
    if choose(2):
        options["scales"] = tuple(_pick(choose, (0.5, 1.0, 2.0, 2.5)) for _ in shape)
    else:
        options["sizes"] = tuple(n * (1 + choose(3)) if choose(2) else choose(8) for n in shape)
    return Case(f"resize {options}", lambda x: ops.resize(x, **options), (numbers(choose, shape),))


FAMILIES: tuple[Family, ...] = (
    *(functions_of_one, functions_of_one, activations, activations_of_several, binary, power, variadic, reductions),
    *(along_one_axis, matmul, gemm, einsum, views, slices, joined, spread, picked, scattered, arranged, resized),
)
"""Where one covers many operators, it stands twice."""
