"""Layer, RMS, instance and group normalization in compiled code."""

import math
from collections.abc import Callable

from allocator.machine_code.door import address
from ops.native.call import Native, native_call
from ops.norm.args import NORM
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, all_contiguous, unless
from ops.tensor.spec import normalize_axis
from ops.vector.rows import all_single, not_single_elements


def _native(  # noqa: PLR0917 - a row of numbers
    call: Binding, function: str, rows: int, centred: bool, image_rows: int = 1, row_channels: int = 1
) -> Thunk:
    x, scale, *shift = call.inputs
    y, *statistics = call.outputs
    means, factors = statistics or (None, None)
    return native_call(
        address("ops.norm.code", function),
        NORM,
        rows=rows,
        length=x.size // rows,
        x=x,
        y=y,
        scales=scale,
        shifts=shift[0] if shift else None,
        means=means,
        factors=factors,
        centred=centred,
        epsilon=call.attrs["epsilon"],
        image_rows=image_rows,
        row_channels=row_channels,
    )


def _width(signature: Signature) -> int:
    shape = signature.x.shape
    return math.prod(shape[normalize_axis(signature.attrs["axis"], len(shape)) :])


def _whole_scales(signature: Signature) -> bool:
    """Returns whether scales and shifts have a number for each element of a row."""
    return all_single(signature) and all(s.size == _width(signature) > 0 for s in signature.inputs[1:])


_not_whole_scales = unless(_whole_scales, "not float32, or a scale that is not one number for each element of a row")


def row_kernel(*, centred: bool) -> Kernel:
    """Returns the kernel over the dimensions from `axis` on."""

    def bind(call: Binding) -> Thunk:
        rows = call.x.size // _width(call.signature)
        return _native(call, "norm_rows", rows, centred) if rows else Native(())

    return Kernel("vector", bind, contiguous=all_contiguous, unsupported=_not_whole_scales, backend=NUMBA)


def channel_kernel(groups: Callable[[Signature], int]) -> Kernel:
    """Returns the kernel over groups of channels of each image; groups(signature) is their number."""

    def bind(call: Binding) -> Thunk:
        images, channels = call.x.shape[:2]
        rows = groups(call.signature)
        return _native(call, "norm_channels", images * rows, True, rows, channels // rows)

    return Kernel("vector", bind, contiguous=all_contiguous, unsupported=not_single_elements, backend=NUMBA)
