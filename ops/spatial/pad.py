"""A tensor with a border (ONNX Pad-21)."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
from attrs import frozen

from ops.common.apply import Operand, V, apply1
from ops.common.costs import copy_cost
from ops.common.tiling import cut
from ops.common.windows import each
from ops.index.gather_gradient import GATHER_GRADIENT
from ops.movement.copies import Move
from ops.movement.kernels import movement
from ops.schema.attributes import Attribute, integers, one_of
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, OpSchema, Signature, Specs, Stripe
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, Axes, normalize_axes

_Indices = npt.NDArray[np.int64]
_OUTSIDE = -1


@frozen(eq=False)
class _Run:
    """`length` elements of the output from `start`; their sources begin at `source` and are `step` apart."""

    start: int
    length: int
    source: int
    step: int

    def target(self, y: Array, axis: int) -> Array:
        return _cut(y, axis, slice(self.start, self.start + self.length))

    def of(self, x: Array, axis: int) -> Array:
        if self.step == 0:
            return _cut(x, axis, slice(self.source, self.source + 1))
        return _cut(_cut(x, axis, slice(self.source, None, self.step)), axis, slice(0, self.length))


def _cut(array: Array, axis: int, part: slice) -> Array:
    view: Array = array[(slice(None),) * axis + (part,)]
    return view


def _pairs(attrs: Attrs, ndim: int) -> tuple[tuple[int, int], ...]:
    pads = attrs["pads"]
    if len(pads) != 2 * ndim:
        raise ShapeError(f"{len(pads)} pads for a tensor of {ndim} dimensions; 2 a dimension are wanted")
    return tuple(zip(pads[:ndim], pads[ndim:], strict=True))


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, pairs = inputs[0], _pairs(attrs, inputs[0].ndim)
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True))
    if any(n < 0 for n in shape):
        raise ShapeError(f"pads {attrs['pads']} take more from shape {x.shape} than there is")
    if attrs["mode"] != "constant":
        _check_borrowed(x.shape, shape, pairs)
    for value in inputs[1:]:
        if value.size != 1 or value.dtype != x.dtype:
            raise DtypeError(f"the constant value must be one {x.dtype}, not {value}")
    return (x.with_shape(shape),)


def _check_borrowed(source: tuple[int, ...], shape: tuple[int, ...], pairs: tuple[tuple[int, int], ...]) -> None:
    for axis, (n, m, (before, after)) in enumerate(zip(source, shape, pairs, strict=True)):
        if m and n + min(before, 0) + min(after, 0) <= 0:
            raise ShapeError(f"axis {axis} has no element left to fill its border with")


def _sources(mode: str, n: int, before: int, after: int) -> _Indices:
    """Returns, for each element of an output axis, its source along the input axis, or _OUTSIDE."""
    first, last = max(-before, 0), n - max(-after, 0)
    wanted = np.arange(-before, n + after) - first
    kept = last - first
    if mode == "constant":
        return np.where((wanted >= 0) & (wanted < kept), wanted + first, _OUTSIDE)
    if mode == "edge":
        return np.clip(wanted, 0, max(kept - 1, 0)) + first
    if mode == "wrap":
        return wanted % max(kept, 1) + first
    period = max(2 * (kept - 1), 1)
    return (kept - 1 - abs(wanted % period - (kept - 1)) if kept > 1 else wanted * 0) + first


def _runs(sources: _Indices) -> Iterator[_Run]:
    """Yields the longest runs of outputs whose sources are equally far apart, by at most 1."""
    start = 0
    while start < len(sources):
        end, step = start + 1, 0
        if _joined(sources[start : end + 1]):
            step = int(sources[end] - sources[start])
            while _joined(sources[end - 1 : end + 1]) and sources[end] - sources[end - 1] == step:
                end += 1
        yield _Run(start, end - start, int(sources[start]), step)
        start = end


def _joined(pair: _Indices) -> bool:
    """Returns whether two neighbours exist, lie at most 1 apart, and are both inside or both outside."""
    if len(pair) < 2:
        return False
    a, b = int(pair[0]), int(pair[1])
    return abs(b - a) <= 1 and (a == _OUTSIDE) == (b == _OUTSIDE)


def _part(call: Binding, runs: tuple[_Run, ...], value: Array) -> Move:
    source, y = call.x, call.y
    for axis, r in enumerate(runs):
        y = r.target(y, axis)
    if any(r.source == _OUTSIDE for r in runs):
        return value, y
    for axis, r in enumerate(runs):
        source = r.of(source, axis)
    return source, y


def _moves(call: Binding) -> Iterator[Move]:
    pairs = _pairs(call.attrs, call.x.ndim)
    axes = [
        tuple(_runs(_sources(call.attrs["mode"], n, before, after)))
        for n, (before, after) in zip(call.x.shape, pairs, strict=True)
    ]
    value = call.inputs[1].reshape(()) if len(call.inputs) > 1 else np.zeros((), call.y.dtype)
    return (_part(call, runs, value) for runs in product(*axes))


def _gradient(b: Backward) -> Terms:
    """Returns the gradients of x and of the constant.

    Elements of x that the border repeats collect their gradients axis by axis; a constant gets the sum of dy over the
    border.
    """
    if b.attrs["mode"] != "constant":
        return (_unborrowed(b), *(None for _ in b.inputs[1:]))
    inside = _inside(b)
    return b.terms(lambda: inside, lambda: b.reshape(b.sum(b.dy) - b.sum(inside), b.signature.inputs[1].shape))[
        : len(b.inputs)
    ]


def _inside(b: Backward) -> Tensor:
    """Returns dy where x lies in the output; 0 for elements that were cut off."""
    shape, pairs = b.signature.x.shape, _pairs(b.attrs, b.signature.x.ndim)
    if any(pad < 0 for pair in pairs for pad in pair):
        return b.pad(b.dy, [-before for before, _ in pairs], [-after for _, after in pairs])
    starts = [before for before, _ in pairs]
    return b.slice(b.dy, starts, [s + n for s, n in zip(starts, shape, strict=True)], range(len(shape)))


def _unborrowed(b: Backward) -> Tensor:
    """Returns the gradient of x for a border that repeats elements: padding is then a gather along each axis."""
    dy = b.dy
    for axis, (n, (before, after)) in enumerate(
        zip(b.signature.x.shape, _pairs(b.attrs, b.signature.x.ndim), strict=True)
    ):
        if before or after:
            sources = b.constant(_sources(b.attrs["mode"], n, before, after), b.signature.x)
            shape = (*dy.shape[:axis], n, *dy.shape[axis + 1 :])
            dy = b.apply1(GATHER_GRADIENT, dy, sources, shape=shape, axis=axis)
    return dy


def _rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows.

    None where they are border alone, where the border repeats rows of x, and where it adds images to a batch.
    """
    pads, count = signature.attrs["pads"], signature.x.shape[axis]
    if pads[0] or pads[signature.x.ndim]:
        return None
    before, after = pads[axis], pads[signature.x.ndim + axis]
    low, high = max(first - before, 0), min(last - before, count)
    if low >= high or (signature.attrs["mode"] != "constant" and (before or after)):
        return None
    rows = {axis: low - first + before, signature.x.ndim + axis: last - before - high}
    attrs = {**signature.attrs, "pads": tuple(rows.get(i, pad) for i, pad in enumerate(pads))}
    return Stripe((cut(axis, low, high), *(() for _ in signature.inputs[1:])), cut(axis, first, last), attrs)


