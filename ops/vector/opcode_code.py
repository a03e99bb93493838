"""What each opcode does to 16 elements, and the code that does it to many. Imports llvmlite and numba.

Truths are 1 and 0. Each function is f(a, b, c, p, q): three operands, of which those that it does not name are not
read, and two numbers; results are those of the numpy kernels, within few units in the last place where a function is
no arithmetic.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numba import types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic

from allocator.machine_code.memory import Decorator
from ops.native.emit.builder import INT, Value, advance, splat, splat_float, switch, word
from ops.vector.lanes import (
    Carried,
    Floats,
    Lanes,
    Truth,
    each_vector,
    load,
    load_truth,
    store,
    store_truth,
)
from ops.vector.math import (
    erf,
    exp,
    expm1,
    gated,
    gelu,
    gelu_tanh,
    log,
    log1p,
    maximum,
    minimum,
    mish,
    sigmoid,
    tanh,
)
from ops.vector.opcodes import OPCODES

_intrinsic: Decorator = intrinsic


def _truth(truth: Truth) -> Floats:
    return truth.choose(1.0, 0.0)


def _sign(a: Floats) -> Floats:
    return (a > 0.0).choose(1.0, (a < 0.0).choose(-1.0, a.equals(0.0).choose(0.0, a)))


def _softplus(a: Floats) -> Floats:
    return a.at_least(0.0) + log1p(exp(-a.apply("fabs")))


def _hard_swish(a: Floats) -> Floats:
    """Computes HardSwish; a + 3 is exact where it is small."""
    return a * ((a + 3.0).at_least(0.0).at_most(6.0) / 6.0)


def _shrink(a: Floats, p: Floats, q: Floats) -> Floats:
    """Computes Shrink; p is the bias, q the edge."""
    return (a > q).choose(a - p, (a < -q).choose(a + p, 0.0))


def _elu(a: Floats, p: Floats, q: Floats) -> Floats:
    """Computes Elu; p is the height of what is below 0, q its width."""
    return a.at_least(0.0) + expm1(a.at_most(0.0) / q) * p


_MEANINGS: Mapping[str, Callable[..., Floats]] = {
    "copy": lambda a: a,
    "neg": lambda a: -a,
    "abs": lambda a: a.apply("fabs"),
    "sign": _sign,
    "not": lambda a: _truth(a.equals(0.0)),
    "exp": exp,
    "log": log,
    "sqrt": lambda a: a.apply("sqrt"),
    "reciprocal": lambda a: 1.0 / a,
    "square": lambda a: a * a,
    "cube": lambda a: a * a * a,
    "floor": lambda a: a.apply("floor"),
    "ceil": lambda a: a.apply("ceil"),
    "round": lambda a: a.apply("rint"),
    "erf": erf,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "relu": lambda a: a.at_least(0.0),
    "softsign": lambda a: a / (a.apply("fabs") + 1.0),
    "softplus": _softplus,
    "mish": mish,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "hard_swish": _hard_swish,
    "is_nan": lambda a: _truth(a.is_nan()),
    "leaky_relu": lambda a, p: a.at_least(0.0) + a.at_most(0.0) * p,
    "thresholded_relu": lambda a, p: (a <= p).choose(0.0, (a > p).choose(a, 0.0)),
    "swish": lambda a, p: gated(a, a * p),
    "scale": lambda a, p: a * p,
    "over": lambda a, p: a / p,
    "hard_sigmoid": lambda a, p, q: a.times(p, q).at_least(0.0).at_most(1.0),
    "shrink": _shrink,
    "elu": _elu,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": maximum,
    "min": minimum,
    "prelu": lambda a, b: a.at_least(0.0) + a.at_most(0.0) * b,
    "equal": lambda a, b: _truth(a.equals(b)),
    "less": lambda a, b: _truth(a < b),
    "less_or_equal": lambda a, b: _truth(a <= b),
    "greater": lambda a, b: _truth(a > b),
    "greater_or_equal": lambda a, b: _truth(a >= b),
    "and": lambda a, b: _truth(a.differs(0.0) & b.differs(0.0)),
    "or": lambda a, b: _truth(a.differs(0.0) | b.differs(0.0)),
    "xor": lambda a, b: _truth(a.differs(0.0) ^ b.differs(0.0)),
    "where": lambda a, b, c: a.differs(0.0).choose(b, c),
    "clip": lambda a, b, c: minimum(maximum(a, b), c),
}


def _loop(builder: Value, name: str, places: dict[str, Value], count: Value, numbers: dict[str, Value]) -> None:
    """Writes the loop of one instruction over all elements: operands at the addresses a, b, c, the result at y."""
    meaning = _MEANINGS[name]
    named = inspect.signature(meaning).parameters
    operands = [n if n in "abcpq" else "a" for n in named]
    constants = {k: Floats(builder, splat_float(builder, v)) for k, v in numbers.items() if k in operands}

    def body(number: Value, lanes: Lanes, _: Carried) -> Carried:
        offset = builder.mul(number, word(4))
        values = dict(constants)
        for operand in operands:
            if operand not in constants:
                values[operand] = load(builder, builder.add(places[operand], offset), lanes)
        store(builder, builder.add(places["y"], offset), lanes, meaning(*(values[o] for o in operands)))
        return []

    each_vector(builder, count, [], body)


@_intrinsic
def obey(_: Any, opcode: Any, y: Any, a: Any, b: Any, c: Any, count: Any, p: Any, q: Any) -> Any:  # noqa: PLR0917 - the words of an instruction
    """Runs one instruction on `count` elements; y may be a, b or c."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        opcode, y, a, b, c, count, p, q = values
        places, numbers = {"y": y, "a": a, "b": b, "c": c}, {"p": p, "q": q}
        cases = {i: partial(_loop, builder, name, places, count, numbers) for i, name in enumerate(OPCODES)}
        switch(builder, builder.trunc(opcode, INT), cases)
        return word(0)

    words, reals = [types.int64] * 6, [types.float64] * 2
    return types.int64(*words, *reals), generate


