"""Random programs of elementwise operators, with arrays that they take."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen
from hypothesis import strategies as st

from ops.elementwise.program import Program, Step
from ops.registry import find
from ops.schema.backends import NUMPY
from ops.schema.schema import OpSchema
from ops.tensor.spec import Array, Shape, TensorSpec
from tests.helpers.ops.kernel_checks import run, sign

Choose = Callable[[int], int]
FLOAT, BOOL = np.dtype("float32"), np.dtype("bool")
ONE = ("relu", "neg", "abs", "tanh", "exp", "sigmoid", "swish", "gelu", "leaky_relu", "mish", "softplus", "hard_swish")
TWO = ("add", "sub", "mul", "div", "mod", "pow", "prelu")
MANY = ("sum", "mean", "max", "min")
_SHAPES: tuple[Shape, ...] = ((), (1,), (7,), (2, 3, 5), (4, 1, 3), (1, 1), (0, 3), (3, 40, 5))


@frozen(eq=False)
class Case:
    """A program and its inputs."""

    program: Program
    arrays: list[Array]

    @property
    def wanted(self) -> Array:
        """Computes step after step, by numpy."""
        values = list(self.arrays)
        for step in self.program:
            operands = [values[i] for i in step.operands]
            signature = sign(step.schema, operands, step.attrs)
            values += run(step.schema.kernel(signature, (NUMPY,)), signature, operands)
        return values[-1]


def step_of(name: str, *operands: int, **attrs: Any) -> Step:
    """Returns a step with these attributes, and defaults for the others."""
    schema = find(name)
    return Step(schema, {a.name: a.read(attrs.get(a.name, a.default)) for a in schema.attributes}, operands)


def _array(rng: np.random.Generator, shape: Shape, choose: Choose) -> Array:
    dtype = ("float32", "float32", "float64", "int32", "bool")[choose(5)]
    return np.asarray(2 * rng.standard_normal(shape)).astype(dtype)


def _smaller(shape: Shape, choose: Choose) -> Shape:
    """Draws a shape that broadcasts to this one."""
    kept = shape[choose(len(shape) + 1) :]
    return tuple(n if choose(2) else 1 for n in kept)


def bits(array: Array) -> bytes:
    """Returns all bits, but one value for NaN: its sign depends on where in a vector numpy computes it."""
    return (
        np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array).tobytes()
        if array.dtype.kind == "f"
        else array.tobytes()
    )


class _Builder:
    """A builder of steps whose first operand has the whole shape, so that each output has it."""

    def __init__(self, choose: Choose, most: int) -> None:
        self._choose, rng = choose, np.random.default_rng(choose(1000))
        self.shape = _SHAPES[choose(len(_SHAPES))]
        self.arrays = [np.asarray(rng.standard_normal(self.shape)).astype(FLOAT)]
        for _ in range(choose(4)):
            shape = self.shape if choose(2) else _smaller(self.shape, choose)
            self.arrays.append(_array(rng, shape, choose))
        self.specs = [TensorSpec(a.shape, a.dtype) for a in self.arrays]
        self.steps: list[Step] = []
        for _ in range(1 + choose(most)):
            self._grow()

    def _pick(self, dtype: np.dtype[np.generic], whole: bool) -> int:
        """Draws a value of that dtype, recent ones more often."""
        candidates = [i for i, s in enumerate(self.specs) if s.dtype == dtype and (s.shape == self.shape or not whole)]
        return candidates[-1 - self._choose(min(3, len(candidates)))]

    def _grow(self) -> None:
        first = self._choose(len(self.specs))
        dtype = self.specs[first].dtype
        if self.specs[first].shape != self.shape:
            first, dtype = self._pick(FLOAT, True), FLOAT
        way = self._choose(6)
        if dtype.kind != "f" or way == 0:
            self._add("cast", (first,), to=("float32", "float64", "int32", "bool")[self._choose(4)])
        elif way == 1:
            self._add(ONE[self._choose(len(ONE))], (first,))
        elif way == 2:
            count = 1 + self._choose(3)
            self._add(MANY[self._choose(len(MANY))], (first, *(self._pick(dtype, False) for _ in range(count))))
        elif way == 3 and BOOL in {s.dtype for s in self.specs}:
            self._add("where", (self._pick(BOOL, False), first, self._pick(dtype, False)))
        elif way == 4:
            self._add(("less", "equal")[self._choose(2)], (first, self._pick(dtype, False)))
        else:
            self._add(TWO[self._choose(len(TWO))], (first, self._pick(dtype, False)))

    def _add(self, name: str, operands: tuple[int, ...], **attrs: object) -> None:
        schema: OpSchema = find(name)
        signature = schema.sign([self.specs[i] for i in operands], attrs)
        self.steps.append(Step(schema, signature.attrs, operands))
        self.specs.append(signature.y)


@st.composite
def programs(draw: st.DrawFn, most: int = 8) -> Case:
    """Draws a program of at most `most` steps."""
    built = _Builder(lambda n: draw(st.integers(0, n - 1)), most)
    return Case(tuple(built.steps), built.arrays)


def seeded_program(seed: int, most: int = 12) -> Case:
    """Returns a random program for a seed."""
    rng = np.random.default_rng(seed)
    built = _Builder(lambda n: int(rng.integers(n)), most)
    return Case(tuple(built.steps), built.arrays)
