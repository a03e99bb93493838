"""What only training needs, on vars: losses, and normalization with the statistics of the batch."""

from typing import Any, cast

from ops.functional.apply import Operand, V, apply, apply1
from ops.functional.cast import cast as to_dtype
from ops.functional.reduce import reduce_mean
from ops.norm.batch_norm_training import BATCH_NORM_TRAINING
from ops.reduce.losses import SOFTMAX_CROSS_ENTROPY
from ops.tensor.errors import ShapeError
from ops.training.dropout import DROPOUT


def softmax_cross_entropy(
    logits: V, labels: Operand, reduction: str = "mean", *, ignore_index: int = -100, label_smoothing: float = 0.0
) -> V:
    """-log(softmax(logits)) of the class that each label names; logits (N, C, ...), labels (N, ...) integers.

    The mean over all labels but `ignore_index`, their sum, or ("none") one loss a label. With `label_smoothing` s, the
    target is 1 - s at the label, and s spread over all classes. Raises IndexRangeError, as it runs, for other labels.
    """
    more = {"reduction": reduction, "ignore_index": ignore_index, "label_smoothing": label_smoothing}
    return apply1(SOFTMAX_CROSS_ENTROPY, logits, labels, **more)


def mse_loss(prediction: V, target: Operand) -> V:
    """The mean of the squares of prediction - target, which has its shape."""
    difference: Any = cast(Any, prediction) - target
    return cast(V, reduce_mean(difference * difference, None, keepdims=False))


def batch_norm_training(x: V, scale: Operand, bias: Operand, *, epsilon: float = 1e-5) -> tuple[V, V, V]:
    """x with mean 0 and variance 1 in each channel, times scale (C,), plus bias; that mean, and that variance.

    The variance divides by the number of elements, as normalization needs it; see `batch_norm_running`.
    """
    return cast(tuple[V, V, V], apply(BATCH_NORM_TRAINING, (x, scale, bias), epsilon=epsilon))


def batch_norm_running(
    x: V, scale: Operand, bias: Operand, mean: V, variance: V, *, momentum: float = 0.1, epsilon: float = 1e-5
) -> V:
    """`batch_norm_training` that also moves the parameters `mean` and `variance` towards those of the batch.

    Each is 1 - momentum of what it was and momentum of what the batch has, at the end of a run, as in torch: the
    variance is that of a sample, divided by one less. Raises ShapeError where a channel has one element.
    """
    if x.spec.ndim < 2 or x.spec.shape[1] == 0:
        raise ShapeError(f"batch_norm_running: {x.spec} has no channels in its second dimension")
    count: Any = x.spec.size // x.spec.shape[1]
    if not x.spec.is_symbolic and count < 2:
        raise ShapeError(f"batch_norm_running: {x.spec} has {count} element(s) a channel, and a variance needs two")
    y, of_batch, biased = batch_norm_training(x, scale, bias, epsilon=epsilon)
    if x.spec.is_symbolic:  # the number is a constant once shapes are bound
        count = to_dtype(x.graph.constant(count), x.spec.dtype)
    for running, found in ((mean, of_batch), (variance, cast(Any, biased) * (count / (count - 1)))):
        old: Any = running
        x.graph.assign(running, old + (found - old) * momentum)
    return y


def dropout_training(x: V, step: V, *, rate: float = 0.5, seed: int) -> V:
    """x / (1 - rate), but 0 with probability `rate`; no bytes are kept for which.

    They are a function of `seed`, of `step` (one int64) and of the place of an element: give each layer a seed of its
    own, and let the step be an input, or a parameter that is counted up when the training step is complete:
    graph.assign(step, step + 1).
    """
    return apply1(DROPOUT, x, step, rate=rate, seed=seed)
