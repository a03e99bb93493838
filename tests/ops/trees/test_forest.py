"""What is wrong with trees is said when they are made."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.tensor.errors import DataError
from ops.trees.args import COLUMNS, LEAF, ON_FALSE, ON_TRUE, TEST
from ops.trees.forest import Forest, Nodes, Votes
from tests.helpers.ops.random_trees import Kind, forest_of, random_tree
from tests.helpers.ops.sample_arrays import SEEDS


@given(st.integers(1, 5), SEEDS)
def test_each_node_stands_in_front_of_its_children(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    forest = forest_of([random_tree(random, Kind()) for _ in range(count)], 2, random)
    inner = np.flatnonzero(forest.splits[:, TEST] & 7 != LEAF)
    assert forest.splits.shape == (len(forest.thresholds), COLUMNS)
    for column in (ON_TRUE, ON_FALSE):
        assert (forest.splits[inner, column] > inner).all()


def _forest(**changes: Any) -> Forest:
    """Returns a tree of one test and two leaves, with changes of its fields."""
    numbers: dict[str, Any] = {
        "tests": [0, LEAF, LEAF],
        "features": [0, 0, 0],
        "on_true": [1, 0, 1],
        "on_false": [2, 1, 2],
        "roots": [0],
        "targets": [0, 1],
    }
    arrays = {name: np.array(changes.get(name, value), np.int64) for name, value in numbers.items()}
    roots, targets = arrays.pop("roots"), arrays.pop("targets")
    votes = Votes(targets, np.array(changes.get("weights", [1.0, 2.0])), changes.get("outputs", 2))
    return Forest.of(Nodes(**arrays, thresholds=np.zeros(len(arrays["tests"]))), roots, votes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"on_true": [3, 0, 1]}, "node 0 goes on to a node that does not exist"),
        ({"on_false": [-1, 1, 2]}, "node 0 goes on to a node that does not exist"),
        ({"on_true": [0, 0, 1]}, "node 0 can be reached from itself"),
        ({"tests": [0, 0, LEAF], "on_true": [1, 0, 1], "on_false": [2, 2, 2]}, "can be reached from itself"),
        ({"on_false": [2, 1, 3]}, "leaf 2 has votes that do not exist"),
        ({"features": [-1, 0, 0]}, "node 0 reads column -1"),
        ({"features": [2**31, 0, 0]}, "reads column 2147483648"),
        ({"roots": [5]}, "root 0 is node 5, which does not exist"),
        ({"roots": []}, "trees need nodes, roots and votes; there are 3, 0 and 2"),
        ({"targets": [0, 2]}, "vote 1 is for target 2, which does not exist"),
        ({"outputs": 0}, "for 0 targets"),
        ({"outputs": 2**40}, "too many"),
        ({"weights": [1.0, np.nan]}, "the weight of vote 1 is no finite number"),
    ],
)
def test_damage_is_one_clear_error(changes: dict[str, Any], message: str) -> None:
    assert len(_forest().splits) == 3
    with pytest.raises(DataError, match=message):
        _forest(**changes)


def test_several_nodes_may_go_on_to_the_same_one() -> None:
    forest = _forest(tests=[0, 0, LEAF, LEAF], features=[0] * 4, on_true=[1, 2, 0, 1], on_false=[2, 3, 1, 2])
    assert forest.splits[0, ON_FALSE] == forest.splits[1, ON_TRUE]


def test_a_long_chain_of_nodes_is_ordered_in_a_moment() -> None:
    n = 20_000
    tests = np.r_[np.zeros(n, np.int64), LEAF]
    after = np.minimum(np.arange(1, n + 2), n)
    nodes = Nodes(tests, np.zeros(n + 1, np.int64), np.r_[after[:-1], 0], np.r_[after[:-1], 1], np.zeros(n + 1))
    forest = Forest.of(nodes, np.zeros(1, np.int64), Votes(np.zeros(1, np.int64), np.ones(1), 1))
    assert (np.diff(forest.splits[:-1, ON_TRUE]) == 1).all()
