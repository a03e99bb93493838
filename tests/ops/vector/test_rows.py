"""Layouts of rows."""

import numpy as np

from ops.tensor.layout import Layout
from ops.vector.rows import neighbours


def test_layouts_whose_rows_have_neighbours() -> None:
    x = np.empty((4, 6, 1), np.float32)
    assert neighbours(Layout.of(x))
    assert neighbours(Layout.of(x[:, :3]))
    assert neighbours(Layout.of(np.empty((), np.float32)))
    assert not neighbours(Layout.of(x.transpose(1, 0, 2)))
    assert not neighbours(Layout.of(x[:, ::2]))
