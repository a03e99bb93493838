"""Transposed convolution of constant weights by oneDNN. Its fast code needs channels last: x and y are reordered."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from allocator.machine_code.door import address as compiled
from ops.convolution.onednn import Convolution
from ops.convolution.transpose_shapes import TransposeCase, transpose_case
from ops.native.call import Native, Step, joined
from ops.native.records import pack_args
from ops.onednn import declarations as c
from ops.onednn.args import ADD_ROW
from ops.onednn.descriptors import Post, Tensor, channels_last, dense
from ops.onednn.library import Library
from ops.onednn.nan_safe import call, packing
from ops.onednn.primitives import Operand, primitives, reordered
from ops.schema.backends import ONEDNN
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, all_contiguous, first_weights
from ops.tensor.layout import address_of
from ops.tensor.spec import Array, Shape, TensorSpec
from ops.windows.pixels import channels_first
from ops.windows.pixels import channels_last as channels_last_spec

_FLOAT = np.dtype("float32")
_FAST = "brg_conv"
"""Prefix of the library's fast implementations. The others are not taken: they compute each output from its taps, while
our columns are one matrix product."""
BIAS = 2


@frozen
class Reorder:
    """A copy into another layout."""

    source: Tensor
    target: Tensor
    posts: tuple[Post, ...] = ()

    def describe(self, at: Library, attributes: Any) -> Any:
        """Returns the description of the primitive; see `Case`."""
        sides = self.source.descriptor(at), at.engine, self.target.descriptor(at), at.engine
        return at.new("primitive_desc", "reorder_primitive_desc_create", *sides, attributes)


@frozen(eq=False)
class _Layout:
    """The kernel of one layout: `last` says whether tensors of the operator have their channels last."""

    last: bool

    def pair(self, signature: Signature) -> tuple[TensorSpec, TensorSpec]:
        """Returns the specs of x and y with channels last."""
        both = signature.x, signature.y
        return both if self.last else (channels_last_spec(both[0]), channels_last_spec(both[1]))

    def case(self, signature: Signature) -> TransposeCase:
        """Returns the numbers of a signature."""
        return transpose_case(channels_first(self.pair(signature)[0]), signature.inputs[1], signature.attrs)

    def deconvolution(self, signature: Signature) -> Convolution:
        """Returns the library's operation; the bias is added in a step of its own."""
        case, (x, y) = self.case(signature), self.pair(signature)
        w, weights = case.windows, _weights(case)
        shape = weights.shape if case.group > 1 else weights.shape[1:]
        ends, bias = _ends(case), False  # version 3.2 adds it several times to windows of 32 x 32 at strides of 16
        inputs, outputs = channels_last(x.shape, x.shape[-1]), channels_last(y.shape, y.shape[-1])
        return Convolution(inputs, shape, outputs, w.strides, w.dilations, w.begins, ends, bias, (), transposed=True)

    def unsupported(self, signature: Signature) -> str:
        """Returns why the library is not taken; nothing where it has fast code for several products an element."""
        plain = signature.x.dtype == _FLOAT and 1 in signature.constants and signature.x.size and signature.y.size
        if not plain:
            return "not float32 with constant weights, or no elements"
        case = self.case(signature)
        products = case.channels // case.group * (case.out_channels // case.group)
        if products == 1 or min(*_ends(case), *case.windows.begins) < 0:
            return "one product for each element, or pads below 0"
        usable = packing(self.deconvolution(signature), signature.threads)
        is_fast = bool(usable) and usable[0].implementation.startswith(_FAST)
        return "" if is_fast else "the library has no fast code for it"

    def copies(self, signature: Signature) -> tuple[TensorSpec, ...]:
        """Returns the specs of the scratchpad, then of copies of x and y with channels last, if they are needed."""
        (primitive,) = packing(self.deconvolution(signature), signature.threads)
        scratchpad = TensorSpec((primitive.scratchpad,), np.dtype(np.uint8))
        return (scratchpad,) if self.last else (scratchpad, *self.pair(signature))

    def pack(self, signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
        """Returns the weights in the library's layout."""
        if 1 not in constants:
            return ()
        (primitive,), lies = packing(self.deconvolution(signature), signature.threads), _weights(self.case(signature))
        grouped = lies if lies.shape[0] > 1 else Tensor(lies.shape[1:], lies.strides[1:])
        source, layout = np.ascontiguousarray(constants[1]), grouped.descriptor(primitive.at)
        return (reordered(source, layout, primitive.weights, primitive.threads),)

    def packed_specs(self, signature: Signature) -> Specs:
        """Returns the spec of these."""
        (primitive,) = packing(self.deconvolution(signature), signature.threads)
        return (primitive.packed_spec,) if 1 in signature.constants else ()

    def bind(self, call_: Binding) -> Thunk:
        """Returns the primitive, then the bias; copies surround them where channels are not last."""
        case, threads = self.deconvolution(call_.signature), call_.signature.threads
        (primitive,) = packing(case, threads)
        scratchpad, *copies = call_.temporaries
        x, y = copies or (call_.x, call_.y)
        operands = [
            Operand(c.SOURCE, case.x.descriptor(primitive.at), x),
            Operand(c.WEIGHTS, primitive.weights, call_.packed[0]),
            Operand(c.TARGET, case.y.descriptor(primitive.at), y),
        ]
        steps = [call(case, operands, scratchpad, threads), *(_add(bias, y) for bias in call_.inputs[BIAS:])]
        if self.last:
            return joined(steps)
        before = _reorder((call_.x, dense(call_.x.shape)), (x, case.x), threads)
        return joined((before, *steps, _reorder((y, case.y), (call_.y, dense(call_.y.shape)), threads)))

    def kernel(self) -> Kernel:
        """Returns the kernel."""
        return Kernel(
            "onednn",
            self.bind,
            self.copies,
            contiguous=all_contiguous,
            pack=self.pack,
            packed_specs=self.packed_specs,
            unread_after_pack=first_weights,
            unsupported=self.unsupported,
            backend=ONEDNN,
        )


def _weights(case: TransposeCase) -> Tensor:
    """Returns the layout of (group, O / group, C / group, kernel...) in the weights (C, O / group, kernel...)."""
    taps, inner, outer = case.taps, case.channels // case.group, case.out_channels // case.group
    kernel = dense(case.windows.kernel)
    shape: Shape = (case.group, outer, inner, *kernel.shape)
    return Tensor(shape, (inner * outer * taps, taps, outer * taps, *kernel.strides))


def _ends(case: TransposeCase) -> Shape:
    """Returns the pads behind y that follow from all other numbers; negative where y reaches beyond the windows."""
    w = case.windows
    return tuple(w.reach(a, w.outputs[a]) - w.begins[a] - w.sizes[a] for a in range(w.ndim))


def _add(bias: Array, y: Array) -> Native:
    """Returns the call that adds the bias to each row of y."""
    args = pack_args(ADD_ROW, row=address_of(bias), target=address_of(y), length=bias.size, count=y.size // bias.size)
    return Native((Step(compiled("ops.onednn.execute_code", "add_rows"), args),), (bias, y))


def _reorder(before: tuple[Array, Tensor], after: tuple[Array, Tensor], threads: int) -> Native:
    (source, old), (target, new) = before, after
    case = Reorder(old, new)
    (primitive,) = primitives(case, threads)
    operands = (Operand(c.SOURCE, old.descriptor(primitive.at), source),)
    empty = source.reshape(-1)[:0]
    return call(case, (*operands, Operand(c.TARGET, new.descriptor(primitive.at), target)), empty, threads)


DECONVOLUTION, NHWC_DECONVOLUTION = _Layout(last=False).kernel(), _Layout(last=True).kernel()
"""float32, constant weights."""
