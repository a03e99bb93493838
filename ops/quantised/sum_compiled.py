"""The sum of two tensors of codes of one shape, as a compiled call."""

from collections.abc import Callable

import numpy as np

from ops.native.call import Native, Step
from ops.native.door import address
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Kernel, Signature, Thunk
from ops.windows.pixels import dense_pixels, pitch

_INT8, _SHIFT = np.dtype("int8"), 128


def _supports(signature: Signature) -> bool:
    a, b = signature.inputs
    return a.shape == b.shape and a.size > 0


def sum_kernel(bounds: Callable[[Attrs], tuple[float, float]]) -> Kernel:
    """The kernel; `bounds` gives the least and the greatest code of y."""

    def bind(call: Binding) -> Thunk:
        arrays = (*call.inputs, call.y)
        flat = all(a.flags.c_contiguous for a in arrays)
        length = call.y.size if flat else call.y.shape[-1]
        hops = (0, 0, 0) if flat else tuple(map(pitch, arrays))
        flips = [_SHIFT if a.dtype == _INT8 else 0 for a in call.inputs]
        attrs = call.attrs
        zeros = [attrs[f"{n}_zero"] + flip for n, flip in zip("ab", flips, strict=True)]
        numbers = zeros[0], attrs["a_factor"], zeros[1], attrs["b_factor"], attrs["y_zero"], *bounds(attrs)
        places = (a.ctypes.data for a in arrays)
        words = *places, call.y.size // length, length, *hops, *flips, *map(float, numbers)
        return Native((Step(address("ops.quantised.sum_code", "run", ()), words),), arrays)

    return Kernel("native", bind, reads=dense_pixels, supports=_supports, writes=dense_pixels, backend=NUMBA)
