"""Optimisers as their papers write them, and the gradients of the perceptron by hand, in float64."""

from collections.abc import Mapping

import numpy as np

from engine import SGD, Adam
from ops.tensor.spec import Array


def perceptron_gradients(held: Mapping[str, Array], feeds: Mapping[str, Array]) -> tuple[float, dict[str, Array]]:
    """Returns the loss of tests/helpers/graphs/perceptrons.py, and its gradients by the chain rule."""
    x, first, second, bias = feeds["x"], held["first"], held["second"], held["bias"]
    hidden = np.tanh(x @ first + bias)
    error = (hidden + bias) @ second - feeds["target"]
    d_out = 2 * error / error.size
    d_sum = d_out @ second.T
    d_hidden = d_sum * (1 - hidden**2)
    gradients = {
        "first": x.T @ d_hidden,
        "second": (hidden + bias).T @ d_out,
        "bias": (d_hidden + d_sum).sum(0),
    }
    return float((error**2).mean()), gradients


def stepped(optimiser: SGD | Adam, step: int, x: Array, gradient: Array, state: list[Array]) -> Array:
    """Returns what a step, numbered from 1, takes from a parameter; moves the two arrays of its state."""
    decoupled = isinstance(optimiser, Adam) and optimiser.decoupled
    g = gradient if decoupled else gradient + optimiser.weight_decay * x
    if isinstance(optimiser, SGD):
        state[0] = optimiser.momentum * state[0] + g
        along = g + optimiser.momentum * state[0] if optimiser.nesterov else state[0]
        return np.asarray(optimiser.learning_rate * along)
    state[0] = optimiser.beta1 * state[0] + (1 - optimiser.beta1) * g
    state[1] = optimiser.beta2 * state[1] + (1 - optimiser.beta2) * g**2
    mean, variance = state[0] / (1 - optimiser.beta1**step), state[1] / (1 - optimiser.beta2**step)
    decay = optimiser.weight_decay * x if decoupled else 0.0
    return np.asarray(optimiser.learning_rate * (mean / (np.sqrt(variance) + optimiser.epsilon) + decay))
