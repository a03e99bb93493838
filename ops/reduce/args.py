"""Arguments of compiled reductions, softmax and searches: what their kernels write, and what compiled code reads."""

from ops.native.records import record

SUM, ABS, SQUARE, MAX, MIN = range(5)
"""The kind of a fold: a sum of x, of |x| or of its square, or an extreme. The kinds before MAX are sums."""
AS_IS, DIVIDED, ROOT = range(3)
"""The last step of a fold: none, division by the number of elements, square root."""
REDUCE = record("fold end elements width y: int64")
"""A reduction: kinds of the fold and of its end, elements of one fold, neighbours, the address of y.

Rows (`ops.vector.args`) of x along the axes that stay follow; then those along the axes that are reduced, whose
addresses are counted from 0.
"""
SOFTMAX = record("is_log length x_step y_step width: int64")
"""Softmax, or its logarithm, along an axis of `length`; rows of x and y follow.

Where columns lie side by side: bytes along the axis in x and y, and how many columns are neighbours; else 0.
"""
SEARCH = record("x y is_least is_last length length_step width width_step loops: int64")
"""A search for positions of extremes along an axis of `length`; `is_last`: of equal ones, the last counts.

`width` neighbours have positions of their own; steps are bytes along the axis, and from neighbour to neighbour. A LOOP
for each of `loops` outer dimensions follows.
"""
LOOP = record("length step: int64")
"""An outer dimension of x: its length, and bytes from element to element."""
