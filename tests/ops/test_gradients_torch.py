"""Gradient rules against PyTorch's where there is no one gradient, and far out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ops
from tests.helpers.ops.gradient_checks import gradients_of
from tests.helpers.torch import REASON

torch = pytest.importorskip("torch", reason=REASON)
_T = torch.nn.functional
_KINKS: list[tuple[str, Callable[..., Any], Callable[..., Any], list[Any]]] = [
    ("relu", ops.relu, torch.relu, [[-1.0, 0.0, -0.0, 2.0]]),
    ("relu of NaN", ops.relu, torch.relu, [[float("nan"), float("inf"), -float("inf")]]),
    ("abs", ops.abs, torch.abs, [[-1.0, 0.0, 2.0]]),
    ("leaky_relu", lambda x: ops.leaky_relu(x, 0.25), lambda x: _T.leaky_relu(x, 0.25), [[-1.0, 0.0, 2.0]]),
    ("prelu", ops.prelu, _T.prelu, [[-1.0, 0.0, 2.0], [0.25]]),
    ("elu", ops.elu, _T.elu, [[-1.0, 0.0, 2.0]]),
    ("selu", ops.selu, _T.selu, [[-1.0, 0.0, 2.0]]),
    ("celu", lambda x: ops.celu(x, 0.5), lambda x: _T.celu(x, 0.5), [[-1.0, 0.0, 2.0]]),
    ("relu6", lambda x: ops.clip(x, 0.0, 6.0), _T.relu6, [[-1.0, 0.0, 3.0, 6.0, 7.0]]),
    ("hard_sigmoid", lambda x: ops.hard_sigmoid(x, 1 / 6, 0.5), _T.hardsigmoid, [[-3.0, -2.0, 0.0, 3.0, 4.0]]),
    ("hard_swish", ops.hard_swish, _T.hardswish, [[-4.0, -2.0, 0.0, 2.0, 3.0, 4.0]]),
    ("softshrink", lambda x: ops.shrink(x, 0.5, 0.5), _T.softshrink, [[-0.75, -0.5, 0.0, 0.5, 2.0]]),
    ("hardshrink", lambda x: ops.shrink(x, 0.0, 0.5), _T.hardshrink, [[-0.75, -0.5, 0.0, 0.5, 2.0]]),
    ("threshold", lambda x: ops.thresholded_relu(x, 0.5), lambda x: _T.threshold(x, 0.5, 0.0), [[0.0, 0.5, 0.75]]),
    ("maximum", ops.max, torch.maximum, [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]),
    ("minimum", ops.min, torch.minimum, [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]),
    ("amax", lambda x: ops.reduce_max(x, (1,)), lambda x: torch.amax(x, 1), [[[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]]),
    ("amin", lambda x: ops.reduce_min(x, (1,)), lambda x: torch.amin(x, 1), [[[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]]]),
    ("prod", lambda x: ops.reduce_prod(x, (1,)), lambda x: torch.prod(x, 1), [[[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]]),
    ("l2", lambda x: ops.reduce_l2(x, (1,)), lambda x: torch.linalg.norm(x, dim=1), [[[0.0, 0.0], [3.0, 4.0]]]),
    ("l1", lambda x: ops.reduce_l1(x, (1,)), lambda x: torch.linalg.norm(x, 1, dim=1), [[[0.0, 2.0], [-3.0, 4.0]]]),
    ("pow 0", ops.pow, torch.pow, [[0.0, 0.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]]),
    ("pow below 0", ops.pow, torch.pow, [[-2.0, -2.0, -0.5], [2.0, 3.0, -1.0]]),
    ("softplus far out", ops.softplus, _T.softplus, [[-40.0, -3.0, 0.0, 5.0, 90.0]]),
    ("mish far out", ops.mish, _T.mish, [[-60.0, -3.0, 0.0, 5.0, 90.0]]),
    ("swish far out", ops.swish, _T.silu, [[-60.0, -3.0, 0.0, 5.0, 90.0]]),
    ("gelu far out", ops.gelu, _T.gelu, [[-40.0, -3.0, 0.0, 5.0, 90.0]]),
    ("gelu, tanh", lambda x: ops.gelu(x, "tanh"), lambda x: _T.gelu(x, approximate="tanh"), [[-9.0, -1.0, 0.0, 8.0]]),
    ("softmax far out", ops.softmax, lambda x: torch.softmax(x, -1), [[[-200.0, 3.0, 200.0], [1.0, 1.0, 1.0]]]),
]


@pytest.mark.parametrize(("function", "theirs", "values"), [k[1:] for k in _KINKS], ids=[k[0] for k in _KINKS])
def test_where_pytorch_has_chosen_a_gradient_it_is_the_same(
    function: Callable[..., Any], theirs: Callable[..., Any], values: list[Any]
) -> None:
    arrays = [np.array(v) for v in values]
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = theirs(*tensors)
    y.backward(torch.linspace(1, 2, y.numel(), dtype=torch.float64).reshape(y.shape))
    gradients = gradients_of(function, arrays)
    for got, tensor in zip(gradients, tensors, strict=True):
        assert tensor.grad is not None
        np.testing.assert_allclose(got, tensor.grad.numpy(), rtol=1e-7, atol=1e-14)
