"""float32 to int8 or uint8 and back with one scale for all, as compiled calls."""

import numpy as np

from allocator.machine_code.door import address
from ops.native.call import native_call
from ops.quantised.args import LINEAR_ARGS
from ops.quantised.params import BYTES, SINGLE
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, contiguous_from, unless
from ops.windows.pixels import dense_pixels, pitch

_INT8 = np.dtype("int8")


def _supports(signature: Signature) -> bool:
    """Returns whether there is one scale of float32, bytes on one side and float32 on the other."""
    scale, x, y = signature.inputs[1], signature.x, signature.y
    quantised, real = (x, y) if x.dtype in BYTES else (y, x)
    precise = (signature.attrs.get("precision") or SINGLE) == SINGLE
    single = scale.size == 1 and scale.dtype == SINGLE and not signature.attrs["block_size"]
    return single and precise and quantised.dtype in BYTES and real.dtype == SINGLE and y.size > 0


_unsupported = unless(_supports, "not one scale of float32, or not 8 bits on one side and float32 on the other")


def _bind(call: Binding) -> Thunk:
    x, y = call.x, call.y
    flat = x.flags.c_contiguous and y.flags.c_contiguous
    length = x.size if flat else x.shape[-1]
    hops = (0, 0) if flat else (pitch(x) * x.itemsize, pitch(y) * y.itemsize)
    scale, *zero = map(np.asarray, call.inputs[1:])
    backwards = x.dtype != SINGLE
    signed = (x if backwards else y).dtype == _INT8
    return native_call(
        address("ops.quantised.elementwise_code", "linear"),
        LINEAR_ARGS,
        x=x,
        y=y,
        scale=scale,
        zero=zero[0] if zero else None,
        lines=x.size // length,
        length=length,
        x_hop=hops[0],
        y_hop=hops[1],
        backwards=int(backwards),
        signed=int(signed),
    )


LINEAR = Kernel(
    "native",
    _bind,
    contiguous=contiguous_from(1),
    reads=dense_pixels,
    unsupported=_unsupported,
    writes=dense_pixels,
    backend=NUMBA,
)
