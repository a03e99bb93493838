"""Output sizes and pads of a transposed convolution, as ONNX ConvTranspose defines them."""

import math

from attrs import frozen

from ops.common.windows import Windows, filled, tap_range
from ops.schema.schema import Attrs, Signature
from ops.tensor.errors import AttributeValueError, ShapeError
from ops.tensor.spec import Shape, TensorSpec
from ops.windows.pixels import channels_first


@frozen(eq=False)
class TransposeCase:
    """A transposed convolution in numbers. Its `windows` lie over the output, one for each input pixel."""

    channels: int
    out_channels: int
    group: int
    windows: Windows

    @property
    def taps(self) -> int:
        """Returns the elements of one window."""
        return math.prod(self.windows.kernel)

    @property
    def products(self) -> int:
        """Returns the products that are added to one image of y. What pads cut off of the windows has none."""
        w = self.windows
        lengths = ((tap_range(w, axis, tap)[0] for tap in range(w.kernel[axis])) for axis in range(w.ndim))
        pixels: int = math.prod(sum(inside.stop - inside.start for inside in line) for line in lengths)
        return pixels * self.channels * (self.out_channels // self.group)


def transpose_case(x: TensorSpec, w: TensorSpec, attrs: Attrs) -> TransposeCase:
    """Returns the numbers. Raises ShapeError or AttributeValueError where weights, groups and data do not fit."""
    group, kernel = attrs["group"], w.shape[2:]
    if x.ndim < 3 or w.ndim != x.ndim:
        raise ShapeError(f"data {x.shape} and weights {w.shape} must both have 2 + spatial dimensions, at least 3")
    if group < 1 or x.shape[1] % group or w.shape[0] != x.shape[1] or 0 in kernel:
        raise ShapeError(f"weights {w.shape} in {group} groups do not fit data {x.shape}")
    if attrs["kernel_shape"] and attrs["kernel_shape"] != kernel:
        raise AttributeValueError(f"kernel_shape {attrs['kernel_shape']} differs from that of the weights, {kernel}")
    return TransposeCase(x.shape[1], w.shape[1] * group, group, _windows(x.shape[2:], kernel, attrs))


def nhwc_case_of(signature: Signature) -> TransposeCase:
    """Returns the numbers of an inferred signature whose x has its channels last."""
    return transpose_case(channels_first(signature.x), signature.inputs[1], signature.attrs)


def _windows(pixels: Shape, kernel: Shape, attrs: Attrs) -> Windows:
    n = len(pixels)
    strides = filled("strides", attrs["strides"], n, 1, 1)
    dilations = filled("dilations", attrs["dilations"], n, 1, 1)
    more = filled("output_padding", attrs["output_padding"], n, 0, 0)
    reach = tuple(
        (i - 1) * s + (k - 1) * d + 1 + o
        for i, k, s, d, o in zip(pixels, kernel, strides, dilations, more, strict=True)
    )
    begins, ends, sizes = _pads(attrs, pixels, strides, reach)
    if min(sizes) < 0:
        raise ShapeError(f"pads {begins + ends} leave nothing of an output of {reach}")
    return Windows(sizes, kernel, strides, dilations, begins, ends, pixels)


def _pads(attrs: Attrs, pixels: Shape, strides: Shape, reach: Shape) -> tuple[Shape, Shape, Shape]:
    """Returns pads at begin and end, and output sizes; all windows together span `reach` elements."""
    n, auto = len(pixels), attrs["auto_pad"]
    pads = filled("pads", attrs["pads"], 2 * n, 0, 0)
    sizes = filled("output_shape", attrs["output_shape"][-n:], n, 0, 0)
    if not attrs["output_shape"]:
        if auto in ("NOTSET", "VALID"):
            begins, ends = pads[:n], pads[n:]
            return begins, ends, tuple(r - a - b for r, a, b in zip(reach, begins, ends, strict=True))
        sizes = tuple(i * s for i, s in zip(pixels, strides, strict=True))
    totals = [max(r - size, 0) for r, size in zip(reach, sizes, strict=True)]
    small, large = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
    return (small, large, sizes) if auto == "SAME_UPPER" else (large, small, sizes)
