"""Trees as TreeEnsembleRegressor and TreeEnsembleClassifier list them: nodes by ids of their tree and their own."""

from typing import Any

import numpy as np

from engine.onnx.converters.ml.attributes import integers, reals, same_length, tests_of
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.spec import Array
from ops.trees.args import LEAF
from ops.trees.forest import Forest, Nodes, Votes

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
"""Names of what nodes do, in the order of their codes (`ops.trees.args`)."""


class Listing:
    """Lists of nodes as attributes name them: with ids of trees and of nodes, leaves among them."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.trees, self.ids = integers(node, "nodes_treeids"), integers(node, "nodes_nodeids")
        self.modes = np.array([_mode(name) for name in node.attr("nodes_modes", ())], np.int64)
        same_length(nodes_treeids=self.trees, nodes_nodeids=self.ids, nodes_modes=self.modes)
        pairs = list(zip(self.trees.tolist(), self.ids.tolist(), strict=True))
        self.places = {pair: i for i, pair in enumerate(pairs)}
        if len(self.places) < len(pairs):
            twice = next(pair for i, pair in enumerate(pairs) if self.places[pair] != i)
            raise ModelError(f"tree {twice[0]} has two nodes with the id {twice[1]}")

    def forest(self, prefix: str, outputs: int) -> Forest:
        """Returns the trees, with the votes of the attributes of that prefix for so many outputs."""
        leaves, votes = self._votes(prefix, outputs)
        is_leaf = self.modes == LEAF
        ends = np.cumsum(np.bincount(leaves, minlength=len(self.modes)))
        starts = np.r_[0, ends[:-1]] if len(ends) else ends
        passed, failed = (self._children(name) for name in ("nodes_truenodeids", "nodes_falsenodeids"))
        features, thresholds = integers(self.node, "nodes_featureids"), reals(self.node, "nodes_values")
        same_length(nodes_modes=self.modes, nodes_featureids=features, nodes_values=thresholds)
        children = np.where(is_leaf, starts, passed), np.where(is_leaf, ends, failed)
        nodes = Nodes(tests_of(self.node, self.modes), features, *children, thresholds)
        _, roots = np.unique(self.trees, return_index=True)
        return Forest.of(nodes, np.sort(roots), votes)

    def _children(self, name: str) -> Array:
        ids = integers(self.node, name)
        same_length(**{"nodes_modes": self.modes, name: ids})
        return self._positions(self.trees, ids)

    def _positions(self, trees: Array, ids: Array) -> Array:
        """Returns where nodes stand in the lists; -1 for those that do not."""
        pairs = zip(trees.tolist(), ids.tolist(), strict=True)
        return np.array([self.places.get(pair, -1) for pair in pairs], np.int64)

    def _votes(self, prefix: str, outputs: int) -> tuple[Array, Votes]:
        """Returns votes in the order of their leaves, and the leaf of each."""
        trees, ids, targets = (integers(self.node, f"{prefix}_{name}") for name in ("treeids", "nodeids", "ids"))
        weights = reals(self.node, f"{prefix}_weights")
        lists = {"treeids": trees, "nodeids": ids, "ids": targets, "weights": weights}
        same_length(**{f"{prefix}_{name}": numbers for name, numbers in lists.items()})
        at = self._positions(trees, ids)
        if (at < 0).any():
            i = int(np.argmax(at < 0))
            raise ModelError(f"vote {i} is of node {ids[i]} of tree {trees[i]}, which does not exist")
        voters = np.flatnonzero(self.modes[at] == LEAF)
        order = voters[np.argsort(at[voters], kind="stable")]
        return at[order], Votes(targets[order], weights[order], outputs)


def _mode(name: Any) -> int:
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    if text not in _MODES:
        raise ModelError(f"nodes_modes has {text!r}; modes are {', '.join(_MODES)}")
    return _MODES.index(text)
