"""Steps of optimisers: stochastic gradient descent with momentum (Sutskever et al. 2013, in PyTorch's form), Adam
(Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019). New parameters and state are written over the old ones.
The rate and the number of the step are float64, whatever the parameters are.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.blocks import BLOCK_BYTES
from ops.common.costs import flops_per_input_element
from ops.common.elementwise import Dtypes, require_dtype, require_one_dtype
from ops.common.thunks import in_turn
from ops.schema.attributes import Attribute, flag, number
from ops.schema.schema import (
    Attrs,
    Binding,
    Kernel,
    OpSchema,
    Overwrite,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
    zero_gradient,
)
from ops.tensor.errors import ShapeError
from ops.tensor.limits import constant
from ops.tensor.spec import Array, TensorSpec

_DOUBLE = np.dtype("float64")
_DTYPES: Dtypes = frozenset({np.dtype("float32"), _DOUBLE})


@frozen(eq=False)
class _Block:
    """The same elements of a parameter, its gradient and its state, old and new, and two temporaries of that size.

    `numbers` have one element each, of the dtype of the block, and are computed before any block: the rate, and others
    that depend on the scalars alone.
    """

    old: tuple[Array, ...]
    gradient: Array
    new: tuple[Array, ...]
    numbers: tuple[Array, ...]
    one: Array
    two: Array
    attrs: Attrs

    def number(self, value: float) -> Array:
        """Returns a 0-d operand of the dtype of the block."""
        return constant(value, self.one.dtype)

    def decayed(self) -> Iterator[Thunk]:
        """Returns the steps of one = gradient + weight_decay * parameter."""
        decay = self.attrs["weight_decay"]
        if decay:
            yield partial(np.multiply, self.old[0], self.number(decay), self.one)
            yield partial(np.add, self.one, self.gradient, self.one)
        else:
            yield partial(np.copyto, self.one, self.gradient)

    def average(self, state: int, factor: float, value: Array, weight: float) -> Iterator[Thunk]:
        """Returns the steps of state = factor * state + weight * value; `value` is lost unless the weight is 1."""
        yield partial(np.multiply, self.old[state], self.number(factor), self.new[state])
        if weight != 1:
            yield partial(np.multiply, value, self.number(weight), self.two)
            value = self.two
        yield partial(np.add, self.new[state], value, self.new[state])

    def descend(self) -> Iterator[Thunk]:
        """Returns the steps of parameter - rate * one."""
        yield partial(np.multiply, self.one, self.numbers[0], self.one)
        yield partial(np.subtract, self.old[0], self.one, self.new[0])


Passes = Callable[[_Block], Iterator[Thunk]]


def _sgd(block: _Block) -> Iterator[Thunk]:
    yield from block.decayed()
    yield from block.descend()


def _momentum(block: _Block) -> Iterator[Thunk]:
    factor, velocity = block.attrs["momentum"], block.new[1]
    yield from block.decayed()
    yield from block.average(1, factor, block.one, 1.0)
    if block.attrs["nesterov"]:
        yield partial(np.multiply, velocity, block.number(factor), block.two)
        yield partial(np.add, block.one, block.two, block.one)
    else:
        yield partial(np.copyto, block.one, velocity)
    yield from block.descend()


def _adam(block: _Block) -> Iterator[Thunk]:
    (beta1, beta2), (rate, corrected, root) = (block.attrs[n] for n in ("beta1", "beta2")), block.numbers
    one, two = block.one, block.two
    yield from block.decayed()
    yield from block.average(1, beta1, one, 1 - beta1)
    yield partial(np.multiply, one, one, one)
    yield from block.average(2, beta2, one, 1 - beta2)
    yield partial(np.sqrt, block.new[2], one)
    yield partial(np.multiply, one, root, one)
    yield partial(np.add, one, block.number(block.attrs["epsilon"]), one)
    yield partial(np.divide, block.new[1], one, one)
    yield partial(np.multiply, one, corrected, one)
    shrink = block.attrs["decoupled_decay"]
    if shrink:
        yield partial(np.multiply, block.old[0], block.number(shrink), two)
        yield partial(np.multiply, two, rate, two)
        yield partial(np.add, one, two, one)
    yield partial(np.subtract, block.old[0], one, block.new[0])


def _rate(call: Binding, numbers: Sequence[Array]) -> Iterator[Thunk]:
    yield partial(np.copyto, numbers[0], call.inputs[-1].reshape(()))


def _adam_numbers(call: Binding, numbers: Sequence[Array]) -> Iterator[Thunk]:
    """Yields steps that write rate, rate / (1 - beta1^t) and 1 / sqrt(1 - beta2^t).

    They compute in float64: 1 - 0.999^t has few correct digits in float32.
    """
    (same, corrected, root), (rate, step) = numbers, (a.reshape(()) for a in call.inputs[-2:])
    yield partial(np.copyto, same, rate)
    for beta, power in (("beta1", corrected), ("beta2", root)):
        yield partial(np.power, constant(call.attrs[beta], power.dtype), step, power)
        yield partial(np.subtract, constant(1.0, power.dtype), power, power)
    yield partial(np.divide, rate, corrected, corrected)
    yield partial(np.sqrt, root, root)
    yield partial(np.reciprocal, root, root)


def _temporaries(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of two temporaries, of the numbers in float64, and of the numbers as the blocks need them."""
    size = max(1, min(signature.x.size, BLOCK_BYTES // 2 // signature.x.dtype.itemsize))
    block, numbers = signature.x.with_shape((size,)), signature.x.with_shape((_numbers(signature),))
    return block, block, numbers.with_dtype(_DOUBLE), numbers


def _numbers(signature: Signature) -> int:
    """Returns the number of scalars that are computed before any block: the rate alone, or three for Adam."""
    scalars = len(signature.inputs) - len(signature.outputs) - 1
    return 1 if scalars == 1 else 3


def _kernel(passes: Passes, compute: Callable[[Binding, Sequence[Array]], Iterator[Thunk]]) -> Kernel:
    def bind(call: Binding) -> Thunk:
        one, two, wide, narrow = call.temporaries
        steps = [*compute(call, [wide[i, ...] for i in range(wide.size)])]
        steps.append(partial(np.copyto, narrow, wide, casting="same_kind"))
        numbers, count = tuple(narrow[i, ...] for i in range(narrow.size)), 1 + len(call.outputs)
        flat, outputs = ([a.reshape(-1) for a in arrays] for arrays in (call.inputs[:count], call.outputs))
        for start in range(0, call.y.size, one.size):
            parameter, gradient, *held = (a[start : start + one.size] for a in flat)
            new = tuple(a[start : start + one.size] for a in outputs)
            a, b = one[: gradient.size], two[: gradient.size]
            steps.extend(passes(_Block((parameter, *held), gradient, new, numbers, a, b, call.attrs)))
        return in_turn(*steps)

    return Kernel("blocks", bind, _temporaries, contiguous=all_contiguous)


def _infer(state: int, scalars: int) -> Callable[[Specs, Attrs], Specs]:
    """Infers from a parameter, its gradient, state like them, and scalars, float64 of one element."""

    def infer(inputs: Specs, _: Attrs) -> Specs:
        alike, single = inputs[: 2 + state], inputs[2 + state :]
        require_one_dtype(alike, _DTYPES)
        for spec in single:
            require_dtype(spec, frozenset({_DOUBLE}))
        if any(s != inputs[0] for s in alike):
            raise ShapeError(f"parameter, gradient and state are of one shape, not {', '.join(map(str, alike))}")
        if len(single) != scalars or any(s.size != 1 for s in single):
            raise ShapeError(f"the last {scalars} input(s) must have one element, not {', '.join(map(str, single))}")
        return (inputs[0], *inputs[2 : 2 + state])

    return infer


def _overwrites(signature: Signature) -> tuple[Overwrite, ...]:
    state = range(1, len(signature.outputs))
    return (Overwrite(0, 0), *(Overwrite(i, i + 1) for i in state))


def _step(name: str, passes: Passes, summary: str, *, state: int, scalars: int = 1, **defaults: Any) -> OpSchema:
    compute = _adam_numbers if scalars > 1 else _rate
    count = 2 + state + scalars
    return OpSchema(
        name,
        _infer(state, scalars),
        (_kernel(passes, compute),),
        (count, count),
        tuple(Attribute(n, flag if isinstance(v, bool) else number, v) for n, v in defaults.items()),
        overwrites=_overwrites,
        cost=flops_per_input_element(3 + 6 * state),
        gradient=zero_gradient,
        summary=summary,
    )


SGD_STEP = _step("sgd_step", _sgd, "Parameter, gradient, rate: parameter - rate * gradient.", state=0, weight_decay=0.0)
MOMENTUM_STEP = _step(
    "momentum_step",
    _momentum,
    "Parameter, gradient, velocity, rate: velocity = momentum * velocity + gradient; parameter - rate * velocity.",
    state=1,
    momentum=0.9,
    nesterov=False,
    weight_decay=0.0,
)
ADAM_STEP = _step(
    "adam_step",
    _adam,
    "Parameter, gradient, both moments, rate, number of the step (from 1 on): Adam; `decoupled_decay` makes it AdamW.",
    state=2,
    scalars=2,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    weight_decay=0.0,
    decoupled_decay=0.0,
)
OPS = (SGD_STEP, MOMENTUM_STEP, ADAM_STEP)
