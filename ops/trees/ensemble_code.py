"""Rows through decision trees. Imports numba: a door loads it.

A walk goes on to nodes behind, and each position is taken into its table: with tables of anything it ends, and reads
nothing else.
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import EXACT, entry
from allocator.machine_code.memory import array_at, fill, jitable
from ops.native.memory import record_at, share
from ops.tensor.spec import Array
from ops.trees.args import (
    CODE,
    COLUMNS,
    ENSEMBLE,
    EQUAL,
    FEATURE,
    GREATER,
    GREATER_OR_EQUAL,
    LEAF,
    LESS,
    LESS_OR_EQUAL,
    MAX,
    MIN,
    NAN_IS_TRUE,
    NOT_EQUAL,
    ON_FALSE,
    ON_TRUE,
    SUM,
    TEST,
)

_ROWS = 64
"""Rows that go through one tree before the next: the tree stays in the cache."""


@jitable
def _within(position: int, last: int) -> int:
    return min(max(position, 0), last)


@jitable
def _compare(code: int, value: float, threshold: float) -> bool:
    if code == LESS_OR_EQUAL:
        return value <= threshold
    if code == LESS:
        return value < threshold
    if code == GREATER_OR_EQUAL:
        return value >= threshold
    if code == GREATER:
        return value > threshold
    if code == EQUAL:
        return value == threshold
    return code == NOT_EQUAL and value != threshold


@jitable
def _leaf_of(row: Array, splits: Array, thresholds: Array, root: int) -> int:
    """Returns the leaf that a row reaches from a root."""
    last = len(splits) - 1
    node: int = _within(root, last)
    while node < last and splits[node, TEST] & CODE != LEAF:
        test, value = splits[node, TEST], row[_within(splits[node, FEATURE], len(row) - 1)]
        passes = _compare(test & CODE, value, thresholds[node]) or (test & NAN_IS_TRUE != 0 and np.isnan(value))
        child = splits[node, ON_TRUE] if passes else splits[node, ON_FALSE]
        node = min(max(child, node + 1), last)
    return node


@jitable
def _vote(leaf: Array, targets: Array, weights: Array, scores: Array, aggregate: int) -> None:
    """Adds the votes of a leaf, a row of the splits, to the scores."""
    first = _within(leaf[ON_TRUE], len(weights))
    for v in range(first, _within(leaf[ON_FALSE], len(weights))):
        target, weight = _within(targets[v], len(scores) - 1), weights[v]
        if aggregate == SUM:
            scores[target] += weight
        elif (weight < scores[target]) if aggregate == MIN else (weight > scores[target]):
            scores[target] = weight


@jitable
def _finish(scores: Array, unreached: float) -> None:
    for i in range(len(scores)):
        if scores[i] == unreached:
            scores[i] = 0


def _declare(dtype: Any) -> None:
    """Declares tree_ensemble_DTYPE, which computes rows of y; the arguments are an ENSEMBLE record."""

    @entry(fastmath=EXACT, name=f"tree_ensemble_{np.dtype(dtype).name}")
    def tree_ensemble(address: int, part: int, parts: int) -> None:
        args = record_at(address, ENSEMBLE)
        x, y = array_at(args.x, (args.rows, args.features), dtype), array_at(args.y, (args.rows, args.outputs), dtype)
        splits, thresholds = (
            array_at(args.splits, (args.nodes, COLUMNS), np.int32),
            array_at(args.thresholds, (args.nodes,), dtype),
        )
        roots = array_at(args.roots, (args.trees,), np.int32)
        targets, weights = array_at(args.targets, (args.votes,), np.int32), array_at(args.weights, (args.votes,), dtype)
        unreached = 0.0 if args.aggregate == SUM else (-np.inf if args.aggregate == MAX else np.inf)
        first, end = share(args.rows, part, parts)
        for block in range(first, end, _ROWS):
            rows = range(block, min(block + _ROWS, end))
            for i in rows:
                fill(y[i], unreached)
            for t in range(args.trees):
                for i in rows:
                    leaf = _leaf_of(x[i], splits, thresholds, roots[t])
                    _vote(splits[leaf], targets, weights, y[i], args.aggregate)
            for i in rows:
                _finish(y[i], unreached)


for _dtype in (np.float32, np.float64):
    _declare(_dtype)
