"""Activations of recurrent operators, in place; those of ONNX LSTM, GRU and RNN with their alpha and beta."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
from attrs import frozen

from ops.schema.schema import Thunk
from ops.tensor.errors import AttributeValueError
from ops.tensor.limits import constant
from ops.tensor.spec import Array


@frozen(eq=False)
class Scratch:
    """An array to work on in place, and scratch of its shape: of its dtype, and boolean."""

    x: Array
    temporary: Array
    mask: Array

    def number(self, value: float) -> Array:
        """Returns a 0-d operand."""
        return constant(value, self.x.dtype)


Steps = Callable[[Scratch, float, float], Iterator[Thunk]]


def _sigmoid(s: Scratch, _: float, __: float) -> Iterator[Thunk]:
    """Computes 1 / (1 + exp(-x)). exp overflows to infinity for very negative x, and 1 / infinity is right: 0.

    Times -1, for numpy 2.4 has `negative` wrong where elements of float32 lie 16 bytes apart: gates of one element do.
    """
    yield partial(np.multiply, s.x, s.number(-1), s.x)
    yield partial(np.exp, s.x, s.x)
    yield partial(np.add, s.x, s.number(1), s.x)
    yield partial(np.reciprocal, s.x, s.x)


def _tanh(s: Scratch, _: float, __: float) -> Iterator[Thunk]:
    yield partial(np.tanh, s.x, s.x)


def _relu(s: Scratch, _: float, __: float) -> Iterator[Thunk]:
    yield partial(np.maximum, s.x, s.number(0), out=s.x)


def _affine(s: Scratch, alpha: float, beta: float) -> Iterator[Thunk]:
    yield partial(np.multiply, s.x, s.number(alpha), s.x)
    yield partial(np.add, s.x, s.number(beta), s.x)


def _leaky_relu(s: Scratch, alpha: float, _: float) -> Iterator[Thunk]:
    yield partial(np.minimum, s.x, s.number(0), out=s.temporary)
    yield partial(np.multiply, s.temporary, s.number(alpha), s.temporary)
    yield from _relu(s, 0, 0)
    yield partial(np.add, s.x, s.temporary, s.x)


def _thresholded_relu(s: Scratch, alpha: float, _: float) -> Iterator[Thunk]:
    yield partial(np.less, s.x, s.number(alpha), s.mask)
    yield partial(np.copyto, s.x, s.number(0), where=s.mask)


def _scaled_tanh(s: Scratch, alpha: float, beta: float) -> Iterator[Thunk]:
    yield partial(np.multiply, s.x, s.number(beta), s.x)
    yield partial(np.tanh, s.x, s.x)
    yield partial(np.multiply, s.x, s.number(alpha), s.x)


def _hard_sigmoid(s: Scratch, alpha: float, beta: float) -> Iterator[Thunk]:
    yield from _affine(s, alpha, beta)
    yield from clipped(s.x, 0, 1)


def _elu(s: Scratch, alpha: float, _: float) -> Iterator[Thunk]:
    yield partial(np.minimum, s.x, s.number(0), out=s.temporary)
    yield partial(np.expm1, s.temporary, s.temporary)
    yield partial(np.multiply, s.temporary, s.number(alpha), s.temporary)
    yield from _relu(s, 0, 0)
    yield partial(np.add, s.x, s.temporary, s.x)


def _softsign(s: Scratch, _: float, __: float) -> Iterator[Thunk]:
    yield partial(np.absolute, s.x, s.temporary)
    yield partial(np.add, s.temporary, s.number(1), s.temporary)
    yield partial(np.divide, s.x, s.temporary, s.x)


def _softplus(s: Scratch, _: float, __: float) -> Iterator[Thunk]:
    """Yields steps that compute max(x, 0) + log1p(exp(-|x|)): nothing overflows."""
    yield partial(np.absolute, s.x, s.temporary)
    yield partial(np.multiply, s.temporary, s.number(-1), s.temporary)
    yield partial(np.exp, s.temporary, s.temporary)
    yield partial(np.log1p, s.temporary, s.temporary)
    yield from _relu(s, 0, 0)
    yield partial(np.add, s.x, s.temporary, s.x)


def clipped(x: Array, low: float, high: float) -> Iterator[Thunk]:
    """Returns the steps of x = min(max(x, low), high)."""
    yield partial(np.maximum, x, constant(low, x.dtype), out=x)
    yield partial(np.minimum, x, constant(high, x.dtype), out=x)


@frozen(eq=False)
class _Kind:
    """The default values of what an activation takes; () where it takes none."""

    steps: Steps
    alpha: tuple[float, ...] = ()
    beta: tuple[float, ...] = ()


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "sigmoid": _Kind(_sigmoid),
        "tanh": _Kind(_tanh),
        "relu": _Kind(_relu),
        "softsign": _Kind(_softsign),
        "softplus": _Kind(_softplus),
        "leakyrelu": _Kind(_leaky_relu, (0.01,)),
        "thresholdedrelu": _Kind(_thresholded_relu, (1.0,)),
        "elu": _Kind(_elu, (1.0,)),
        "affine": _Kind(_affine, (1.0,), (0.0,)),
        "scaledtanh": _Kind(_scaled_tanh, (1.0,), (1.0,)),
        "hardsigmoid": _Kind(_hard_sigmoid, (0.2,), (0.5,)),
    }
)


@frozen(eq=False)
class Activation:
    """One activation with its numbers. Its name counts in lower case."""

    name: str
    alpha: float
    beta: float

    def steps(self, scratch: Scratch) -> Iterator[Thunk]:
        """Returns the steps that apply it in place."""
        return _KINDS[self.name].steps(scratch, self.alpha, self.beta)


def activations(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> tuple[Activation, ...]:
    """Returns activations; each takes the next alpha and beta if it has any, and its defaults where none are left.

    Raises AttributeValueError for a name that no activation has.
    """
    left, right = iter(alphas), iter(betas)
    chosen = []
    for name in map(str.lower, names):
        if name not in _KINDS:
            raise AttributeValueError(f"no activation is named {name!r}; there are: {', '.join(sorted(_KINDS))}")
        kind = _KINDS[name]
        alpha, beta = (next(s, d[0]) if d else 0.0 for s, d in ((left, kind.alpha), (right, kind.beta)))
        chosen.append(Activation(name, alpha, beta))
    return tuple(chosen)
