"""Converters of tree ensembles: their lists of nodes become tables, which are judged here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from engine.onnx.converters.late import Versions
from engine.onnx.converters.ml.attributes import DOUBLE, SINGLE, as_type, named, reals, rows
from engine.onnx.converters.ml.scores import (
    TRANSFORMS,
    Classes,
    classify,
    classify_by_one,
    transform_of,
    transformed,
)
from engine.onnx.converters.ml.tree_ids import Listing
from engine.onnx.converters.ml.tree_positions import forest_of
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError
from ops.tensor.spec import Array
from ops.trees.forest import Forest

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_ENDLESS = 2**31


def _scores(node: Node, forest: Forest, aggregate: str) -> Value:
    """Adds what the trees say of each row, in double precision where the rows or the thresholds have it."""
    x = rows(node, keep_double=True)
    dtype = DOUBLE if DOUBLE in (x.dtype, forest.thresholds.dtype) else SINGLE
    votes = forest.votes
    tables = (forest.splits, forest.thresholds.astype(dtype), forest.roots, votes.targets, votes.weights.astype(dtype))
    reduction = "sum" if aggregate == "AVERAGE" else aggregate.lower()
    operands = (as_type(node, x, dtype), *tables)
    attrs = {"outputs": votes.outputs, "aggregate": reduction, "columns": forest.columns}
    scores = node.step("tree_ensemble", *operands, **attrs)
    return scores if aggregate != "AVERAGE" else node.step("div", scores, node.like(len(forest.roots), scores))


def _with_base(node: Node, scores: Value, base: Array, count: int) -> Value:
    if not len(base):
        return scores
    if len(base) != count:
        raise ModelError(f"base_values has {len(base)} numbers for {count} scores")
    return node.step("add", scores, base.astype(scores.dtype))


def _outputs(node: Node) -> int:
    count = node.attr("n_targets", 0)
    if not 0 < count < _ENDLESS:
        raise ModelError(f"n_targets is {count}; it must be the number of scores for each row")
    return int(count)


def _one_of(choices: tuple[str, ...], value: Any, name: str) -> str:
    """Returns a name, or that of a number. Raises ModelError for another value."""
    number = choices.index(value) if value in choices else value
    if number not in range(len(choices)):
        raise ModelError(f"{name} is {value!r}; it is one of {', '.join(choices)}")
    return choices[number]


def _regressor(node: Node) -> tuple[Value, ...]:
    count = _outputs(node)
    aggregate = _one_of(_AGGREGATES, node.attr("aggregate_function", "SUM"), "aggregate_function")
    scores = _scores(node, Listing(node).forest("target", count), aggregate)
    scores = _with_base(node, scores, reals(node, "base_values"), count)
    return (named(node, 0, as_type(node, transformed(node, scores, transform_of(node)), SINGLE)),)


def _classifier(node: Node) -> tuple[Value, ...]:
    """Converts TreeEnsembleClassifier. Of two classes, where all votes are for the first, they are for the second."""
    classes, transform = Classes.of(node, "classlabels_int64s"), transform_of(node)
    forest, base = Listing(node).forest("class", classes.count), reals(node, "base_values")
    if classes.count == 2 and not forest.votes.targets.any() and len(base) < 2:
        score = node.step("slice", _scores(node, forest, "SUM"), starts=(0,), ends=(1,), axes=(1,))
        is_share = bool((forest.votes.weights >= 0).all())
        score, least = _with_base(node, score, base, 1), 0.5 if is_share else 0.0
        return classify_by_one(node, classes, score, transform, least=least, of_one=is_share)
    scores = _with_base(node, _scores(node, forest, "SUM"), base, classes.count)
    return classify(node, classes, scores, transform)


def _ensemble(node: Node) -> tuple[Value, ...]:
    count, transform = _outputs(node), _one_of(TRANSFORMS, node.attr("post_transform", 0), "post_transform")
    aggregate = _one_of(_AGGREGATES, node.attr("aggregate_function", 1), "aggregate_function")
    scores = transformed(node, _scores(node, forest_of(node, count), aggregate), transform)
    return (named(node, 0, as_type(node, scores, node.value(0).dtype)),)


CONVERTERS: Mapping[str, Versions] = MappingProxyType(
    {
        "TreeEnsemble": ((5, _ensemble),),
        "TreeEnsembleClassifier": ((1, _classifier),),
        "TreeEnsembleRegressor": ((1, _regressor),),
    }
)
