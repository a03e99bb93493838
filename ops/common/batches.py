"""Batches whose images are dense but lie apart, as where channels of several tensors share one batch."""

from collections.abc import Callable, Iterator
from itertools import starmap

from numpy.lib.stride_tricks import as_strided

from ops.common.thunks import in_turn
from ops.schema.schema import Thunk
from ops.tensor.layout import Layout
from ops.tensor.spec import Array


def dense_images(layout: Layout) -> bool:
    """Whether each image, an element along the first axis, is dense, and none lies on another."""
    if not layout.shape:
        return False
    image = Layout(0, layout.shape[1:], layout.strides[1:], layout.itemsize)
    return image.is_dense and (layout.shape[0] < 2 or layout.strides[0] >= image.extent[1])


def by_image(bind: Callable[..., Thunk], *batches: Array) -> Thunk:
    """`bind` of all images at once where these lie side by side, else of one after the other, each a batch of one."""
    if all(batch.flags.c_contiguous for batch in batches):
        return bind(*batches)
    return in_turn(*starmap(bind, _images(batches)))


def _images(batches: tuple[Array, ...]) -> Iterator[tuple[Array, ...]]:
    for n in range(len(batches[0])):
        yield tuple(batch[n : n + 1] for batch in batches)


def flat_images(batch: Array) -> tuple[Array, int]:
    """All elements from the first to the last of a batch, those in between with them, and the elements from one image
    to the next: image n begins at n times so many. For kernels that would be slow on strides.
    """
    image = batch.size // max(len(batch), 1)
    pitch = batch.strides[0] // batch.itemsize if len(batch) > 1 else image
    length = (len(batch) - 1) * pitch + image if batch.size else 0
    return as_strided(batch, (length,), (batch.itemsize,), writeable=batch.flags.writeable), pitch
