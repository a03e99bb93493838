"""Overwrites of operators that only look at their input: an output may be copied to where its elements lie already."""

from collections.abc import Callable

from ops.schema.schema import Overwrite, Signature
from ops.tensor.layout import Layout

Views = Callable[[Layout, Signature], tuple[Layout | None, ...]]


def overwrites_in_place(views: Views) -> Callable[[Signature], tuple[Overwrite, ...]]:
    """Returns a function that permits each output whose view of a dense input is dense to take those very bytes.

    No copy is needed then.
    """

    def overwrites(signature: Signature) -> tuple[Overwrite, ...]:
        layouts = views(Layout.dense(signature.x), signature)
        return tuple(
            Overwrite(output, 0, layout.offset)
            for output, layout in enumerate(layouts)
            if layout is not None and layout.is_dense and 0 not in layout.shape
        )

    return overwrites
