"""Convolution of channels-last quantised values: exact in int32, then scaled, and rounded or left as float32.

`factor` is x_scale * w_scale / y_scale (x_scale * w_scale for float32), the zero point of the weights is 0. Quantised
values may be added: the sums are rounded to quantised values of their own first, as two separate operators would.
"""

from collections.abc import Iterator
from functools import partial
from math import inf

import numpy as np

from ops.common.thunks import in_turn
from ops.common.tiling import nhwc_conv_rows
from ops.common.windows import CONV_ATTRIBUTES
from ops.convolution.nhwc_shapes import case_of
from ops.convolution.shapes import conv_cost
from ops.quantised.conv_blocks import Blocks, Work, by_output
from ops.quantised.depthwise import DEPTHWISE
from ops.quantised.nhwc_shapes import (
    BIAS,
    FACTOR,
    RESIDUAL,
    W,
    dense_parameters,
    infer_quantised_conv,
)
from ops.quantised.nhwc_tiled import TILED
from ops.quantised.params import SINGLE, ends
from ops.quantised.sum import QUANTISED_ATTRIBUTES, Addend, bounds, round_to_quantised
from ops.schema.attributes import Attribute, integer, number
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Thunk, overwrites_from
from ops.schema.workspace import prefix
from ops.tensor.limits import constant
from ops.tensor.spec import Array, TensorSpec
from ops.windows.pixels import dense_pixels

_UINT8 = np.dtype("uint8")


def _blocks(signature: Signature) -> Blocks:
    return Blocks(case_of(signature))


def _scratch_specs(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of both zero points, of the scratch arrays of a block, and of the addend as float32."""
    scratch = _blocks(signature).scratch_specs(with_sums=True)
    added = scratch[3] if len(signature.inputs) > RESIDUAL else TensorSpec((0,), SINGLE)
    return TensorSpec((1,), SINGLE), TensorSpec((1,), SINGLE), *scratch, added


def _channels_first(array: Array) -> Array:
    """Returns the view (N, C, spatial...) of an array (N, spatial..., C)."""
    return np.moveaxis(array, -1, 1)


def _in_groups(array: Array, blocks: Blocks) -> Array:
    """Returns the view (N, group, outputs, spatial...) of an array (N, spatial..., group * outputs)."""
    first = _channels_first(array)
    return first.reshape((len(array), blocks.case.group, blocks.outputs, *first.shape[2:]))


def _bind(call: Binding) -> Thunk:
    blocks = _blocks(call.signature)
    x_zero, w_zero, *scratch, added = call.temporaries
    steps: list[Thunk] = [partial(x_zero.fill, call.attrs["x_zero"]), partial(w_zero.fill, 0)]
    work = Work.of(blocks, (_channels_first(call.x), call.inputs[W]), (x_zero, w_zero), scratch)
    factor, bias = (by_output(blocks, call.inputs[i])[..., 0] for i in (FACTOR, BIAS))
    y = _in_groups(call.y, blocks).reshape(blocks.case.batch, blocks.case.group, blocks.outputs, blocks.case.pixels)
    rest = _in_groups(call.inputs[-1], blocks) if len(call.inputs) > RESIDUAL else None
    for number_of, image in enumerate(_channels_first(call.x)):
        for groups, box in blocks.sums():
            part = y[number_of, groups, :, box.flat]
            sums, real, more = (prefix(r, part.shape) if r.size else r for r in (scratch[4], scratch[3], added))
            steps += work.sums(image, groups, box, sums)
            steps.append(partial(np.add, sums, bias[groups], sums))
            steps.append(partial(np.copyto, real, sums, casting="same_kind"))
            steps.append(partial(np.multiply, real, factor[groups], real))
            if rest is not None:
                steps += _add(real, rest[number_of][(groups, slice(None), *box.ranges)], more, call.attrs)
            steps += _finish(real, part, call.attrs)
    return in_turn(*steps)


def _add(real: Array, addend: Array, buffer: Array, attrs: Attrs) -> Iterator[Thunk]:
    """Yields the steps that round `real`, and add quantised values, in units of y's scale."""
    yield from round_to_quantised(real, attrs["own_zero"], ends(_UINT8))
    yield from Addend(attrs["own_zero"], attrs["own_factor"]).scaled(real, real)
    yield from Addend(attrs["residual_zero"], attrs["residual_factor"]).scaled(addend, buffer.reshape(addend.shape))
    yield partial(np.add, real, buffer, real)


def _finish(real: Array, y: Array, attrs: Attrs) -> Iterator[Thunk]:
    if attrs["to"] == SINGLE:
        if attrs["low"] > -inf or attrs["high"] < inf:
            yield partial(real.clip, constant(attrs["low"], SINGLE), constant(attrs["high"], SINGLE), real)
    else:
        yield from round_to_quantised(real, attrs["y_zero"], bounds(attrs))
    yield partial(np.copyto, y, real, casting="unsafe")


COLUMNS = Kernel("columns", _bind, _scratch_specs, contiguous=dense_parameters, writes=dense_pixels)
NHWC_QUANTISED_CONV = OpSchema(
    name="nhwc_quantised_conv",
    summary="round((convolution of x - x_zero + bias) * factor) + y_zero, plus a tensor; x (N, spatial..., C).",
    infer=infer_quantised_conv,
    kernels=(DEPTHWISE, TILED, COLUMNS),
    arity=(4, 5),
    attributes=(
        *CONV_ATTRIBUTES,
        Attribute("x_zero", integer, 0),
        *QUANTISED_ATTRIBUTES,
        Attribute("own_zero", integer, 0),
        Attribute("own_factor", number, 1.0),
        Attribute("residual_zero", integer, 0),
        Attribute("residual_factor", number, 1.0),
    ),
    overwrites=overwrites_from(RESIDUAL),
    cost=conv_cost,
    rows=nhwc_conv_rows(RESIDUAL),
)
OPS = (NHWC_QUANTISED_CONV,)
