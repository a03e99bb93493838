"""The elements that a deformable convolution multiplies by its weights (ONNX DeformConv-22)."""

import math
from itertools import product

import numpy as np

from allocator.machine_code.door import address
from ops.common.apply import Operand, V, apply1
from ops.common.indices import INT64
from ops.common.windows import DILATIONS, PADS, STRIDES, Windows, windows
from ops.native.call import native_call
from ops.schema.attributes import Attribute, integer, integers
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.spatial.args import DEFORMED
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import BOOL, Array, TensorSpec

_DTYPES = (np.dtype("float32"), np.dtype("float64"))


def _windows(x: TensorSpec, attrs: Attrs) -> Windows:
    return windows(x.shape[2:], attrs["kernel_shape"], {**attrs, "auto_pad": "NOTSET"})


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, groups, kernel = inputs[0], attrs["offset_group"], attrs["kernel_shape"]
    if x.dtype not in _DTYPES or any(s.dtype != x.dtype for s in inputs):
        raise DtypeError(f"takes float32 or float64 for all inputs, not {', '.join(str(s.dtype) for s in inputs)}")
    if x.ndim != 4 or len(kernel) != 2:
        raise ShapeError(f"takes images (N, C, H, W) and a kernel of 2 lengths, not {x} and {kernel}")
    if 0 in x.shape[2:]:
        raise ShapeError(f"there is nothing to sample in {x}")
    if groups < 1 or x.shape[1] % groups:
        raise AttributeValueError(f"offset_group is {groups}, and {x.shape[1]} channels are no multiple of it")
    taps, outputs = math.prod(kernel), _windows(x, attrs).outputs
    for spec, each in zip(inputs[1:], (2, 1), strict=False):
        wanted = (x.shape[0], groups * taps * each, *outputs)
        if spec.shape != wanted:
            raise ShapeError(f"offsets or masks of shape {spec.shape} for {x} and a kernel of {kernel}; not {wanted}")
    return (x.with_shape((x.shape[0], x.shape[1] * taps, *outputs)),)


def _temporaries(signature: Signature) -> Specs:
    """Returns the specs of rows of numbers of all outputs of one tap, of elements, of truths; and of channels' values.

    The numbers are places and the rest of the way on both axes, the weight of an element, and scratch.
    """
    x, outputs = signature.x, math.prod(signature.y.shape[2:])
    channels = x.shape[1] // signature.attrs["offset_group"]
    rows = x.with_shape((6, outputs))
    return rows, TensorSpec((2, outputs), INT64), TensorSpec((outputs,), BOOL), x.with_shape((channels, outputs))


