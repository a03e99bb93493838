"""Rows through decision trees in numpy: all rows go down a tree together, level by level.

With tables of anything it ends, and reads nothing else: see `ops.trees.ensemble_code`, which computes the same.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from ops.schema.schema import Specs
from ops.tensor.spec import Array, TensorSpec
from ops.trees.args import CODE, COLUMNS, FEATURE, LEAF, MAX, MIN, NAN_IS_TRUE, ON_FALSE, ON_TRUE, SUM, TEST

_COMPARISONS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
"""In the order of their codes."""
_UNREACHED = {SUM: 0.0, MIN: np.inf, MAX: -np.inf}
_COMBINE: dict[int, Any] = {SUM: np.add, MIN: np.minimum, MAX: np.maximum}


def level_specs(x: TensorSpec) -> Specs:
    """Returns the specs of what is known of each row: positions, fields of its node, elements, truths."""
    rows = x.shape[0]
    return (
        TensorSpec((4, rows), "int64"),
        TensorSpec((3, rows), "int32"),
        x.with_shape((2, rows)),
        TensorSpec((4, rows), "bool"),
    )


@frozen(eq=False)
class Levels:
    """The walk of all rows through one tree after the other."""

    x: Array
    splits: Array
    thresholds: Array
    targets: Array
    weights: Array
    y: Array
    aggregate: int
    positions: Array
    fields: Array
    elements: Array
    truths: Array

    @classmethod
    def of(cls, inputs: Sequence[Array], y: Array, temporaries: Sequence[Array], aggregate: int) -> "Levels":
        """Returns the walk of an operator's inputs."""
        x, splits, thresholds, _, targets, weights = inputs
        return cls(x, splits.reshape(-1), thresholds, targets, weights, y, aggregate, *temporaries)

    def run(self, roots: Array) -> None:
        """Computes y."""
        unreached = _UNREACHED[self.aggregate]
        self.y.fill(unreached)
        for root in roots:
            self._descend(int(root))
            self._vote()
        hit = self.truths[0]
        for column in self.y.T:
            np.equal(column, unreached, out=hit)
            np.copyto(column, 0, where=hit)

    def _field(self, column: int, out: Array) -> None:
        """Reads a column of the splits for the node of each row."""
        at = self.positions[1]
        np.multiply(self.positions[0], COLUMNS, out=at)
        np.add(at, column, out=at)
        np.take(self.splits, at, out=out, mode="clip")

    def _descend(self, root: int) -> None:
        """Moves all rows from a root to their leaves."""
        node, last = self.positions[0], len(self.thresholds) - 1
        node.fill(min(max(root, 0), last))
        inner, code, test = self.truths[0], self.fields[1], self.fields[0]
        for _ in range(last):
            self._field(TEST, test)
            np.bitwise_and(test, CODE, out=code)
            np.not_equal(code, LEAF, out=inner)
            if not inner.any():
                return
            self._step(last)

    def _step(self, last: int) -> None:
        """Moves the rows at inner nodes on by one level."""
        node, at, child = self.positions[:3]
        field = self.fields[2]
        self._read_elements()
        self._compare()
        self._field(ON_TRUE, field)
        np.copyto(child, field)
        self._field(ON_FALSE, field)
        np.copyto(child, field, where=np.logical_not(self.truths[1], out=self.truths[2]))
        np.add(node, 1, out=at)
        np.maximum(child, at, out=child)
        np.minimum(child, last, out=child)
        np.copyto(node, child, where=self.truths[0])

    def _read_elements(self) -> None:
        """Reads the element of x that the node of each row names, and the threshold."""
        at, starts = self.positions[2:]
        features = self.x.shape[1]
        self._field(FEATURE, self.fields[2])
        np.clip(self.fields[2], 0, features - 1, out=self.fields[2])
        self._count_rows(starts, features)
        np.add(starts, self.fields[2], out=at)
        np.take(self.x.reshape(-1), at, out=self.elements[0], mode="clip")
        np.take(self.thresholds, self.positions[0], out=self.elements[1], mode="clip")

    @staticmethod
    def _count_rows(starts: Array, width: int) -> None:
        """Writes the position of the first element of each row."""
        starts.fill(width)
        starts[:1] = 0
        np.add.accumulate(starts, out=starts)

    def _compare(self) -> None:
        """Writes which rows pass the test of their node, into the second of the truths."""
        _, passes, hit, chosen = self.truths
        test, code, bit = self.fields
        value, threshold = self.elements
        passes.fill(False)
        for number, compare in enumerate(_COMPARISONS):
            compare(value, threshold, out=hit)
            np.equal(code, number, out=chosen)
            np.logical_and(hit, chosen, out=hit)
            np.logical_or(passes, hit, out=passes)
        np.bitwise_and(test, NAN_IS_TRUE, out=bit)
        np.not_equal(bit, 0, out=chosen)
        np.isnan(value, out=hit)
        np.logical_and(hit, chosen, out=hit)
        np.logical_or(passes, hit, out=passes)

    def _vote(self) -> None:
        """Takes the votes of the leaves that rows are at: the first of each leaf, then the second, and so on."""
        first, end = self.fields[:2]
        self._field(ON_TRUE, first)
        self._field(ON_FALSE, end)
        for bound in (first, end):
            np.clip(bound, 0, len(self.weights), out=bound)
        self._count_rows(self.positions[3], self.y.shape[1])
        has_vote = self.truths[0]
        while np.less(first, end, out=has_vote).any():
            self._take_vote(first, has_vote)
            np.add(first, 1, out=first)

    def _take_vote(self, vote: Array, has_vote: Array) -> None:
        """Combines a vote of each row that has one with the score of its target."""
        _, at, place, starts = self.positions
        score, weight, target, scores = *self.elements, self.fields[2], self.y.reshape(-1)
        np.copyto(at, vote)
        np.take(self.targets, at, out=target, mode="clip")
        np.clip(target, 0, self.y.shape[1] - 1, out=target)
        np.add(starts, target, out=place)
        np.take(self.weights, at, out=weight, mode="clip")
        np.take(scores, place, out=score, mode="clip")
        _COMBINE[self.aggregate](score, weight, out=weight)
        np.copyto(score, weight, where=has_vote)
        np.put(scores, place, score, mode="clip")
