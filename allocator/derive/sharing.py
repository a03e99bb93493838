"""Views to owners: which value's bytes a value lies in, and where (READ_ONLY forwards)."""

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.errors import ProblemError
from allocator.problem import Column, column
from allocator.steps import Program


@frozen(eq=False)
class Sharing:
    """Value i lies in the bytes of value owner[i], from byte offset[i] on. A value that is no view owns itself."""

    owner: Column = field(converter=column)
    offset: Column = field(converter=column)

    @property
    def roots(self) -> Column:
        """Returns the values that own bytes: root i has chunk i."""
        return np.flatnonzero(self.is_root)

    @property
    def chunk_of(self) -> Column:
        """Returns the number of each value's chunk."""
        return column((np.cumsum(self.is_root) - 1)[self.owner])

    @property
    def is_root(self) -> npt.NDArray[np.bool_]:
        """Returns the mask of the values that own bytes."""
        owns: npt.NDArray[np.bool_] = self.owner == np.arange(len(self.owner))
        return owns


def share(program: Program) -> Sharing:
    """Follows each view, and views of views, to the value that owns the bytes.

    Raises ProblemError where a view leaves them. Each view must stand behind what it looks at.
    """
    sizes = program.sizes
    owner, offset = list(range(len(sizes))), [0] * len(sizes)
    for step in program.steps:
        for view in step.views:
            root, at = owner[view.src], offset[view.src] + view.offset
            if at < 0 or at + sizes[view.out] > sizes[root]:
                where = f"bytes [{at}, {at + sizes[view.out]}) of value {root}"
                raise ProblemError(f"view {view.out} is {where}, which has {sizes[root]} bytes")
            owner[view.out], offset[view.out] = root, at
    return Sharing(owner, offset)
