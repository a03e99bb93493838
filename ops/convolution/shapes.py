"""Shapes of convolutions: inference, checks, and the numbers that kernels need."""

import math

from attrs import frozen

from ops.common.windows import Windows, windows
from ops.schema.schema import Attrs, Cost, Signature, Specs
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import FLOATS, Shape, TensorSpec


def planar(values: Shape, default: int) -> Shape:
    """Returns one entry for each of two dimensions; a single entry is that of the last dimension."""
    return values if len(values) == 2 else (default, *values)


def planar_geometry(w: Windows) -> Shape:
    """Returns strides, dilations, begin pads and kernel, two of each; for one or two spatial dimensions."""
    return *planar(w.strides, 1), *planar(w.dilations, 1), *planar(w.begins, 0), *planar(w.kernel, 1)


@frozen(eq=False)
class ConvCase:
    """A convolution in numbers: x (batch, channels, sizes...), w (out_channels, channels / group, kernel...)."""

    batch: int
    channels: int
    out_channels: int
    group: int
    windows: Windows

    @property
    def taps(self) -> int:
        """Returns the elements of one window."""
        return math.prod(self.windows.kernel)

    @property
    def pixels(self) -> int:
        """Returns the outputs of one channel."""
        return math.prod(self.windows.outputs)

    @property
    def filters(self) -> Shape:
        """Returns the shape of the weights as one matrix (one for each group)."""
        depth = self.channels // self.group * self.taps
        if self.group == 1:
            return self.out_channels, depth
        return self.group, self.out_channels // self.group, depth


def check_operands(inputs: Specs, out_channels: int) -> None:
    """Raises DtypeError for element types that differ or are no floats, ShapeError for a bias that is not (O,)."""
    x = inputs[0]
    if x.dtype not in FLOATS or any(s.dtype != x.dtype for s in inputs):
        shown = ", ".join(s.dtype.name for s in inputs)
        raise DtypeError(f"takes floating-point numbers of one type, not {shown}")
    if len(inputs) > 2 and inputs[2].shape != (out_channels,):
        raise ShapeError(f"bias has shape {inputs[2].shape}, not {(out_channels,)}")


def conv_case(x: TensorSpec, w: TensorSpec, attrs: Attrs) -> ConvCase:
    """Returns the numbers. Raises ShapeError or AttributeValueError where weights, groups and data do not fit."""
    group = attrs["group"]
    if x.ndim < 3 or w.ndim != x.ndim:
        raise ShapeError(f"data {x.shape} and weights {w.shape} must both have 2 + spatial dimensions, at least 3")
    if group < 1:
        raise AttributeValueError(f"group is {group}; it must be at least 1")
    if w.shape[1] * group != x.shape[1] or w.shape[0] % group:
        raise ShapeError(f"weights {w.shape} in {group} groups do not fit {x.shape[1]} channels")
    kernel = w.shape[2:]
    if attrs["kernel_shape"] and attrs["kernel_shape"] != kernel:
        raise AttributeValueError(f"kernel_shape {attrs['kernel_shape']} differs from that of the weights, {kernel}")
    if 0 in kernel:
        raise ShapeError(f"weights {w.shape} have an empty window")
    return ConvCase(x.shape[0], x.shape[1], w.shape[0], group, windows(x.shape[2:], kernel, attrs))


def infer_conv(inputs: Specs, attrs: Attrs) -> Specs:
    """Returns y, (N, O, outputs...)."""
    x, w = inputs[:2]
    case = conv_case(x, w, attrs)
    check_operands(inputs, case.out_channels)
    return (x.with_shape((case.batch, case.out_channels, *case.windows.outputs)),)


def case_of(signature: Signature) -> ConvCase:
    """Returns the numbers of an inferred signature."""
    return conv_case(signature.inputs[0], signature.inputs[1], signature.attrs)


def conv_cost(signature: Signature) -> Cost:
    """Returns two operations for each tap of each output; the weights are input 1, (O, C / group, kernel...)."""
    return Cost(2 * signature.y.size * math.prod(signature.inputs[1].shape[1:]), signature.nbytes)
