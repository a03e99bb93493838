"""Batches whose images are dense but lie apart, as where channels of several tensors share one batch."""

from collections.abc import Callable, Iterator
from itertools import starmap

from ops.common.thunks import in_turn
from ops.schema.schema import Thunk
from ops.tensor.layout import Layout
from ops.tensor.spec import Array


def dense_images(layout: Layout) -> bool:
    """Returns whether each image, an element along the first axis, is dense, and no image lies on another."""
    if not layout.shape:
        return False
    image = Layout(0, layout.shape[1:], layout.strides[1:], layout.itemsize)
    return image.is_dense and (layout.shape[0] < 2 or layout.strides[0] >= image.extent[1])


def by_image(bind: Callable[..., Thunk], *batches: Array) -> Thunk:
    """Binds all images at once where they lie side by side, else one after the other, each a batch of one."""
    if all(batch.flags.c_contiguous for batch in batches):
        return bind(*batches)
    return in_turn(*starmap(bind, _images(batches)))


def _images(batches: tuple[Array, ...]) -> Iterator[tuple[Array, ...]]:
    for n in range(len(batches[0])):
        yield tuple(batch[n : n + 1] for batch in batches)


def image_bytes(batch: Array) -> int:
    """Returns the bytes from an image of a batch to the next one, for compiled code."""
    return batch.strides[0] if len(batch) > 1 else batch.nbytes