def _copier(read: Callable[..., Floats], size: int, write: Callable[..., None], out: int, *, whole: bool) -> Any:
    """Returns the code of f(from, to, count), which copies neighbours; `whole`: what is behind them may change."""

    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        source, target, count = values

        def body(number: Value, lanes: Lanes, ___: Carried) -> Carried:
            values = read(builder, advance(builder, source, number, size), lanes)
            write(builder, advance(builder, target, number, out), None if whole else lanes, values)
            return []

        each_vector(builder, count, [], body)
        return word(0)

    return generate


_COPY = types.int64(types.int64, types.int64, types.int64)


@_intrinsic
def take(_: Any, source: Any, target: Any, count: Any) -> Any:
    """Copies `count` floats into the scratch buffer, where up to 15 floats behind them change too."""
    return _COPY, _copier(load, 4, store, 4, whole=True)


@_intrinsic
def take_truths(_: Any, source: Any, target: Any, count: Any) -> Any:
    """Copies `count` bytes into the scratch buffer as floats, 1 or 0; up to 15 behind them change too."""
    return _COPY, _copier(load_truth, 1, store, 4, whole=True)


@_intrinsic
def give(_: Any, source: Any, target: Any, count: Any) -> Any:
    """Copies `count` floats."""
    return _COPY, _copier(load, 4, store, 4, whole=False)


@_intrinsic
def give_truths(_: Any, source: Any, target: Any, count: Any) -> Any:
    """Writes `count` floats as bytes, 0 of 0, else 1."""
    return _COPY, _copier(load, 4, store_truth, 1, whole=False)


@_intrinsic
def fill(_: Any, number: Any, target: Any, count: Any) -> Any:
    """Writes one float32 `count` times, and up to 15 more."""

    def generate(__: Any, builder: Any, ___: Any, values: Any) -> Any:
        number, target, count = values
        floats = Floats(builder, splat(builder, number))

        def body(index: Value, _: Lanes, ____: Carried) -> Carried:
            store(builder, advance(builder, target, index, 4), None, floats)
            return []

        each_vector(builder, count, [], body)
        return word(0)

    return types.int64(types.float32, types.int64, types.int64), generate
