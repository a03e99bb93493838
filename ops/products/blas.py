"""What BLAS reads in place, and with the same bits wherever it lies."""

from ops.schema.schema import Signature
from ops.tensor.layout import Layout


def blas_reads(layout: Layout) -> bool:
    """Returns whether BLAS reads the matrices (or the vector) in place: neighbours along one of the last two axes.

    numpy copies all others into memory that it allocates, which no plan contains.
    """
    rows, columns = ((1, 0), (1, 0), *zip(layout.shape, layout.strides, strict=True))[-2:]
    return _steps(*rows, *columns, layout.itemsize) or _steps(*columns, *rows, layout.itemsize)


def _steps(outer: int, outer_stride: int, inner: int, inner_stride: int, itemsize: int) -> bool:
    close = inner_stride == itemsize or inner == 1
    return close and (outer == 1 or (outer_stride % itemsize == 0 and outer_stride >= inner * itemsize))


def is_vector_product(signature: Signature) -> bool:
    """Returns whether a product has one row or one column.

    BLAS chooses among its loops for those by the distance of the rows, so that last bits depend on gaps between them
    (OpenBLAS, interface/gemv.c). Those of products of matrices do not.
    """
    a, b = signature.inputs[:2]
    return min(a.ndim, b.ndim) < 2 or 1 in signature.y.shape[-2:]
