"""Dropout in training (Srivastava et al. 2014), whose mask takes no bytes: it is drawn again in the backward pass.

numba compiles one pass; numpy draws the same bits for many elements at a time (`ops.training.philox`).
"""

from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.thunks import in_turn
from ops.common.widened import WIDE
from ops.native.functions import function_call
from ops.schema.attributes import Attribute, integer, number
from ops.schema.backends import NUMBA
from ops.schema.backward import Backward, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
    overwrites_first,
)
from ops.tensor.errors import AttributeValueError, DtypeError
from ops.tensor.limits import constant
from ops.tensor.spec import BOOL, TensorSpec
from ops.training.args import DROP
from ops.training.philox import DRAWN, check_drawn, philox_specs, philox_steps, words_of


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, step = inputs
    if x.dtype not in WIDE:
        raise DtypeError(f"takes float32 or float64, not {x.dtype}")
    if not 0 <= attrs["rate"] < 1:
        raise AttributeValueError(f"rate is {attrs['rate']}; at least 0 and below 1 is wanted")
    check_drawn(step, attrs["seed"])
    return (x,)


def _bind(call: Binding) -> Thunk:
    (words,), dtype, rate = call.temporaries, call.x.dtype, call.attrs["rate"]
    x, step, y = (a.reshape(-1) for a in (*call.inputs, call.y))
    return function_call(
        "ops.training.philox_code",
        f"drop_{dtype.name}",
        DROP,
        x=x,
        y=y,
        size=y.size,
        step=step,
        scratch=words,
        words=words.size,
        seed=int(np.uint64(call.attrs["seed"]).view(np.int64)),
        threshold=round(rate * 2**32),
        scale=1 / (1 - rate),
    )


def _temporaries(_: Signature) -> Specs:
    return (DRAWN,)


def _bind_passes(call: Binding) -> Thunk:
    drawn, drops, *state, when = call.temporaries
    rate, dtype = call.attrs["rate"], call.x.dtype
    x, step, y = (a.reshape(-1) for a in (*call.inputs, call.y))
    steps: list[Thunk] = [partial(np.copyto, when, step, casting="unsafe")]
    threshold, scale = np.asarray(round(rate * 2**32), np.uint64), constant(1 / (1 - rate), dtype)
    for start in range(0, x.size, drawn.size):
        source, out = (a[start : start + drawn.size] for a in (x, y))
        words, mask = drawn.reshape(-1)[: out.size], drops[: out.size]
        steps += philox_steps(start // DRAWN.size, call.attrs["seed"], drawn, state, when)
        steps.append(partial(np.less, words, threshold, mask))
        steps.append(partial(np.multiply, source, scale, out))
        steps.append(partial(np.copyto, out, constant(0, dtype), where=mask))
    return in_turn(*steps)


def _passes_specs(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of random words, a mask of dropped elements, the generator's temporaries, and the step."""
    words = words_of(signature.x.size)
    return words, TensorSpec((words.size,), BOOL), *philox_specs(words.shape), DRAWN.with_shape((1,))


def _cost(signature: Signature) -> Cost:
    return Cost(30 * signature.x.size, signature.x.nbytes + signature.y.nbytes)


def _gradient(b: Backward) -> Terms:
    """Returns the gradient, the same operator on dy: the same elements are dropped, and the others scaled."""
    return b.terms(lambda: b.apply1(DROPOUT, b.dy, b.inputs[1], **b.attrs))


DROPOUT = OpSchema(
    name="dropout_training",
    summary="x / (1 - rate), but 0 with probability `rate`: as place, `step` (a number) and `seed` say.",
    infer=_infer,
    kernels=(
        Kernel("philox", _bind, _temporaries, contiguous=all_contiguous, backend=NUMBA),
        Kernel("passes", _bind_passes, _passes_specs, contiguous=all_contiguous),
    ),
    arity=(2, 2),
    attributes=(Attribute("rate", number, 0.5), Attribute("seed", integer, 0)),
    overwrites=overwrites_first,
    cost=_cost,
    gradient=_gradient,
)
OPS = (DROPOUT,)


def dropout_training(x: V, step: V, *, rate: float = 0.5, seed: int) -> V:
    """Returns x / (1 - rate), but 0 with probability `rate`; the mask is computed again in the backward pass.

    The mask is a function of `seed`, of `step` (one int64) and of the place of an element: use a different seed for
    each layer, and let the step be an input, or a parameter that is counted up when the training step is complete:
    graph.assign(step, step + 1).
    """
    return apply1(DROPOUT, x, step, rate=rate, seed=seed)
