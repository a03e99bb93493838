"""Random decision trees as nested objects, their answers by recursion, and their tables for operators."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.tensor.spec import Array
from ops.trees.args import LEAF, NAN_IS_TRUE
from ops.trees.forest import Forest, Nodes, Votes

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "BRANCH_LEQ": operator.le,
    "BRANCH_LT": operator.lt,
    "BRANCH_GTE": operator.ge,
    "BRANCH_GT": operator.gt,
    "BRANCH_EQ": operator.eq,
    "BRANCH_NEQ": operator.ne,
}
"""ONNX's names of comparisons, in the order of their codes."""


@frozen(eq=False)
class Leaf:
    """A leaf with votes: pairs of target and weight."""

    votes: tuple[tuple[int, float], ...]


@frozen(eq=False)
class Branch:
    """A node that compares an element with a threshold; NaN passes where `nan_passes` says so."""

    mode: str
    feature: int
    threshold: float
    nan_passes: bool
    passed: "Branch | Leaf"
    failed: "Branch | Leaf"


Tree = Branch | Leaf


@frozen
class Kind:
    """What random trees may have."""

    features: int = 3
    targets: int = 2
    depth: int = 4
    modes: tuple[str, ...] = tuple(COMPARISONS)
    thresholds: tuple[float, ...] = (-1.0, 0.0, 0.5, 2.0)
    votes: tuple[int, int] = (0, 3)
    values: tuple[float, float] = (-1.0, 1.0)


def random_tree(random: np.random.Generator, kind: Kind, depth: int = 0) -> Tree:
    if depth >= kind.depth or (depth and random.random() < 0.25):
        low, high = kind.votes
        targets = random.permutation(kind.targets)[: random.integers(low, high + 1)]
        return Leaf(tuple((int(t), float(np.float32(random.uniform(*kind.values)))) for t in targets))
    return Branch(
        str(random.choice(kind.modes)),
        int(random.integers(kind.features)),
        float(random.choice(kind.thresholds)),
        bool(random.integers(2)),
        random_tree(random, kind, depth + 1),
        random_tree(random, kind, depth + 1),
    )


def random_rows(random: np.random.Generator, rows: int, features: int, dtype: str) -> Array:
    """Returns rows that often hit thresholds, and have NaN and infinities."""
    values = np.array([-1.5, -1, 0, 0.25, 0.5, 1, 2, 3, np.nan, np.inf, -np.inf])
    return random.choice(values, (rows, features)).astype(dtype)


def leaf_of(tree: Tree, row: Array) -> Leaf:
    while isinstance(tree, Branch):
        element = row[tree.feature]
        passes = COMPARISONS[tree.mode](element, tree.threshold) or (tree.nan_passes and np.isnan(element))
        tree = tree.passed if passes else tree.failed
    return tree


def answers(trees: Sequence[Tree], x: Array, targets: int, aggregate: str = "sum") -> Array:
    """Returns the sum, the least or the greatest vote for each row and target; 0 where there is none."""
    combine: Any = {"sum": sum, "min": min, "max": max}[aggregate]
    y = np.zeros((len(x), targets))
    for i, row in enumerate(x):
        votes = [vote for tree in trees for vote in leaf_of(tree, row).votes]
        for target in range(targets):
            weights = [weight for t, weight in votes if t == target]
            y[i, target] = combine(weights) if weights else 0
    return y


@frozen(eq=False)
class Listed:
    """The nodes of a tree in a list, each with the positions of its children."""

    nodes: list[Tree] = field(factory=list)
    children: list[tuple[int, int]] = field(factory=list)

    @classmethod
    def of(cls, tree: Tree) -> "Listed":
        listed = cls()
        listed.add(tree)
        return listed

    def add(self, tree: Tree) -> int:
        position = len(self.nodes)
        self.nodes.append(tree)
        self.children.append((0, 0))
        if isinstance(tree, Branch):
            self.children[position] = self.add(tree.passed), self.add(tree.failed)
        return position


def forest_of(trees: Sequence[Tree], targets: int, shuffle: np.random.Generator, dtype: str = "float32") -> Forest:
    """Returns the tables of trees, whose nodes stand in any order."""
    votes: list[tuple[int, float]] = []
    rows: list[tuple[float, ...]] = []
    roots = []
    for tree in trees:
        listed, first = Listed.of(tree), len(rows)
        roots.append(first)
        for node, children in zip(listed.nodes, listed.children, strict=True):
            if isinstance(node, Leaf):
                rows.append((LEAF, 0, len(votes), len(votes) + len(node.votes), 0.0))
                votes += node.votes
            else:
                test = list(COMPARISONS).index(node.mode) + NAN_IS_TRUE * node.nan_passes
                rows.append((test, node.feature, *(first + c for c in children), node.threshold))
    order = shuffle.permutation(len(rows))
    place = np.argsort(order)
    table = np.array(rows)[order]
    test, feature, on_true, on_false = table[:, :4].astype(np.int64).T
    inner = test != LEAF
    on_true, on_false = (np.where(inner, place[np.where(inner, c, 0)], c) for c in (on_true, on_false))
    nodes = Nodes(test, feature, on_true, on_false, table[:, 4].astype(dtype))
    targets_of, weights = ([v[i] for v in votes] or [0] for i in range(2))
    return Forest.of(nodes, place[roots], Votes(np.array(targets_of), np.array(weights, dtype), targets))


def onnx_attributes(trees: Sequence[Tree], prefix: str, ids: Iterator[int] | None = None) -> dict[str, Any]:
    """Returns the attributes of ONNX's TreeEnsembleRegressor ("target") or TreeEnsembleClassifier ("class")."""
    columns = ("treeids", "nodeids", "modes", "featureids", "values", "missing_value_tracks_true")
    attrs: dict[str, list[Any]] = {f"nodes_{c}": [] for c in (*columns, "truenodeids", "falsenodeids")}
    attrs |= {f"{prefix}_{c}": [] for c in ("treeids", "nodeids", "ids", "weights")}
    for tree_id, tree in enumerate(trees):
        listed = Listed.of(tree)
        names = [next(ids) if ids else i for i in range(len(listed.nodes))]
        for name, node, (passed, failed) in zip(names, listed.nodes, listed.children, strict=True):
            is_leaf = isinstance(node, Leaf)
            values: tuple[Any, ...] = ("LEAF", 0, 0.0, 0) if is_leaf else _fields(node)
            children = (0, 0) if is_leaf else (names[passed], names[failed])
            for column, number in zip(attrs, (tree_id, name, *values, *children), strict=False):
                attrs[column].append(number)
            for target, weight in node.votes if isinstance(node, Leaf) else ():
                for column, number in zip(list(attrs)[8:], (tree_id, name, target, weight), strict=True):
                    attrs[column].append(number)
    return dict(attrs)


def _fields(node: Any) -> tuple[Any, ...]:
    return node.mode, node.feature, node.threshold, int(node.nan_passes)
