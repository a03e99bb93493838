"""The rule of batch normalization with given statistics: they may be constants, parameters, or inputs to train."""

import numpy as np

from ops.common.widened import widened
from ops.norm.batch_norm_training import CHANNEL_SUMS
from ops.schema.backward import Backward, Tensor, Terms


def batch_norm_gradient(b: Backward) -> Terms:
    """Returns the gradients: dx = dy * f * scale with f = 1 / sqrt(variance + epsilon), and sums over channels.

    Those for scale, bias, mean and variance are computed before dx.
    """
    dtype, epsilon = b.x.dtype, b.attrs["epsilon"]
    scale, mean, variance = (b.cast(b.inputs[i], dtype) for i in (1, 3, 4))
    factor = scale / b.sqrt(variance + np.asarray(epsilon, dtype))
    products = sums = None
    if any(b.wants(i) for i in (1, 2, 3, 4)):
        products, sums = widened(b, CHANNEL_SUMS, b.dy, b.x, mean, variance, epsilon=epsilon)

    def of_variance() -> Tensor:
        return products * scale * np.asarray(-0.5, dtype) / (variance + np.asarray(epsilon, dtype))

    terms = b.terms(
        None,
        lambda: b.cast(products, b.inputs[1].dtype),
        lambda: b.cast(sums, b.inputs[2].dtype),
        lambda: b.cast(-(sums * factor), b.inputs[3].dtype),
        lambda: b.cast(of_variance(), b.inputs[4].dtype),
    )
    dx = b.dy * b.reshape(factor, (-1, *(1,) * (b.x.ndim - 2))) if b.wants(0) else None
    return (dx, *terms[1:])
