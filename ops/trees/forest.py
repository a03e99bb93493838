"""Decision trees as tables, judged when they are made: a run needs no check."""

import numpy as np
from attrs import frozen

from ops.tensor.errors import DataError
from ops.tensor.spec import Array
from ops.trees.args import CODE, LEAF

_MOST = 2**31 - 1


@frozen(eq=False)
class Nodes:
    """Nodes in any order, int64 each: tests (see `ops.trees.args`), columns of x, positions of both children.

    A leaf has, in place of children, the position of its first vote and the one behind its last.
    """

    tests: Array
    features: Array
    on_true: Array
    on_false: Array
    thresholds: Array


@frozen(eq=False)
class Votes:
    """Votes of leaves, those of one leaf behind each other: each adds a weight to a target below `outputs`."""

    targets: Array
    weights: Array
    outputs: int


@frozen(eq=False)
class Forest:
    """Trees as tables: a node is a row of `splits` (see `ops.trees.args`), and its children are rows behind it.

    `columns` are how many x must have at least.
    """

    splits: Array
    thresholds: Array
    roots: Array
    votes: Votes
    columns: int

    @classmethod
    def of(cls, nodes: Nodes, roots: Array, votes: Votes) -> "Forest":
        """Returns the trees of nodes. Several nodes may go on to the same one.

        Raises DataError for a child, a column, a vote or a target that does not exist, a cycle, and a weight that is no
        finite number.
        """
        is_leaf = nodes.tests & CODE == LEAF
        _check(nodes, roots, votes, is_leaf)
        order = _parents_first(nodes, is_leaf)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        children = (np.where(is_leaf, c, place[np.where(is_leaf, 0, c)]) for c in (nodes.on_true, nodes.on_false))
        splits = np.stack([nodes.tests, nodes.features, *children], axis=1)[order].astype(np.int32)
        weights = Votes(votes.targets.astype(np.int32), votes.weights, votes.outputs)
        columns = int(nodes.features[~is_leaf].max(initial=0)) + 1
        return cls(splits, nodes.thresholds[order], place[roots].astype(np.int32), weights, columns)


def _check(nodes: Nodes, roots: Array, votes: Votes, is_leaf: Array) -> None:
    count, targets = len(nodes.tests), votes.targets
    if not count or not len(targets) or not len(roots):
        raise DataError(f"trees need nodes, roots and votes; there are {count}, {len(roots)} and {len(targets)}")
    if votes.outputs < 1 or max(count, len(targets), votes.outputs) > _MOST:
        raise DataError(f"{count} nodes with {len(targets)} votes for {votes.outputs} targets are none or too many")
    _require("node {0} goes on to a node that does not exist", is_leaf, nodes, count)
    _require("leaf {0} has votes that do not exist", ~is_leaf, nodes, len(targets) + 1)
    _first("node {0} reads column {1} of x, which cannot exist", nodes.features, ~is_leaf, _MOST)
    _first("root {0} is node {1}, which does not exist", roots, np.ones(len(roots), bool), count)
    _first("vote {0} is for target {1}, which does not exist", targets, np.ones(len(targets), bool), votes.outputs)
    if not np.isfinite(votes.weights).all():
        raise DataError(f"the weight of vote {int(np.argmin(np.isfinite(votes.weights)))} is no finite number")


def _require(message: str, excepted: Array, nodes: Nodes, count: int) -> None:
    for children in (nodes.on_true, nodes.on_false):
        _first(message, children, ~excepted, count)


def _first(message: str, positions: Array, counted: Array, count: int) -> None:
    """Raises DataError with the first of the counted positions that is not below `count`."""
    wrong = counted & ((positions < 0) | (positions >= count))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(message.format(at, int(positions[at])))


def _parents_first(nodes: Nodes, is_leaf: Array) -> Array:
    """Returns the nodes in an order in which each stands behind all that go on to it. Raises DataError for a cycle."""
    inner = np.flatnonzero(~is_leaf)
    waiting = np.bincount(np.concatenate([nodes.on_true[inner], nodes.on_false[inner]]), minlength=len(is_leaf))
    ready, order = np.flatnonzero(waiting == 0), []
    while len(ready):
        order.append(ready)
        parents = ready[~is_leaf[ready]]
        children = np.concatenate([nodes.on_true[parents], nodes.on_false[parents]])
        reached, times = np.unique(children, return_counts=True)
        waiting[reached] -= times
        ready = reached[waiting[reached] == 0]
    placed = np.concatenate(order) if order else np.empty(0, np.int64)
    if len(placed) < len(is_leaf):
        raise DataError(f"node {int(np.argmax(waiting > 0))} can be reached from itself: trees have no cycles")
    return placed