PAD = OpSchema(
    name="pad",
    summary="x with pads[i] elements before and pads[ndim + i] after axis i; negative ones are taken away.",
    infer=_infer,
    kernels=movement(_moves),
    arity=(1, 2),
    attributes=(
        Attribute("pads", integers),
        Attribute("mode", one_of("constant", "reflect", "edge", "wrap"), "constant"),
    ),
    cost=copy_cost,
    gradient=_gradient,
    bit_copies=True,
    rows=_rows,
)
OPS = (PAD,)


def pad(
    x: V,
    pads: int | Sequence[int],
    mode: str = "constant",
    value: Operand | None = None,
    axes: Axes | None = None,
) -> V:
    """Adds a border. `pads` are all numbers before, then all after, of `axes` (of every axis where that is None).

    One number is that of every side. Negative pads take elements away. `mode` is constant (0 where no value is given),
    reflect, edge or wrap.
    """
    more = () if value is None else (value,)
    ndim = len(x.spec.shape)
    padded = tuple(range(ndim)) if axes is None else normalize_axes(axes, ndim)
    return apply1(PAD, x, *more, pads=_all_pads(each(pads, 2 * len(padded)), padded, ndim), mode=mode)


def _all_pads(pads: tuple[int, ...], padded: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    half = len(padded)
    if len(pads) != 2 * half:
        raise ShapeError(f"{len(pads)} pads for {half} axes; 2 an axis are wanted")
    before, after = (dict(zip(padded, part, strict=True)) for part in (pads[:half], pads[half:]))
    return tuple(side.get(i, 0) for side in (before, after) for i in range(ndim))
