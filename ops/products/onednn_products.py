"""Products of matrices by oneDNN, with scale, bias, addition of a tensor and activation."""

from typing import Any

import numpy as np
from attrs import frozen

from ops.common.epilogue import BIAS, RESIDUAL
from ops.onednn import declarations as c
from ops.onednn.descriptors import Binary, Eltwise, Post, Sum, Tensor, dense
from ops.onednn.epilogues import activation, has_activation
from ops.onednn.library import Library, library
from ops.onednn.primitives import Operand
from ops.schema.schema import Binding, Signature
from ops.tensor.spec import Array, Shape

FLOAT = np.dtype("float32")


@frozen
class Product:
    """y = a @ b, all of as many dimensions; those of one element broadcast. `bias`: whether one row is added."""

    a: Tensor
    b: Tensor
    y: Tensor
    bias: bool
    posts: tuple[Post, ...]

    def describe(self, at: Library, attributes: Any) -> Any:
        """Returns the description of the primitive; see `Case`."""
        return at.new(
            "primitive_desc",
            "matmul_primitive_desc_create",
            at.engine,
            self.a.descriptor(at),
            self.b.descriptor(at),
            row(self.y.shape).descriptor(at) if self.bias else at.ffi.NULL,
            self.y.descriptor(at),
            attributes,
        )


def row(shape: Shape) -> Tensor:
    """Returns one row, which broadcasts to the shape."""
    return dense((*(1 for _ in shape[1:]), shape[-1]))


@frozen(eq=False)
class Form:
    """The form of an operator: whether b is transposed, a factor, positions of the bias and of the tensor to add."""

    transpose_b: bool = False
    alpha: float = 1.0
    bias: tuple[int, ...] = ()
    residual: tuple[int, ...] = ()


def form_of(signature: Signature) -> Form:
    """Returns the form of `matmul`, `gemm` or `fused_matmul`, which differ by their attributes."""
    attrs, count = signature.attrs, len(signature.inputs)
    if "trans_b" in attrs:
        return Form(attrs["trans_b"], attrs["alpha"], (BIAS,) if count > BIAS else ())
    bias, residual = ((p,) if count > p else () for p in (BIAS, RESIDUAL))
    return Form(attrs.get("transpose_b", False), attrs.get("alpha", 1.0), bias, residual)


def is_plain(signature: Signature) -> bool:
    """Returns whether it is a product of float32 matrices whose addends and activation the library supports."""
    attrs, specs = signature.attrs, signature.inputs
    matrices = has_activation(attrs) and specs[0].ndim > 1 and specs[1].ndim > 1 and signature.y.ndim <= c.MOST_DIMS
    if signature.x.dtype != FLOAT or not matrices or any(not s.size for s in specs):
        return False
    if "trans_b" not in attrs:
        return True
    rows = all(s.size == s.shape[-1] == signature.y.shape[-1] for s in specs[BIAS:] if s.ndim)
    return not attrs["trans_a"] and attrs["beta"] == 1 and rows and all(s.ndim for s in specs[BIAS:])


def _posts(signature: Signature, added: Post | None, y: Tensor) -> tuple[bool, tuple[Post, ...]]:
    """Returns whether the bias is an argument of the primitive, and the post-operations; a scale precedes the bias."""
    form = form_of(signature)
    scaled = form.alpha != 1
    posts: list[Post] = [Eltwise(c.LINEAR, form.alpha)] if scaled else []
    if form.bias and scaled:
        posts.append(Binary(c.ADD, row(y.shape)))
    if added is not None:
        posts.append(added)
    return bool(form.bias) and not scaled, (*posts, *activation(signature.attrs))


def product_case(signature: Signature, a: Tensor, b: Tensor, y: Tensor) -> Product:
    """Returns the product. A tensor of y's shape is added from y's memory, a broadcast one from its own."""
    added: Post | None = None
    for position in form_of(signature).residual:
        spec = signature.inputs[position]
        added = Sum() if spec == signature.y else Binary(c.ADD, _added(spec.shape, y.shape))
    bias, posts = _posts(signature, added, y)
    return Product(a, b, y, bias, posts)


def _added(shape: Shape, y: Shape) -> Tensor:
    """Returns the tensor to add, in as many dimensions as y."""
    return dense((*(1 for _ in y[len(shape) :]), *shape)) if len(shape) <= len(y) else row(y)


def summed(call_: Binding) -> tuple[Array, ...]:
    """Returns the tensor that is added from y's memory, if any."""
    addends = (call_.inputs[p] for p in form_of(call_.signature).residual)
    return tuple(a for a in addends if a.shape == call_.y.shape)


def operands_of(call_: Binding, case: Product, b: Operand) -> list[Operand]:
    """Returns all operands except the scratchpad."""
    at, form, inputs = library(), form_of(call_.signature), call_.inputs
    operands = [
        Operand(c.SOURCE, case.a.descriptor(at), call_.x),
        b,
        Operand(c.TARGET, case.y.descriptor(at), call_.y),
    ]
    if case.bias:
        operands.append(Operand(c.BIAS, row(case.y.shape).descriptor(at), inputs[BIAS]))
    beside = [p for p in (*form.bias * (not case.bias), *form.residual)]
    binaries = ((i, p) for i, p in enumerate(case.posts) if isinstance(p, Binary))
    for (place, post), position in zip(binaries, beside, strict=False):
        role = (place + 1) * c.POST_OPERAND | c.SOURCE_1
        operands.append(Operand(role, post.tensor.descriptor(at), inputs[position]))
    return operands
