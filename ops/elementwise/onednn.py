"""Functions of one number that the library computes: those of the exponential and the error function."""

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen

from ops.onednn import declarations as c
from ops.onednn.descriptors import Eltwise, Post, Tensor, dense
from ops.onednn.guard import Plan, Watch, beside, one_to_one
from ops.onednn.library import Library
from ops.schema.schema import Kernel, Signature, unless

_FEW = 2048
"""Least elements for which the library is taken. Trades the start of its calls against its time for each element; no
benchmark covers it."""


@frozen
class Function:
    """y = f(x), element by element."""

    x: Tensor
    function: Eltwise
    posts: tuple[Post, ...] = ()

    def describe(self, at: Library, attributes: Any) -> Any:
        """Returns the library's descriptor of the function; see `Case`."""
        both, f = self.x.descriptor(at), self.function
        arguments = (at.engine, c.INFERENCE, f.algorithm, both, both, f.alpha, f.beta, attributes)
        return at.new("primitive_desc", "eltwise_forward_primitive_desc_create", *arguments)


def _plan(function: Callable[[Signature], Eltwise], signature: Signature) -> Plan:
    whole = dense((signature.x.size,))
    return Plan(Function(whole, function(signature)), one_to_one(whole, whole), Watch.INPUTS)


_REASON = "few elements, or the approximation through tanh"


def _many(signature: Signature) -> bool:
    return signature.x.size >= _FEW


def _is_exact(signature: Signature) -> bool:
    return _many(signature) and bool(signature.attrs["approximate"] == "none")


def gelu(kernel: Kernel) -> Kernel:
    """Returns oneDNN's kernel beside a compiled one, for the gelu of the error function, not for that of tanh."""
    return beside(kernel, partial(_plan, lambda _: Eltwise(c.GELU_ERF)), unless(_is_exact, _REASON))


def softplus(kernel: Kernel) -> Kernel:
    """Returns oneDNN's kernel, beside a compiled one."""
    return beside(kernel, partial(_plan, lambda _: Eltwise(c.SOFT_RELU, 1.0)), unless(_many, "few elements"))
