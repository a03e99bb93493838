"""Votes of decision trees for each row (the core of ONNX's TreeEnsemble operators).

numba compiles a walk from root to leaf; numpy moves all rows down a tree level by level.
"""

from functools import partial

import numpy as np

from allocator.machine_code.door import address
from ops.common.apply import V, apply1
from ops.native.call import native_call
from ops.schema.attributes import Attribute, integer, one_of
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.tensor.errors import DtypeError, ShapeError
from ops.trees.args import COLUMNS, ENSEMBLE, MAX, MIN, SUM
from ops.trees.forest import Forest
from ops.trees.levels import Levels, level_specs

_DTYPES = (np.dtype("float32"), np.dtype("float64"))
_INT32 = np.dtype("int32")
_AGGREGATES = {"sum": SUM, "min": MIN, "max": MAX}


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, splits, thresholds, roots, targets, weights = inputs
    if x.dtype not in _DTYPES or {thresholds.dtype, weights.dtype} != {x.dtype}:
        raise DtypeError(f"x, thresholds and weights are all float32 or all float64, not {x}, {thresholds}, {weights}")
    if {splits.dtype, roots.dtype, targets.dtype} != {_INT32}:
        raise DtypeError(f"splits, roots and targets are int32, not {splits}, {roots} and {targets}")
    nodes, votes = thresholds.shape, weights.shape
    if splits.shape != (*nodes, COLUMNS) or targets.shape != votes or (roots.ndim, len(nodes), len(votes)) != (1, 1, 1):
        raise ShapeError(
            f"splits (nodes, {COLUMNS}), thresholds (nodes,), roots (trees,), targets and weights (votes,) are wanted, "
            f"not {splits}, {thresholds}, {roots}, {targets} and {weights}"
        )
    if x.ndim != 2 or 0 in (x.shape[1], *nodes, *votes) or attrs["outputs"] < 1:
        raise ShapeError(
            f"x is (rows, features), and there are features, nodes, votes and outputs; not {x}, {nodes[0]} nodes, "
            f"{votes[0]} votes and {attrs['outputs']} outputs"
        )
    if x.shape[1] < attrs["columns"]:
        raise ShapeError(f"the trees read {attrs['columns']} features, and {x} has {x.shape[1]}")
    return (x.with_shape((x.shape[0], attrs["outputs"])),)


def _native(call: Binding) -> Thunk:
    x, splits, thresholds, roots, targets, weights = call.inputs
    return native_call(
        address("ops.trees.ensemble_code", f"tree_ensemble_{x.dtype.name}"),
        ENSEMBLE,
        x=x,
        splits=splits,
        thresholds=thresholds,
        roots=roots,
        targets=targets,
        weights=weights,
        y=call.y,
        rows=x.shape[0],
        features=x.shape[1],
        nodes=len(splits),
        trees=len(roots),
        votes=len(weights),
        outputs=call.y.shape[1],
        aggregate=_AGGREGATES[call.attrs["aggregate"]],
    )


def _temporaries(signature: Signature) -> Specs:
    return level_specs(signature.x)


def _by_levels(call: Binding) -> Thunk:
    levels = Levels.of(call.inputs, call.y, call.temporaries, _AGGREGATES[call.attrs["aggregate"]])
    return partial(levels.run, call.inputs[3])


def _cost(signature: Signature) -> Cost:
    """Counts a comparison a level of trees that are full, and a vote, for each row and tree."""
    rows, trees, nodes = signature.x.shape[0], signature.inputs[3].size, signature.inputs[2].size
    depth = (nodes // max(trees, 1)).bit_length()
    return Cost(rows * trees * (depth + 1), signature.nbytes)


TREE_ENSEMBLE = OpSchema(
    name="tree_ensemble",
    summary="For each row of x and each target below `outputs`, the sum, least or greatest of the weights that the"
    " leaves of all trees have for it; 0 where they have none. Tables are those of `ops.trees.forest.Forest`; x has at"
    " least `columns` features.",
    infer=_infer,
    kernels=(
        Kernel("native", _native, contiguous=all_contiguous, backend=NUMBA),
        Kernel("levels", _by_levels, _temporaries, contiguous=all_contiguous),
    ),
    arity=(6, 6),
    attributes=(
        Attribute("outputs", integer),
        Attribute("aggregate", one_of(*_AGGREGATES), "sum"),
        Attribute("columns", integer, 1),
    ),
    cost=_cost,
)
OPS = (TREE_ENSEMBLE,)


def tree_ensemble(x: V, forest: Forest, aggregate: str = "sum") -> V:
    """Returns what trees say of each row of x: (rows, outputs), the "sum", "min" or "max" of weights for each target.

    `x` is (rows, features) of float32 or float64. A target that no leaf of a row has a weight for is 0.
    """
    dtype, votes = x.spec.dtype, forest.votes
    tables = (forest.splits, forest.thresholds.astype(dtype), forest.roots, votes.targets, votes.weights.astype(dtype))
    attrs = {"outputs": votes.outputs, "aggregate": aggregate, "columns": forest.columns}
    return apply1(TREE_ENSEMBLE, x, *tables, **attrs)
