"""What becomes of scores: transforms, and the class of each row."""

import math

import numpy as np
from attrs import frozen

from engine.onnx.converters.ml.attributes import as_type, integers, named
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.text.errors import ModelError

NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT = TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""Names of transforms, in the order of their numbers."""
_NEARLY_ZERO = 1e-7
_WINITZKI = 0.147
"""The constant of Winitzki's approximation of the inverse error function, by which PROBIT is defined."""


def transform_of(node: Node) -> str:
    """Returns the transform that a node names. Raises ModelError for another one."""
    name = node.attr("post_transform", NONE)
    if name not in TRANSFORMS:
        raise ModelError(f"post_transform is {name!r}; it is one of {', '.join(TRANSFORMS)}")
    return str(name)


def transformed(node: Node, scores: Value, name: str) -> Value:
    """Returns rows of scores transformed. A single score stays as it is, but for PROBIT, as in onnxruntime."""
    if name == NONE or (scores.shape[1] == 1 and name != PROBIT):
        return scores
    if name == LOGISTIC:
        return node.step("sigmoid", scores)
    if name == SOFTMAX:
        return node.step("softmax", scores, axis=1)
    return _probit(node, scores) if name == PROBIT else _softmax_zero(node, scores)


def _softmax_zero(node: Node, scores: Value) -> Value:
    """Adds a softmax of the scores that are not 0; those that are stay 0."""
    shifted = node.step("sub", scores, node.step("reduce_max", scores, axes=(1,), keepdims=1))
    is_zero = node.step("less_or_equal", node.step("abs", scores), node.like(_NEARLY_ZERO, scores))
    parts = node.step("where", is_zero, node.like(0, scores), node.step("exp", shifted))
    return node.step("div", parts, node.step("reduce_sum", parts, axes=(1,), keepdims=1))


def _probit(node: Node, scores: Value) -> Value:
    """Adds the inverse of the normal distribution's sum, approximated with Winitzki's inverse error function."""

    def like(number: float) -> Value:
        return node.like(number, scores)

    x = node.step("sub", node.step("mul", scores, like(2)), like(1))
    log = node.step("log", node.step("sub", like(1), node.step("mul", x, x)))
    half = node.step("add", node.step("mul", log, like(0.5)), like(2 / (math.pi * _WINITZKI)))
    rest = node.step("sub", node.step("mul", half, half), node.step("mul", log, like(1 / _WINITZKI)))
    root = node.step("sqrt", node.step("sub", node.step("sqrt", rest), half))
    return node.step("mul", node.step("mul", node.step("sign", x), root), like(math.sqrt(2)))


@frozen(eq=False)
class Classes:
    """The classes of a classifier: their labels, or none where these are texts; then positions stand for them."""

    count: int
    labels: tuple[int, ...]

    @classmethod
    def of(cls, node: Node, numbers: str) -> "Classes":
        """Returns the classes that a node names. Raises ModelError where it names none, or twice."""
        labels, texts = tuple(integers(node, numbers).tolist()), node.attr("classlabels_strings", ())
        if bool(labels) == bool(texts):
            raise ModelError(f"the classes are named by {numbers} or by classlabels_strings, and by one of them alone")
        return cls(len(labels) or len(texts), labels)

    def named(self, node: Node, positions: Value) -> Value:
        """Returns output 0 of a node: the label for each position, or the position where labels are texts."""
        if not self.labels or self.labels == tuple(range(self.count)):
            return named(node, 0, positions)
        return node.output(0, "gather", np.array(self.labels, np.int64), positions, axis=0)


def classify(node: Node, classes: Classes, scores: Value, transform: str) -> tuple[Value, Value]:
    """Returns the label of the greatest score of each row, the first of equals, and the scores transformed."""
    best = node.step("arg_max", scores, axis=1, keepdims=0)
    return classes.named(node, best), _single(node, transformed(node, scores, transform))


def classify_by_one(
    node: Node, classes: Classes, score: Value, transform: str, *, least: float, of_one: bool
) -> tuple[Value, Value]:
    """Returns the label and the scores of both classes, from a score of the second one, which wins above `least`.

    The score of the first one is 1 minus that score, or minus that score where they are not `of_one`.
    """
    if transform == PROBIT:
        raise node.refuse("PROBIT of one score for two classes is not supported")
    is_second = node.step("greater", score, node.like(least, score))
    position = node.step("cast", node.step("reshape", is_second, shape=(score.shape[0],)), to=np.dtype(np.int64))
    if transform == LOGISTIC:
        parts = node.step("sigmoid", node.step("neg", score)), node.step("sigmoid", score)
    else:
        parts = node.step("sub", node.like(1 if of_one else 0, score), score), score
    return classes.named(node, position), _single(node, node.step("concat", *parts, axis=1))


def _single(node: Node, scores: Value) -> Value:
    return named(node, 1, as_type(node, scores, np.float32))
