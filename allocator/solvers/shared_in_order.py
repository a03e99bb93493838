"""Greedy in operator order for shared objects (TensorFlow Lite, greedy_in_order_assignment)."""

import numpy as np

from allocator.kernels.shared_objects import FAR, WHERE_NEARER
from allocator.problem import Column
from allocator.solvers.shared import SharedObjectsSolver, Tenants, share_in_order


def _share(found: Tenants) -> Column:
    """As they begin, each takes the free object that is nearest in size, which grows where it is too small."""
    return share_in_order(found, np.arange(len(found)), FAR, WHERE_NEARER)


SHARED_IN_ORDER = SharedObjectsSolver("shared_in_order", _share)
