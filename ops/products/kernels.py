"""The compiled kernels of `matmul`, `gemm` and `fused_matmul`: float32, where elements of a row are neighbours."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from attrs import frozen

from ops.common.epilogue import BIAS, RESIDUAL
from ops.products.blas import is_vector_product
from ops.products.case import is_mild
from ops.products.compiled import (
    PLAIN,
    SINGLE,
    Multiplication,
    activation_numbers,
    has_near_columns,
    has_near_rows,
    multiply,
    packed_panels,
    panels_shape,
    reads_rows,
    rows_of,
)
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, first_weights, unless
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec


@frozen
class _Form:
    """The form of an operator: names of its attributes, and whether it has an activation."""

    transposes: str = ""
    factor: str = ""
    finishes: bool = False

    def right(self, b: Array, signature: Signature) -> Array:
        """Returns b, transposed if the operator does so."""
        flips = self.transposes and signature.attrs[self.transposes]
        return b.swapaxes(-1, -2) if flips else b

    def scale(self, signature: Signature) -> float:
        """Returns the factor of the product."""
        return float(signature.attrs[self.factor]) if self.factor else 1.0

    def bind(self, call: Binding) -> Thunk:
        """Returns the call; vectors are matrices of one row or column."""
        a, b, y = call.x, call.inputs[1], call.y
        if b.ndim == 1:
            b, y = b[:, None], y[..., None]
        if a.ndim == 1:
            a, y = a[None], y[..., None, :]
        b = self.right(b, call.signature)
        if not call.packed and not has_near_rows(Layout.of(a)):  # BLAS reads columns, too
            return partial(np.matmul, a, b, out=y)
        bias, added = _addends(call, y)
        finish = activation_numbers(call.attrs) if self.finishes else PLAIN
        return multiply(Multiplication(a, b, y, bias, added, self.scale(call.signature), finish, call.packed))

    def pack(self, signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
        """Returns b as panels, multiplied by the factor."""
        return (packed_panels(self.right(constants[1], signature), self.scale(signature)),)

    def packed_specs(self, signature: Signature) -> Specs:
        """Returns the spec of these panels."""
        shape = signature.inputs[1].shape
        flips = self.transposes and signature.attrs[self.transposes]
        return (TensorSpec(panels_shape(shape[::-1] if flips else shape), SINGLE),)


def _addends(call: Binding, y: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Returns the bias, and the tensor to add; the third input of a gemm is either."""
    rows, others = call.inputs[BIAS:RESIDUAL], call.inputs[RESIDUAL:]
    if rows and rows[0].size != y.shape[-1]:
        return (), rows
    return tuple(r.reshape(-1) for r in rows), others


def _is_single(signature: Signature) -> bool:
    """Returns whether it is float32, with a factor that the panels of b may contain."""
    return signature.x.dtype == SINGLE and is_mild(signature.attrs.get("alpha", 1.0))


def _is_single_vector(signature: Signature) -> bool:
    return _is_single(signature) and is_vector_product(signature)


def _is_single_matrix(signature: Signature) -> bool:
    return _is_single(signature) and not is_vector_product(signature)


def _packs(signature: Signature) -> bool:
    """Returns whether b is one constant matrix, and a has several rows; one row reads b once, packed or not."""
    b = signature.inputs[1]
    return _is_single(signature) and b.ndim == 2 and 1 in signature.constants and rows_of(signature.x.shape) > 1


def _is_plain_gemm(signature: Signature) -> bool:
    """Returns whether a is not transposed, and c is a row or a whole matrix."""
    attrs, shapes = signature.attrs, [s.shape for s in signature.inputs[BIAS:]]
    fits = all(s in (signature.y.shape, signature.y.shape[1:], (1, *signature.y.shape[1:])) for s in shapes)
    return _is_single(signature) and not attrs["trans_a"] and fits and (not shapes or attrs["beta"] == 1)


def _packs_gemm(signature: Signature) -> bool:
    return _is_plain_gemm(signature) and _packs(signature)


def _near(layout: Layout) -> bool:
    """Returns whether elements of rows, or of columns, are neighbours."""
    return has_near_rows(layout) or has_near_columns(layout)


_NOT_PACKED = "not float32, or the second factor is not one constant matrix, or one row"
_NOT_TILED = "not float32, or operands that tiles do not read"
_where = partial(Kernel, writes=has_near_rows, backend=NUMBA)


def _packed(form: _Form, packs: Callable[[Signature], bool]) -> Kernel:
    return _where(
        "tiles, packed",
        form.bind,
        reads=has_near_rows,  # b is gone: no BLAS
        pack=form.pack,
        packed_specs=form.packed_specs,
        unread_after_pack=first_weights,
        unsupported=unless(packs, _NOT_PACKED),
    )


def _tiles(
    form: _Form,
    supports: Callable[[Signature], bool],
    reads: Callable[[Layout], bool] = reads_rows,
    name: str = "tiles",
) -> Kernel:
    return _where(name, form.bind, reads=reads, unsupported=unless(supports, _NOT_TILED))


_FUSED, _GEMM, _MATMUL = _Form("transpose_b", "alpha", finishes=True), _Form("trans_b", "alpha"), _Form()
FUSED_KERNELS = _packed(_FUSED, _packs), _tiles(_FUSED, _is_single)
GEMM_KERNELS = _packed(_GEMM, _packs_gemm), _tiles(_GEMM, _is_plain_gemm)
MATMUL_KERNELS = (
    _packed(_MATMUL, _packs),
    _tiles(_MATMUL, _is_single_vector, name="tiles, a vector"),
    _tiles(_MATMUL, _is_single_matrix, _near),
)
