"""Layer normalisation of short rows, which compiled code does one after the other."""

from typing import Any

from attrs import frozen

from ops.onednn import declarations as c
from ops.onednn.descriptors import Post, Tensor, dense
from ops.onednn.guard import Plan, instead
from ops.onednn.library import Library
from ops.onednn.primitives import Operand
from ops.schema.schema import Binding, Kernel, Signature, unless

_SHORT, _LONG, _FEW = 16, 192, 2048
"""The library is taken for rows of 16 to 192 elements, in tensors of at least 2048: its calls take longer to start.
tools/bench_kernels.py --operators layer_norm times both back-ends."""


@frozen
class LayerNorm:
    """Rows (rows, width), each with mean 0 and variance 1, then scaled and shifted."""

    x: Tensor
    epsilon: float
    shifted: bool
    posts: tuple[Post, ...] = ()

    def describe(self, at: Library, attributes: Any) -> Any:
        """Returns the library's descriptor of the normalization; see `Case`."""
        both, rows = self.x.descriptor(at), dense(self.x.shape[:1]).descriptor(at)
        flags = c.USE_SCALE | (c.USE_SHIFT if self.shifted else 0)
        arguments = (at.engine, c.INFERENCE, both, both, rows, self.epsilon, flags, attributes)
        return at.new("primitive_desc", "layer_normalization_forward_primitive_desc_create", *arguments)


_REASON = "few elements, several outputs, or rows for which compiled code is faster"


def _supports(signature: Signature) -> bool:
    many = signature.x.size >= _FEW and len(signature.outputs) == 1
    return many and _SHORT <= signature.inputs[1].size <= _LONG


def _plan(signature: Signature) -> Plan:
    width = signature.inputs[1].size
    rows, row = dense((signature.x.size // width, width)), dense((width,))

    def operands(at: Library, call: Binding) -> list[Operand]:
        factors = zip((c.SCALE, c.SHIFT), call.inputs[1:], strict=False)
        both = Operand(c.SOURCE, rows.descriptor(at), call.x), Operand(c.TARGET, rows.descriptor(at), call.y)
        return [*both, *(Operand(role, row.descriptor(at), a) for role, a in factors)]

    return Plan(LayerNorm(rows, signature.attrs["epsilon"], len(signature.inputs) > 2), operands)


def layer_norm(kernel: Kernel) -> Kernel:
    """Returns the library's kernel of calls that the compiled one takes.

    Scale and bias have as many elements as a row.
    """
    return instead(kernel, _plan, unless(_supports, _REASON))
