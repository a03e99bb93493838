"""Random weights for a graph whose own are zeros or all alike, such that every layer passes its signal on.

Weights are drawn with He's scale (He et al. 2015, "Delving Deep into Rectifiers") and then scaled to outputs of unit
deviation on one random input (Mishkin and Matas 2016, "All you need is a good init"); statistics of batch normalization
are those of its actual input. So nothing explodes, vanishes or saturates, residual branches included.
"""

import math
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from ops.schema.schema import evaluate
from ops.tensor.spec import BOOL, FLOATS, Array, Shape, TensorSpec

Rng: TypeAlias = "np.random.Generator"  # numpy loads it when it is asked for
Draw: TypeAlias = "Callable[[Rng, Shape, Operator], Array]"
"""Draws an array of a shape for one input of an operator."""


@frozen(eq=False)
class WeightRole:
    """The meaning of the constant inputs of an operator, by position, and the position of its weights (-1 for none).

    `stats` says that inputs 3 and 4 are the mean and the variance of input 0 over all axes but 1.
    """

    draws: Mapping[int, Draw]
    weights: int = -1
    stats: bool = False


def _scale(rng: Rng, shape: Shape, _: Operator) -> Array:
    return rng.uniform(0.5, 1.5, shape)


def _shift(rng: Rng, shape: Shape, _: Operator) -> Array:
    return rng.normal(0.0, 0.1, shape)


def _slope(rng: Rng, shape: Shape, _: Operator) -> Array:
    return rng.uniform(0.1, 0.4, shape)


def _table(rng: Rng, shape: Shape, _: Operator) -> Array:
    return rng.standard_normal(shape, np.float32)


def _he(fan_in: Callable[[Shape, Operator], int]) -> Draw:
    def draw(rng: Rng, shape: Shape, operator: Operator) -> Array:
        values = rng.standard_normal(shape, np.float32)
        values *= math.sqrt(2.0 / max(fan_in(shape, operator), 1))
        return values

    return draw


def _conv_fan(shape: Shape, _: Operator) -> int:
    return math.prod(shape[1:])


def _transposed_fan(shape: Shape, _: Operator) -> int:
    return shape[0]


def _gemm_fan(shape: Shape, operator: Operator) -> int:
    return shape[1] if operator.attrs["trans_b"] else shape[0]


def _gate_fan(shape: Shape, _: Operator) -> int:
    """Returns twice the inputs of a gate: half of He's variance, as gates follow no ReLU."""
    return 2 * shape[-1]


def _left_fan(shape: Shape, _: Operator) -> int:
    return shape[-1]


def _right_fan(shape: Shape, _: Operator) -> int:
    return shape[-2] if len(shape) > 1 else shape[0]


_NOTHING = WeightRole({})
_NORM = WeightRole({1: _scale, 2: _shift})
_RECURRENT = WeightRole({1: _he(_gate_fan), 2: _he(_gate_fan), 3: _shift})
ROLES: Mapping[str, WeightRole] = MappingProxyType(
    {
        "conv": WeightRole({1: _he(_conv_fan), 2: _shift}, weights=1),
        "conv_transpose": WeightRole({1: _he(_transposed_fan), 2: _shift}, weights=1),
        "gemm": WeightRole({1: _he(_gemm_fan), 2: _shift}, weights=1),
        "matmul": WeightRole({0: _he(_left_fan), 1: _he(_right_fan)}, weights=1),
        "batch_norm": WeightRole({1: _scale, 2: _shift}, stats=True),
        "layer_norm": _NORM,
        "instance_norm": _NORM,
        "group_norm": _NORM,
        "rms_norm": _NORM,
        "rnn": _RECURRENT,
        "gru": _RECURRENT,
        "lstm": _RECURRENT,
        "prelu": WeightRole({1: _slope}),
        "mul": WeightRole({0: _scale, 1: _scale}),
        "add": WeightRole({0: _shift, 1: _shift}),
        "gather": WeightRole({0: _table}),
    }
)
"""The roles by name of the operator's schema. All other constants, and those of one element, keep their values."""


def calibrated(graph: Graph, rng: Rng, names: Collection[str]) -> dict[str, Array]:
    """Returns new values for those constants among `names` that are weights, from one run of the graph."""
    values: dict[Var, Array] = {v: _random_input(rng, v.spec) for v in graph.inputs.values()}
    values |= dict(graph.constants)
    drawn: dict[Var, Array] = {}
    for operator in graph.operators:
        role = ROLES.get(operator.schema.name, _NOTHING)
        fresh = {
            i: v
            for i, v in enumerate(operator.inputs)
            if v in graph.constants and v.name in names and v not in drawn and v.dtype in FLOATS
        }
        new = _draw(role, rng, operator, fresh) | (_statistics(operator, values, fresh) if role.stats else {})
        drawn |= new
        values |= new
        if role.weights in fresh and fresh[role.weights] in new:
            _scale_to_unit(operator, values, fresh[role.weights])
        values.update(zip(operator.outputs, _run(operator, values), strict=True))
    return {var.name: array for var, array in drawn.items()}


def _draw(role: WeightRole, rng: Rng, operator: Operator, fresh: Mapping[int, Var]) -> dict[Var, Array]:
    chosen = {v: role.draws[i] for i, v in fresh.items() if i in role.draws and v.spec.size > 1}
    return {v: draw(rng, v.shape, operator).astype(v.dtype, copy=False) for v, draw in chosen.items()}


def _run(operator: Operator, values: Mapping[Var, Array]) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        return evaluate(operator.schema, *(values[v] for v in operator.inputs), **operator.attrs)


def _statistics(operator: Operator, values: Mapping[Var, Array], fresh: Mapping[int, Var]) -> dict[Var, Array]:
    x = values[operator.inputs[0]].astype(np.float64)
    axes = tuple(a for a in range(x.ndim) if a != 1)
    statistics = {3: x.mean(axis=axes), 4: x.var(axis=axes) + 1e-3}
    return {fresh[i]: array.astype(fresh[i].dtype) for i, array in statistics.items() if i in fresh}


def _scale_to_unit(operator: Operator, values: Mapping[Var, Array], weights: Var) -> None:
    """Scales weights, in place, so that the output has a standard deviation of 1."""
    deviation = float(_run(operator, values)[0].std(dtype=np.float64))
    if math.isfinite(deviation) and deviation > 1e-6:
        values[weights][...] /= deviation


def _random_input(rng: Rng, spec: TensorSpec) -> Array:
    if spec.dtype in FLOATS:
        return rng.standard_normal(spec.shape).astype(spec.dtype)
    return rng.integers(0, 2, spec.shape).astype(spec.dtype if spec.dtype != BOOL else np.bool_)
