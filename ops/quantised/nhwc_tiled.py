"""Channels-last convolution of quantised values, compiled: tiles of uint8 times int8 whose sums stay in registers.

int8 is multiplied as uint8 that is 128 more, and so is its zero point. The sum of (x - zero) * w is the sum of x * w,
minus zero times the sum of w, which is part of the bias.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np
from attrs import evolve

from allocator.machine_code.door import address
from allocator.machine_code.instructions import has
from ops.convolution.args import TABLE
from ops.convolution.nhwc_blocks import Block, Blocks
from ops.convolution.nhwc_shapes import case_of
from ops.convolution.shapes import ConvCase
from ops.native.aligned import aligned_zeros
from ops.native.call import Native, Step
from ops.native.records import pack_args
from ops.quantised.args import CONV_ARGS, COPY_LINES, COPY_PIXELS
from ops.quantised.conv_blocks import INT32
from ops.quantised.nhwc_shapes import BIAS, FACTOR, RESIDUAL, W, bounds_of, dense_parameters
from ops.quantised.nhwc_source import QUAD, Source, as_runs, flip_of, source_for, source_of, x_zero
from ops.quantised.params import SINGLE
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, unless
from ops.tensor.spec import Array, TensorSpec
from ops.windows.args import spatial
from ops.windows.pixels import dense_pixels, pitch

ROWS, PANEL = 14, 32
"""Pixels and outputs of a tile."""
_BLOCK_BYTES = 1 << 17
"""Most bytes of inputs of a block of tiles: they stay in a second-level cache while they are multiplied by one panel
after the other. tools/bench_kernels.py --networks resnet18_int8 --operators nhwc_quantised_conv times its layers."""
_COPY_BYTES = 1 << 16
"""About the most bytes of a copy of lines: more are copied block by block. A smaller copy needs less workspace and
stays in the cache until it is read, but more lines are copied twice. tools/bench_run.py --networks resnet18_int8 times
a network with such a layer."""
_MODULE = "ops.quantised.nhwc_code"


def has_vnni() -> bool:
    """Returns whether compiled code multiplies 64 pairs of bytes in one instruction."""
    return has("avx512f", "avx512bw", "avx512vl", "avx512vnni")


def _supports(signature: Signature) -> bool:
    if not {W, FACTOR, BIAS} <= signature.constants or signature.x.ndim > 5:
        return False
    fits = 0 <= x_zero(signature) <= 255 and signature.x.size > 0
    return fits and source_of(signature).taps * ROWS <= TABLE and has_vnni()


_unsupported = unless(_supports, "weights that are not constant, or a large window, or no AVX-512 VNNI")


def _blocks(signature: Signature) -> Iterator[Block]:
    """Yields the blocks of a convolution whose copy of lines is large: some lines of one image each; else the whole."""
    case = case_of(signature)
    if _is_one_block(signature):
        yield Block(slice(None), slice(None), slice(None), case)
        return
    for image in range(case.batch):
        for block in _blocks_of_one_image(signature):
            yield evolve(block, images=slice(image, image + 1))


def _is_one_block(signature: Signature) -> bool:
    source = source_of(signature)
    return not source.line or source.copy_bytes(case_of(signature).batch) <= _COPY_BYTES


def _blocks_of_one_image(signature: Signature) -> Blocks:
    return Blocks(evolve(case_of(signature), batch=1), _COPY_BYTES, signature.x.dtype.itemsize)


def copy_spec(signature: Signature) -> TensorSpec:
    """Returns the spec of the copy of x, or of its largest block; empty if none is needed."""
    blocks = _blocks(signature) if _is_one_block(signature) else _blocks_of_one_image(signature).largest()
    cases = (block.case for block in blocks)
    most = max(source_for(case, signature.x.dtype).copy_bytes(case.batch) for case in cases)
    return TensorSpec((most,), np.dtype("uint8"))


def _temporaries(signature: Signature) -> Specs:
    return (copy_spec(signature),)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    """Returns panels (group * panels, runs, depth, 32, 4), what sums begin with, factors, and a run of zero points."""
    case, source = case_of(signature), source_of(signature)
    packed = pack_panels(signature, constants[W])
    sums = constants[W].reshape((len(constants[W]), -1)).sum(1, dtype=np.int32) * np.int32(x_zero(signature))
    shape = case.group, case.out_channels // case.group
    starts = by_panel((constants[BIAS] - sums).reshape(shape))
    factors = by_panel(constants[FACTOR].reshape(shape))
    return packed, starts, factors, np.full(source.depth * QUAD, x_zero(signature), np.uint8)


def packed_specs(signature: Signature) -> Specs:
    """Returns the specs of panels, starts of sums, factors, and a run of zero points."""
    source, panels = source_of(signature), panels_spec(signature)
    numbers = TensorSpec((panels.shape[0], PANEL), SINGLE)
    return panels, numbers.with_dtype(INT32), numbers, TensorSpec((source.depth * QUAD,), np.dtype(np.uint8))


def panels_spec(signature: Signature) -> TensorSpec:
    """Returns the spec of the weights as panels."""
    case, source = case_of(signature), source_of(signature)
    count = -(-case.out_channels // case.group // PANEL)
    return TensorSpec((case.group * count, source.taps, source.depth, PANEL, QUAD), np.dtype(np.int8))


def pack_panels(signature: Signature, w: Array) -> Array:
    """Returns the weights as panels that start at a cache line: (group * panels, runs, depth, 32, 4).

    Each panel is packed by itself, so that no temporary array is as large as the weights.
    """
    spec, source, case = panels_spec(signature), source_of(signature), case_of(signature)
    packed = aligned_zeros(spec.shape, np.int8)
    by_group = packed.reshape((case.group, -1, *spec.shape[1:]))
    for panels, weights in zip(by_group, w.reshape((case.group, -1, *w.shape[1:])), strict=True):
        for number, panel in enumerate(panels):
            part = weights[number * PANEL : (number + 1) * PANEL]
            runs = as_runs(part, source).reshape((len(part), source.taps, source.depth, QUAD))
            panel[:, :, : len(part)] = runs.transpose(1, 2, 0, 3)
    return packed


def by_panel(values: Array) -> Array:
    """Returns (group, outputs) as panels (group * panels, 32); the last panel of a group is padded with zeros."""
    group, outputs = values.shape
    count = -(-outputs // PANEL)
    wide = np.zeros((group, count * PANEL), values.dtype)
    wide[:, :outputs] = values
    return wide.reshape((group * count, PANEL))


def _bind(call: Binding) -> Thunk:
    (buffer,) = call.temporaries
    steps = [step for block in _blocks(call.signature) for step in _block_steps(call, block, buffer)]
    return Native(tuple(steps), (*call.inputs, *call.outputs, *call.packed, buffer))


def _block_steps(call: Binding, block: Block, buffer: Array) -> Iterator[Step]:
    """Yields the copy of a block, if one is needed, and its convolution."""
    x, *rest = call.inputs
    added = (a[block.images, block.outputs] for a in rest[RESIDUAL - 1 :])
    inputs = x[block.images, block.inputs], *rest[: RESIDUAL - 1], *added
    part = evolve(call, inputs=inputs, outputs=(call.y[block.images, block.outputs],))
    if source_for(block.case, x.dtype).copied:
        yield copying(part, block.case, buffer)
    yield convolve_step(part, block.case, buffer)


def convolve_step(call: Binding, case: ConvCase, copy: Array, *, raw: bool = False) -> Step:
    """Returns the convolution of x, or of its copy if one is needed; `raw` writes the sums as they are."""
    source = source_for(case, call.x.dtype)
    first = (copy if source.copied else call.x).ctypes.data
    return Step(address(_MODULE, "convolve"), conv_args(call, case, source, first, raw=raw))


def copying(call: Binding, case: ConvCase, copy: Array) -> Step:
    """Returns the step that copies x."""
    x, source, flip = call.x, source_for(case, call.x.dtype), flip_of(call.x.dtype)
    if source.line:
        lines = pack_args(
            COPY_LINES,
            x=x.ctypes.data,
            pitch=pitch(x),
            y=copy.ctypes.data,
            lines=math.prod(x.shape[:-2]),
            width=x.shape[-2],
            channels=case.channels,
            begin=case.windows.begins[-1],
            padded_width=source.line,
            pad=x_zero(call.signature),
            flip=flip,
        )
        return Step(address(_MODULE, "copy_lines"), lines)
    pixels = pack_args(
        COPY_PIXELS,
        x=x.ctypes.data,
        pitch=pitch(x),
        y=copy.ctypes.data,
        pixels=x.size // case.channels,
        groups=case.group,
        channels=case.channels // case.group,
        padded_channels=source.depth * QUAD,
        flip=flip,
    )
    return Step(address(_MODULE, "copy_pixels"), pixels)


def conv_args(
    call: Binding, case: ConvCase, source: Source, first: int, *, raw: bool = False, x_flip: int = 0
) -> Array:
    """Returns the arguments for windows over the values that begin at the address `first`."""
    hop, attrs = source.hop(call.x), call.attrs
    w, depth, (low, high) = case.windows, source.depth, bounds_of(call.attrs)
    panels, starts, factors, zeros = (a.ctypes.data for a in call.packed)
    added = call.inputs[RESIDUAL] if len(call.inputs) > RESIDUAL else None
    flip = 0 if added is None else flip_of(added.dtype)
    tile_bytes = max(ROWS * hop * math.prod(w.strides), 1)
    return pack_args(
        CONV_ARGS,
        x=first,
        zeros=zeros,
        panels=panels,
        starts=starts,
        factors=factors,
        added=0 if added is None else added.ctypes.data,
        added_pitch=0 if added is None else pitch(added),
        y=call.y.ctypes.data,
        y_pitch=pitch(call.y) * call.y.itemsize,
        itemsize=call.y.itemsize,
        flip=flip,
        groups=case.group,
        channels=case.out_channels // case.group,
        depth=depth,
        group_bytes=depth * QUAD,
        hops=[hop * math.prod(source.sizes[i:]) for i in range(4)],
        outputs=(case.batch, *spatial(w.outputs, 1)),
        sizes=source.sizes,
        kernel=source.kernel,
        strides=spatial(w.strides, 1),
        dilations=spatial(w.dilations, 1),
        begins=source.begins,
        block_tiles=max(min(_BLOCK_BYTES // tile_bytes, TABLE // (ROWS * source.taps)), 1),
        zero=float(attrs["y_zero"]),
        low=low,
        high=high,
        own_zero=float(attrs["own_zero"]),
        own_factor=attrs["own_factor"],
        added_zero=float(attrs["residual_zero"] + flip),
        added_factor=attrs["residual_factor"],
        raw=int(raw),
        x_flip=x_flip,
    )


TILED = Kernel(
    "tiled",
    _bind,
    _temporaries,
    contiguous=dense_parameters,
    reads=dense_pixels,
    pack=_pack,
    packed_specs=packed_specs,
    unread_after_pack=dense_parameters,
    unsupported=_unsupported,
    writes=dense_pixels,
    backend=NUMBA,
)
"""Constant weights, factors and biases, one to three spatial dimensions, any groups, AVX-512 with VNNI."""
