"""Greedy in operator order for shared objects (TensorFlow Lite, greedy_in_order_assignment)."""

import numpy as np

from allocator.kernels.shared_objects import FAR, WHERE_NEARER
from allocator.problem import Column
from allocator.solvers.shared import InterferenceGraph, SharedObjectsSolver, share_in_order


def _share(graph: InterferenceGraph) -> Column:
    """Gives each unit, as they begin, the free object nearest in size, which grows where it is too small."""
    return share_in_order(graph, np.arange(len(graph)), FAR, WHERE_NEARER)


SHARED_IN_ORDER = SharedObjectsSolver("shared_in_order", _share)
