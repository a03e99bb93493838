"""Activations of fused operators as post-operations."""

import math

from ops.common.epilogue import GELU_ERF, GELU_TANH, LEAK, NONE, SILU
from ops.onednn import declarations as c
from ops.onednn.descriptors import Eltwise, Post
from ops.schema.schema import Attrs


def has_activation(attrs: Attrs) -> bool:
    """Returns whether the library has the activation.

    Its leaky ReLU of slope 0 is ReLU, which makes -inf 0, not NaN. Its gelu is up to 15 % off between -5 and -3.
    """
    name = attrs.get("activation", NONE)
    return name not in {GELU_ERF, GELU_TANH} and not (name == LEAK and attrs["slope"] == 0)


def activation(attrs: Attrs) -> tuple[Post, ...]:
    """Returns the post-operations of the activation in attributes of `ops.common.epilogue`, or of a fused product."""
    name = attrs.get("activation", NONE)
    if name == NONE:
        return ()
    if name == LEAK:
        return (Eltwise(c.RELU, attrs["slope"]),)
    if name == SILU:
        return (Eltwise(c.SWISH, 1.0),)
    low, high = attrs["low"], attrs["high"]
    return (Eltwise(c.RELU),) if (low, high) == (0, math.inf) else (Eltwise(c.CLIP, low, high),)
