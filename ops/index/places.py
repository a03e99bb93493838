"""Calls of the compiled function that finds marked elements."""

import numpy as np

from ops.index.args import PLACES
from ops.native.functions import Function, function_call
from ops.tensor.spec import Array, Shape


def places(marks: Array, first: int, shape: Shape, y: Array, count: Array) -> Function:
    """Returns the call that appends to y the coordinates of all marks that are not 0.

    `marks` is dense uint8, its first element stands at flat position `first` of a tensor of that shape. `y` (ndim,
    columns) takes a column a mark, and nothing beyond its last one; `count` (1,) has the marks so far, and counts on.
    """
    return function_call(
        "ops.index.places_code",
        "places",
        PLACES,
        marks=marks,
        size=marks.size,
        first=first,
        shape=np.array(shape, np.int64),
        ndim=len(shape),
        y=y,
        columns=y.shape[1],
        count=count,
    )
