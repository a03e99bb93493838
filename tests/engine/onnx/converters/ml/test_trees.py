"""Tree ensembles of ONNX, against onnxruntime; damaged ones are one clear error."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.contributed import all_runs, check
from tests.helpers.onnx.ml_models import LABEL_AND_SCORES, ml_model
from tests.helpers.onnx.small_models import run_onnxruntime
from tests.helpers.ops.random_trees import Kind, onnx_attributes, random_rows, random_tree
from tests.helpers.ops.sample_arrays import SEEDS

FEW = settings(max_examples=12, deadline=None)
TRANSFORMS = st.sampled_from(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
THEIR_TRANSFORMS = {0: 0, 1: 2, 2: 1, 3: 3}
"""ONNX's numbers of transforms, and onnxruntime's, which takes SOFTMAX and LOGISTIC for each other."""
LEAF: dict[str, Any] = {
    "nodes_treeids": [0],
    "nodes_nodeids": [0],
    "nodes_featureids": [0],
    "nodes_values": [0.0],
    "nodes_modes": ["LEAF"],
    "nodes_truenodeids": [0],
    "nodes_falsenodeids": [0],
}


def _drawn(seed: int, **fields: Any) -> tuple[np.random.Generator, Kind, list[Any]]:
    random = np.random.default_rng(seed)
    targets = int(random.integers(1, 4))
    kind = Kind(**{"targets": targets, "votes": (targets, targets), **fields})
    return random, kind, [random_tree(random, kind) for _ in range(int(random.integers(1, 6)))]


@FEW
@given(SEEDS, st.sampled_from(["SUM", "AVERAGE", "MIN", "MAX"]), TRANSFORMS, st.booleans())
def test_regressors_are_those_of_onnxruntime(seed: int, aggregate: str, transform: str, based: bool) -> None:
    values = (0.01, 0.15) if transform == "PROBIT" else (-1.0, 1.0)
    random, kind, trees = _drawn(seed, values=values)
    x = random_rows(random, 9, kind.features, "float32")
    base = {"base_values": [0.0625 * (i + 1) for i in range(kind.targets)]} if based else {}
    attrs = {**onnx_attributes(trees, "target"), "n_targets": kind.targets, **base}
    proto, feeds = ml_model(
        "TreeEnsembleRegressor", [x], dims={0: ("n", kind.features)},
        aggregate_function=aggregate, post_transform=transform, **attrs,
    )  # fmt: skip
    check(proto, feeds)


@pytest.mark.slow
@FEW
@given(SEEDS, st.sampled_from(["int64", "int32", "float64"]))
def test_rows_of_other_types(seed: int, dtype: str) -> None:
    random, kind, trees = _drawn(seed, targets=3, votes=(3, 3), thresholds=(-1.0, 0.0, 2.0))
    x = random.integers(-2, 4, (7, kind.features)).astype(dtype)
    attrs = onnx_attributes(trees, "class")
    check(*ml_model("TreeEnsembleClassifier", [x], LABEL_AND_SCORES, classlabels_int64s=[1, 2, 3], **attrs))


def test_thresholds_of_double_precision() -> None:
    tree = {**onnx_attributes(_drawn(3, features=1, modes=("BRANCH_LEQ",), depth=1)[2][:1], "target")}
    values, weights = (np.array(tree.pop(name)) for name in ("nodes_values", "target_weights"))
    values[tree["nodes_modes"].index("BRANCH_LEQ")] = 1 / 3
    x = np.array([[1 / 3], [np.nextafter(1 / 3, 1)], [np.nextafter(1 / 3, 0)]])
    proto, feeds = ml_model(
        "TreeEnsembleRegressor", [x], n_targets=3,
        nodes_values_as_tensor=values, target_weights_as_tensor=weights, **tree,
    )  # fmt: skip
    check(proto, feeds)


@FEW
@given(SEEDS, TRANSFORMS.filter(lambda t: t != "PROBIT"), st.booleans(), st.booleans())
def test_classifiers_of_two_classes(seed: int, transform: str, is_share: bool, based: bool) -> None:
    values = (0.01, 0.3) if is_share else (-1.0, 1.0)
    random, kind, trees = _drawn(seed, targets=1, votes=(1, 1), values=values)
    x = random_rows(random, 9, kind.features, "float32")
    attrs = onnx_attributes(trees, "class") | ({"base_values": [0.125]} if based else {})
    check(
        *ml_model(
            "TreeEnsembleClassifier", [x], LABEL_AND_SCORES, dims={0: ("n", kind.features)},
            classlabels_int64s=[7, 3], post_transform=transform, **attrs,
        )
    )  # fmt: skip


@FEW
@given(SEEDS, TRANSFORMS, st.booleans())
def test_classifiers_of_more_classes(seed: int, transform: str, based: bool) -> None:
    random, kind, trees = _drawn(seed, targets=4, votes=(4, 4), values=(0.01, 0.15))
    x = random_rows(random, 9, kind.features, "float32")
    base = {"base_values": [0.0625, 0.125, 0.0, 0.03125]} if based else {}
    attrs = {**onnx_attributes(trees, "class"), **base}
    check(
        *ml_model(
            "TreeEnsembleClassifier", [x], LABEL_AND_SCORES,
            classlabels_int64s=[4, 0, 9, -2], post_transform=transform, **attrs,
        )
    )  # fmt: skip


def test_the_best_of_two_scores_is_the_label() -> None:
    votes: dict[str, Any] = {
        "class_treeids": [0, 0],
        "class_nodeids": [0, 0],
        "class_ids": [0, 1],
        "class_weights": [0.6, 0.3],
    }
    x = np.zeros((2, 1), np.float32)
    proto, feeds = ml_model("TreeEnsembleClassifier", [x], LABEL_AND_SCORES, **LEAF, **votes, classlabels_int64s=[5, 6])
    for label, scores in all_runs(proto, feeds):
        assert label.tolist() == [5, 5]
        np.testing.assert_allclose(scores, [[0.6, 0.3]] * 2, rtol=1e-6)


def test_the_only_class_is_the_label() -> None:
    votes: dict[str, Any] = {"class_treeids": [0], "class_nodeids": [0], "class_ids": [0], "class_weights": [-0.6]}
    x = np.zeros((2, 1), np.float32)
    proto, feeds = ml_model("TreeEnsembleClassifier", [x], LABEL_AND_SCORES, **LEAF, **votes, classlabels_int64s=[5])
    assert [label.tolist() for label, _ in all_runs(proto, feeds)] == [[5, 5]] * 3


def test_positions_stand_for_labels_that_are_texts() -> None:
    random, kind, trees = _drawn(1, targets=3, votes=(3, 3))
    x, attrs = random_rows(random, 5, kind.features, "float32"), onnx_attributes(trees, "class")
    proto, feeds = ml_model(
        "TreeEnsembleClassifier", [x], LABEL_AND_SCORES, classlabels_strings=["a", "b", "c"], **attrs
    )
    for label, scores in all_runs(proto, feeds):
        assert label.dtype == np.int64
        assert label.tolist() == scores.argmax(1).tolist()


def test_rows_of_open_width_are_checked_in_the_run() -> None:
    attrs = {**TREE, "nodes_featureids": [2, 0, 0]}
    proto, _ = ml_model("TreeEnsembleRegressor", [np.zeros((1, 3), np.float32)], dims={0: ("n", "width")}, **attrs)
    run = engine.compile(engine.load_onnx(proto)).run
    assert [y.tolist() for y in run({"i0": np.ones((1, 5), np.float32)}).values()] == [[[2.0]]]
    with pytest.raises(engine.EngineError, match="width"):
        run({"i0": np.ones((1, 2), np.float32)})


def _lists(x: Array) -> dict[str, Any]:
    """Returns the attributes of TreeEnsemble for x in {1, 3, 5} -> 10, else x <= 4 -> 20, else 30."""
    dtype = x.dtype
    return {
        "nodes_modes": np.array([6, 0], np.uint8),
        "nodes_splits": np.array([0, 4], dtype),
        "membership_values": np.array([1, 3, 5, np.nan], dtype),
        "nodes_featureids": [0, 0],
        "nodes_truenodeids": [0, 1],
        "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 2],
        "nodes_falseleafs": [0, 1],
        "leaf_targetids": [0, 0, 0],
        "leaf_weights": np.array([10, 20, 30], dtype),
        "tree_roots": [0],
        "n_targets": 1,
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_members_of_sets(dtype: str) -> None:
    x = np.arange(8).reshape(8, 1).astype(dtype)
    proto, feeds = ml_model("TreeEnsemble", [x], version=5, **_lists(x))
    wanted = [[20], [10], [20], [10], [20], [10], [30], [30]]
    for (y,) in all_runs(proto, feeds):
        assert y.dtype == np.dtype(dtype)
        assert y.tolist() == wanted
    check(proto, feeds)


@FEW
@given(SEEDS, st.sampled_from([0, 1, 2, 3]), st.sampled_from([0, 1, 2, 3]))
def test_ensembles_of_version_5(seed: int, aggregate: int, transform: int) -> None:
    random, kind, trees = _drawn(seed, targets=2, votes=(1, 1))
    x = random_rows(random, 9, kind.features, "float32")
    lists = {**_lists(x), **_positions(trees), "n_targets": 2, "aggregate_function": aggregate}
    del lists["membership_values"]
    proto, feeds = ml_model("TreeEnsemble", [x], version=5, post_transform=transform, **lists)
    theirs, _ = ml_model("TreeEnsemble", [x], version=5, post_transform=THEIR_TRANSFORMS[transform], **lists)
    (wanted,) = run_onnxruntime(theirs, feeds)
    for (y,) in all_runs(proto, feeds):
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def _positions(trees: list[Any]) -> dict[str, Any]:
    """Returns the lists of TreeEnsemble for trees, from those that name nodes by ids."""
    ids = onnx_attributes(trees, "target")
    is_leaf = np.array([mode == "LEAF" for mode in ids["nodes_modes"]])
    pairs = list(zip(ids["nodes_treeids"], ids["nodes_nodeids"], strict=True))
    order = np.where(is_leaf, np.cumsum(is_leaf), np.cumsum(~is_leaf)) - 1
    inner = np.flatnonzero(~is_leaf)
    names = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    lists: dict[str, Any] = {
        "nodes_modes": np.array([names.index(ids["nodes_modes"][i]) for i in inner], np.uint8),
        "nodes_splits": np.array(ids["nodes_values"], np.float32)[inner],
        "nodes_featureids": [ids["nodes_featureids"][i] for i in inner],
        "nodes_missing_value_tracks_true": [ids["nodes_missing_value_tracks_true"][i] for i in inner],
        "leaf_targetids": ids["target_ids"],
        "leaf_weights": np.array(ids["target_weights"], np.float32),
        "tree_roots": [int(order[pairs.index((t, 0))]) for t in range(len(trees))],
    }
    for side in ("true", "false"):
        children = [pairs.index((ids["nodes_treeids"][i], ids[f"nodes_{side}nodeids"][i])) for i in inner]
        lists[f"nodes_{side}nodeids"] = [int(order[c]) for c in children]
        lists[f"nodes_{side}leafs"] = [int(is_leaf[c]) for c in children]
    return lists


TREE: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"nodes_truenodeids": [0, 0, 0]}, "node 0 can be reached from itself"),
        ({"nodes_truenodeids": [2**62, 0, 0]}, "node 0 goes on to a node that does not exist"),
        ({"nodes_nodeids": [0, 1, 1]}, "tree 0 has two nodes with the id 1"),
        ({"nodes_featureids": [-1, 0, 0]}, "reads column -1"),
        ({"nodes_featureids": [3, 0, 0]}, "the trees read 4 features, and .* has 1"),
        ({"nodes_modes": ["BRANCH_LEQ", "LEAF", "TWIG"]}, "nodes_modes has 'TWIG'"),
        ({"nodes_values": [0.0]}, "nodes_values 1"),
        ({"target_nodeids": [1, 9]}, "vote 1 is of node 9 of tree 0, which does not exist"),
        ({"target_ids": [0, 1]}, "vote 1 is for target 1, which does not exist"),
        ({"target_weights": [1.0, float("nan")]}, "no finite number"),
        ({"n_targets": 0}, "n_targets is 0"),
        ({"n_targets": 2**40}, "n_targets is 1099511627776"),
        ({"base_values": [1.0, 2.0]}, "base_values has 2 numbers for 1 scores"),
        ({"post_transform": "CUBE"}, "post_transform is 'CUBE'"),
        ({"aggregate_function": "MEAN"}, "aggregate_function is 'MEAN'"),
        ({"nodes_missing_value_tracks_true": [1]}, "nodes_missing_value_tracks_true 1"),
    ],
)
def test_a_damaged_ensemble_is_one_clear_error(damage: dict[str, Any], message: str) -> None:
    x = np.zeros((2, 1), np.float32)
    engine.load_onnx(ml_model("TreeEnsembleRegressor", [x], **TREE)[0])
    with pytest.raises(ModelError, match=rf"\(TreeEnsembleRegressor\): .*{message}"):
        engine.load_onnx(ml_model("TreeEnsembleRegressor", [x], **{**TREE, **damage})[0])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"nodes_modes": np.array([6, 9], np.uint8)}, "nodes_modes has 9"),
        ({"tree_roots": [2]}, "tree_roots has 2"),
        ({"membership_values": np.array([1, 3], np.float32)}, "membership_values has 0 sets"),
        ({"nodes_falsenodeids": [1, 3]}, "node 1 goes on to a node that does not exist"),
        ({"nodes_falsenodeids": [0, 2]}, "can be reached from itself"),
        ({"leaf_targetids": [0, 0]}, "leaf_targetids 2"),
        ({"aggregate_function": 4}, "aggregate_function is 4"),
    ],
)
def test_a_damaged_ensemble_of_version_5_is_one_clear_error(damage: dict[str, Any], message: str) -> None:
    x = np.zeros((2, 1), np.float32)
    with pytest.raises(ModelError, match=message):
        engine.load_onnx(ml_model("TreeEnsemble", [x], version=5, **{**_lists(x), **damage})[0])


def test_what_classifiers_do_not_support_is_refused() -> None:
    x = np.zeros((2, 1), np.float32)
    votes: dict[str, Any] = {"class_treeids": [0], "class_nodeids": [0], "class_ids": [0], "class_weights": [0.6]}
    with pytest.raises(UnsupportedError, match="PROBIT of one score for two classes"):
        engine.load_onnx(
            ml_model(
                "TreeEnsembleClassifier", [x], LABEL_AND_SCORES,
                post_transform="PROBIT", classlabels_int64s=[0, 1], **LEAF, **votes,
            )[0]
        )  # fmt: skip
    with pytest.raises(ModelError, match="the classes are named by classlabels_int64s or by classlabels_strings"):
        engine.load_onnx(ml_model("TreeEnsembleClassifier", [x], LABEL_AND_SCORES, **LEAF, **votes)[0])


def test_a_set_of_thousands_of_members() -> None:
    x = np.arange(-3, 5000, 7).reshape(-1, 1).astype(np.float32)
    members = np.append(np.arange(0, 4000, 2), np.nan).astype(np.float32)
    proto, feeds = ml_model("TreeEnsemble", [x], version=5, **{**_lists(x), "membership_values": members})
    wanted = np.where((x % 2 == 0) & (x >= 0) & (x < 4000), 10, np.where(x <= 4, 20, 30))
    assert all((y == wanted).all() for (y,) in all_runs(proto, feeds))