class _Sampler:
    """The samples of one tap of one image and group after the other."""

    def __init__(self, call: Binding) -> None:
        x, offset, *mask = call.inputs
        w = _windows(call.signature.x, call.attrs)
        groups, taps, outputs = call.attrs["offset_group"], math.prod(w.kernel), math.prod(w.outputs)
        lead = len(x) * groups
        self.lengths, self.taps = w.sizes, tuple(product(*map(range, w.kernel)))
        self.images = x.reshape(lead, x.shape[1] // groups, math.prod(w.sizes))
        self.offsets = offset.reshape(lead, taps, 2, outputs)
        self.masks = mask[0].reshape(lead, taps, outputs) if mask else None
        self.y = call.y.reshape(lead, x.shape[1] // groups, taps, outputs)
        starts = [np.arange(n) * s - b for n, s, b in zip(w.outputs, w.strides, w.begins, strict=True)]
        self.starts = starts[0].astype(x.dtype)[:, None], starts[1].astype(x.dtype)
        self.outputs, self.dilations = w.outputs, w.dilations
        self.rows, (self.element, self.part), self.inside, self.values = call.temporaries

    def run(self) -> None:
        for i, image in enumerate(self.images):
            for t, tap in enumerate(self.taps):
                self._sample(image, self.offsets[i, t], tap, self.y[i, :, t])
                if self.masks is not None:
                    np.multiply(self.y[i, :, t], self.masks[i, t], out=self.y[i, :, t])

    def _sample(self, image: Array, offset: Array, tap: tuple[int, ...], y: Array) -> None:
        base, rest, weight, factor = self.rows[:2], self.rows[2:4], self.rows[4], self.rows[5]
        for axis in range(2):
            start = tap[axis] * self.dilations[axis]
            np.add(self.starts[axis], start, out=rest[axis].reshape(self.outputs))
            np.add(rest[axis], offset[axis], out=rest[axis])
            np.floor(rest[axis], out=base[axis])
            np.subtract(rest[axis], base[axis], out=rest[axis])
        y.fill(0)
        for corner in product((0, 1), repeat=2):
            weight.fill(1)
            self.element.fill(0)
            for axis, step in enumerate(corner):
                np.copyto(factor, rest[axis]) if step else np.subtract(1, rest[axis], out=factor)
                np.multiply(weight, factor, out=weight)
                self._place(base[axis], step, self.lengths[axis])
            np.take(image, self.element, axis=1, out=self.values, mode="clip")
            np.multiply(self.values, weight, out=self.values)
            np.add(y, self.values, out=y)

    def _place(self, base: Array, step: int, length: int) -> None:
        """Adds up the elements that the corners lie on; those outside have no weight."""
        weight, factor = self.rows[4], self.rows[5]
        np.add(base, step, out=factor)
        np.greater_equal(factor, 0, out=self.inside)
        np.multiply(weight, self.inside, out=weight)
        np.less(factor, length, out=self.inside)
        np.multiply(weight, self.inside, out=weight)
        np.clip(factor, 0, length - 1, out=factor)
        np.copyto(self.part, factor, casting="unsafe")
        np.multiply(self.element, length, out=self.element)
        np.add(self.element, self.part, out=self.element)


def _bind(call: Binding) -> Thunk:
    return _Sampler(call).run


def _bind_native(call: Binding) -> Thunk:
    x, offset, *mask = call.inputs
    w, groups = _windows(call.signature.x, call.attrs), call.attrs["offset_group"]
    return native_call(
        address("ops.spatial.deformed_code", f"read_windows_{x.dtype.name}"),
        DEFORMED,
        x=x,
        y=call.y,
        offset=offset,
        mask=mask[0] if mask else None,
        images=len(x) * groups,
        channels=x.shape[1] // groups,
        lengths=w.sizes,
        kernel=w.kernel,
        strides=w.strides,
        begins=w.begins,
        dilations=w.dilations,
        outputs=w.outputs,
    )


def _cost(signature: Signature) -> Cost:
    return Cost(8 * signature.y.size, signature.nbytes)


DEFORMED_WINDOWS = OpSchema(
    name="deformed_windows",
    summary="(N, C, H, W) to (N, C * taps, outputs): what windows read whose taps are moved by offsets and weighed by a"
    " mask, interpolated; 0 outside.",
    infer=_infer,
    kernels=(
        Kernel("native", _bind_native, contiguous=all_contiguous, backend=NUMBA),
        Kernel("numpy", _bind, _temporaries, all_contiguous),
    ),
    arity=(2, 3),
    attributes=(
        Attribute("kernel_shape", integers),
        STRIDES,
        PADS,
        DILATIONS,
        Attribute("offset_group", integer, 1),
    ),
    cost=_cost,
)
OPS = (DEFORMED_WINDOWS,)


def deformed_windows(
    x: V,
    offset: Operand,
    mask: Operand | None = None,
    *,
    kernel_shape: tuple[int, int],
    strides: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    dilations: tuple[int, ...] = (),
    offset_group: int = 1,
) -> V:
    """Returns the elements of x (N, C, H, W) in windows whose taps are moved: (N, C * taps, rows, columns).

    `offset` has a row and a column for each tap and output, (N, groups * taps * 2, rows, columns), and `mask` a factor.
    """
    more = () if mask is None else (mask,)
    return apply1(
        DEFORMED_WINDOWS,
        x,
        offset,
        *more,
        kernel_shape=kernel_shape,
        strides=strides,
        pads=pads,
        dilations=dilations,
        offset_group=offset_group,
    )
