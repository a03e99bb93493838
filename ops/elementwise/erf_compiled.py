"""Calls of the compiled error function."""

from ops.elementwise.args import ERF
from ops.native.functions import Function, function_call
from ops.tensor.spec import Array


def erf(x: Array, y: Array) -> Function:
    """Returns y = erf(x) for dense arrays of float32 or float64 and of the same size, which may be the same one."""
    return function_call("ops.elementwise.erf_code", f"erf_{y.dtype.name}", ERF, x=x, y=y, count=y.size)
