"""What elementwise operators have in common: dtype rules, broadcasting, which inputs an output may overwrite."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ops.common.costs import flops_per_element
from ops.schema.schema import (
    Attrs,
    Binding,
    GradientRule,
    Kernel,
    OpSchema,
    Specs,
    Thunk,
    any_strides,
    no_gradient,
    overwrites_from,
)
from ops.tensor.errors import DtypeError
from ops.tensor.layout import Layout
from ops.tensor.spec import BOOL, TensorSpec, broadcast_shapes
from ops.vector.kernel import opcode

Dtypes = frozenset[np.dtype[Any]]
Infer = Callable[[Specs, Attrs], Specs]


def require_dtype(spec: TensorSpec, dtypes: Dtypes) -> None:
    """Raises DtypeError for a dtype that is none of `dtypes`."""
    if spec.dtype not in dtypes:
        raise DtypeError(f"takes {', '.join(sorted(d.name for d in dtypes))}, not {spec.dtype}")


def require_one_dtype(inputs: Specs, dtypes: Dtypes) -> None:
    """Raises DtypeError where the inputs differ in dtype, or have one that is none of `dtypes`."""
    require_dtype(inputs[0], dtypes)
    if len({s.dtype for s in inputs}) != 1:
        raise DtypeError(f"takes inputs of one element type, not {', '.join(s.dtype.name for s in inputs)}")


def like_input(dtypes: Dtypes) -> Infer:
    """Returns an inference: the output is like the one input."""

    def infer(inputs: Specs, _: Attrs) -> Specs:
        require_dtype(inputs[0], dtypes)
        return (inputs[0],)

    return infer


def broadcast(dtypes: Dtypes, out: np.dtype[Any] | None = None) -> Infer:
    """Returns the inference for inputs of one dtype that are broadcast together (numpy's rule).

    The output has dtype `out`, or else that of the inputs.
    """

    def infer(inputs: Specs, _: Attrs) -> Specs:
        require_one_dtype(inputs, dtypes)
        return (TensorSpec(broadcast_shapes(*(s.shape for s in inputs)), out or inputs[0].dtype),)

    return infer


def ufunc_kernel(function: np.ufunc, writes: Callable[[Layout], bool] = any_strides) -> Kernel:
    """Returns a kernel that is one call of a ufunc on all inputs.

    The output goes by position, so that numpy reads no keyword; not for `np.minimum` and `np.maximum`, which refuse
    that.
    """

    def bind(call: Binding) -> Thunk:
        return partial(function, *call.inputs, call.y)

    return Kernel("numpy", bind, writes=writes)


def unary(
    name: str,
    dtypes: Dtypes,
    kernel: Kernel,
    summary: str,
    flops: int = 1,
    *,
    gradient: GradientRule = no_gradient,
    code: str = "",
    compiled: tuple[Kernel, ...] = (),
) -> OpSchema:
    """Returns an elementwise operator of one input without attributes; `code` is its opcode, if it has one.

    `compiled` are kernels of other back-ends than numpy, besides that of the opcode.
    """
    return OpSchema(
        name,
        like_input(dtypes),
        (*_with_opcode(kernel, code)[:-1], *compiled, kernel),
        overwrites=overwrites_from(0),
        cost=flops_per_element(flops),
        summary=summary,
        gradient=gradient,
        elementwise=True,
    )


def binary(
    name: str,
    dtypes: Dtypes,
    kernel: Kernel,
    summary: str,
    *,
    out: np.dtype[Any] | None = None,
    flops: int = 1,
    gradient: GradientRule = no_gradient,
    code: str = "",
) -> OpSchema:
    """Returns an elementwise operator of two broadcast inputs without attributes; `code` is its opcode, if any."""
    return OpSchema(
        name,
        broadcast(dtypes, out),
        _with_opcode(kernel, code),
        (2, 2),
        overwrites=overwrites_from(0),
        cost=flops_per_element(flops),
        summary=summary,
        gradient=gradient,
        elementwise=True,
    )


def predicate(name: str, dtypes: Dtypes, function: np.ufunc, summary: str) -> OpSchema:
    """Returns a broadcast comparison or logical operator of two inputs of one dtype. Its name is its opcode."""
    return binary(name, dtypes, ufunc_kernel(function), summary, out=BOOL, code=name)


def _with_opcode(kernel: Kernel, code: str) -> tuple[Kernel, ...]:
    return (opcode(code), kernel) if code else (kernel,)
