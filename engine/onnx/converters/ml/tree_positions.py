"""Trees as TreeEnsemble lists them: inner nodes and leaves apart, which refer to each other by position."""

import numpy as np

from engine.onnx.converters.ml.attributes import integers, same_length, tensor_of, tests_of
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.spec import Array
from ops.trees.args import EQUAL, LEAF
from ops.trees.forest import Forest, Nodes, Votes

_MEMBER = 6
"""The code of a test that an element is one of several numbers. Smaller ones are those of `ops.trees.args`."""


def forest_of(node: Node, outputs: int) -> Forest:
    """Returns the trees of a node, with one vote a leaf for one of so many outputs."""
    codes = tensor_of(node.attrs["nodes_modes"], "nodes_modes").astype(np.int64)
    thresholds, weights = (tensor_of(node.attrs[name], name) for name in ("nodes_splits", "leaf_weights"))
    features, targets = integers(node, "nodes_featureids"), integers(node, "leaf_targetids")
    same_length(leaf_weights=weights, leaf_targetids=targets)
    same_length(nodes_modes=codes, nodes_splits=thresholds, nodes_featureids=features)
    _check(codes, _MEMBER + 1, "nodes_modes")
    roots = integers(node, "tree_roots")
    _check(roots, len(codes), "tree_roots")
    tests = tests_of(node, np.where(codes == _MEMBER, EQUAL, codes))
    passed, failed = (_children(node, side, len(codes), len(weights)) for side in ("true", "false"))
    inner = [tests, features, passed, failed, thresholds.copy()]
    leaf = np.arange(len(weights))
    leaves = [np.full(len(leaf), LEAF), np.zeros_like(leaf), leaf, leaf + 1, np.zeros(len(leaf), thresholds.dtype)]
    chains = _chains(inner, _members(node, np.flatnonzero(codes == _MEMBER)), len(codes) + len(leaf))
    columns = (np.concatenate(parts) for parts in zip(inner, leaves, *chains, strict=True))
    return Forest.of(Nodes(*columns), roots, Votes(targets, weights, outputs))


def _check(numbers: Array, count: int, name: str) -> None:
    wrong = (numbers < 0) | (numbers >= count)
    if wrong.any():
        raise ModelError(f"{name} has {numbers[np.argmax(wrong)]}; its numbers are below {count}")


def _children(node: Node, side: str, inner: int, leaves: int) -> Array:
    """Returns the positions of children, leaves behind all inner nodes; -1 for those that do not exist."""
    ids, is_leaf = integers(node, f"nodes_{side}nodeids"), integers(node, f"nodes_{side}leafs") != 0
    same_length(**{"nodes_modes": np.empty(inner), f"nodes_{side}nodeids": ids, f"nodes_{side}leafs": is_leaf})
    exists = (ids >= 0) & (ids < np.where(is_leaf, leaves, inner))
    return np.where(exists, np.where(is_leaf, inner + ids, ids), -1)


def _members(node: Node, places: Array) -> list[tuple[int, Array]]:
    """Returns the numbers that each node of those places looks for."""
    proto = node.attr("membership_values")
    values = np.empty(0) if proto is None else tensor_of(proto, "membership_values")
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) != len(places):
        raise ModelError(f"membership_values has {len(ends)} sets that end with NaN, for {len(places)} nodes")
    sets = [part[~np.isnan(part)] for part in np.split(values, ends)]
    return list(zip(places.tolist(), sets, strict=False))


def _chains(columns: list[Array], members: list[tuple[int, Array]], total: int) -> list[list[Array]]:
    """Returns columns of nodes behind the `total` others, and writes where these go on to.

    A node that looks for several numbers becomes a chain of nodes that each look for one.
    """
    chains = []
    for place, wanted in members:
        columns[4][place] = wanted[0] if len(wanted) else np.nan
        extra = max(len(wanted) - 1, 0)
        if extra:
            after = np.append(np.arange(total + 1, total + extra), columns[3][place])
            chains.append([*(np.full(extra, columns[i][place]) for i in range(3)), after, wanted[1:]])
            columns[3][place] = total
            total += extra
    return chains
