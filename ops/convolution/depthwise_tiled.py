"""Channels-last depthwise convolution, compiled: vectors along the channels, sums of some pixels in registers.

Zhang, Franchetti, Low, "High Performance Zero-Memory Overhead Direct Convolutions" (2018): with the channels last,
pixels are read where they lie, and nothing is padded or copied.
"""

from collections.abc import Mapping

import numpy as np

from ops.common.epilogue import limits
from ops.convolution.nhwc_shapes import case_of, dense_operands, operands
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Kernel, Signature, Specs, Thunk, first_weights, unless
from ops.tensor.spec import Array
from ops.windows.args import DEPTHWISE, SPREAD
from ops.windows.call import Activation, windows_call
from ops.windows.pixels import dense_pixels


def _supports(signature: Signature) -> bool:
    case = case_of(signature)
    plain = signature.x.dtype == np.dtype("float32") and 1 in signature.constants
    return plain and case.group == case.channels > 1 and case.windows.ndim <= 3


_unsupported = unless(_supports, "not one group for each channel, or not float32 with constant weights")


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns the weights as (taps, outputs), and zeros in place of a missing bias."""
    case = case_of(signature)
    weights, zeros = _packed_specs(signature)
    by_tap = np.array(constants[1].reshape((case.out_channels, case.taps)).T, weights.dtype, order="C")
    return by_tap, np.zeros(zeros.shape, zeros.dtype)


def _packed_specs(signature: Signature) -> Specs:
    case, weights = case_of(signature), signature.inputs[1]
    zeros = case.out_channels if len(signature.inputs) < 3 else 0
    return weights.with_shape((case.taps, case.out_channels)), weights.with_shape((zeros,))


def _activation(attrs: Attrs) -> Activation:
    bounds = limits(attrs)
    return Activation(slope=bounds[0]) if len(bounds) == 1 else Activation(*bounds)


def _bind(call: Binding) -> Thunk:
    weights, zeros = call.packed
    bias, residual = operands(call)
    case = case_of(call.signature)
    extra = (weights, zeros if bias is None else bias, *(() if residual is None else (residual,)))
    kind = DEPTHWISE if case.out_channels == case.channels else SPREAD
    return windows_call(kind, case.windows, call.x, call.y, operands=extra, activation=_activation(call.attrs))


DEPTHWISE_NATIVE = Kernel(
    "depthwise native",
    _bind,
    contiguous=dense_operands,
    reads=dense_pixels,
    pack=_pack,
    packed_specs=_packed_specs,
    unread_after_pack=first_weights,
    unsupported=_unsupported,
    writes=dense_pixels,
    backend=NUMBA,
)
"""As many groups as channels, constant weights, float32, up to three spatial dimensions."""
