"""Votes of trees, against a recursion over nested objects."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from ops.schema.schema import evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from ops.trees.ensemble import TREE_ENSEMBLE
from ops.trees.forest import Forest
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, kernels, run, sign
from tests.helpers.ops.random_trees import Kind, answers, forest_of, random_rows, random_tree
from tests.helpers.ops.sample_arrays import SEEDS


def _tables(forest: Forest) -> list[Array]:
    return [forest.splits, forest.thresholds, forest.roots, forest.votes.targets, forest.votes.weights]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 6), st.sampled_from([0, 1, 5, 70]), st.sampled_from(["sum", "min", "max"]),
    st.sampled_from(["float32", "float64"]), SEEDS,
)  # fmt: skip
def test_votes_are_those_of_a_recursion(count: int, rows: int, aggregate: str, dtype: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    kind = Kind(features=int(random.integers(1, 4)), targets=int(random.integers(1, 4)))
    trees = [random_tree(random, kind) for _ in range(count)]
    x = random_rows(random, rows, kind.features, dtype)
    forest = forest_of(trees, kind.targets, random, dtype)
    wanted = answers(trees, x, kind.targets, aggregate).astype(dtype)
    arrays = [x, *_tables(forest)]
    check_kernels(TREE_ENSEMBLE, arrays, [wanted], 1e-5, outputs=kind.targets, aggregate=aggregate)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(["sum", "min", "max"]))
def test_tables_of_anything_end_and_all_kernels_agree(seed: int, aggregate: str) -> None:
    random = np.random.default_rng(seed)
    nodes, votes = int(random.integers(1, 9)), int(random.integers(1, 6))
    most = int(random.choice([3, 2**31 - 1]))
    numbers = [random.integers(-most, most, shape, dtype=np.int32) for shape in ((nodes, 4), (2,), (votes,))]
    thresholds, weights = random.standard_normal((2, max(nodes, votes))).astype(np.float32)
    arrays = [
        *(random_rows(random, 7, 2, "float32"), numbers[0], thresholds[:nodes], numbers[1], numbers[2], weights[:votes])
    ]
    signature = sign(TREE_ENSEMBLE, arrays, {"outputs": 2, "aggregate": aggregate})
    first, second = (run(kernel, signature, arrays)[0] for kernel in kernels(TREE_ENSEMBLE, signature))
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)


def test_a_run_allocates_nothing() -> None:
    random = np.random.default_rng(0)
    trees = [random_tree(random, Kind()) for _ in range(3)]
    x = random_rows(random, 20_000, 3, "float32")
    check_no_allocation(TREE_ENSEMBLE, [x, *_tables(forest_of(trees, 2, random))], outputs=2)


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_a_graph_of_open_length_has_trees(mode: str) -> None:
    random = np.random.default_rng(1)
    trees = [random_tree(random, Kind()) for _ in range(5)]
    graph = Graph()
    x = graph.input("x", ("n", 3))
    graph.output(ops.tree_ensemble(x, forest_of(trees, 2, random), "max"), "y")
    run_of = engine.compile(graph, mode=mode, optimise=0)
    for rows in (1, 130):
        feed = random_rows(random, rows, 3, "float32")
        np.testing.assert_allclose(run_of.run({"x": feed})["y"], answers(trees, feed, 2, "max"), rtol=1e-6)


def test_operands_that_do_not_fit_are_refused() -> None:
    random = np.random.default_rng(2)
    tables = _tables(forest_of([random_tree(random, Kind())], 2, random))
    x = np.zeros((4, 3), np.float32)
    for arrays, outputs, message in (
        ([x.astype(np.float64), *tables], 2, "all float32 or all float64"),
        ([x, tables[0].astype(np.int64), *tables[1:]], 2, "are int32"),
        ([x, tables[0][:, :3], *tables[1:]], 2, r"splits \(nodes, 4\)"),
        ([x[0], *tables], 2, r"x is \(rows, features\)"),
        ([x[:, :0], *tables], 2, "there are features"),
        ([x, *tables], 0, "and 0 outputs"),
    ):
        with pytest.raises(OpError, match=message):
            evaluate(TREE_ENSEMBLE, *arrays, outputs=outputs)
