"""The inputs of quantised windows: the tensor in place, or a copy of it in which runs of bytes are longer.

Four bytes are multiplied at once. If the bytes of a pixel are no multiple of four, or int8, each pixel is copied and
padded with zeros. If pixels are small, lines are copied with their padding, so that a line of a window is one run.
"""

import math

import numpy as np
from attrs import frozen

from ops.convolution.nhwc_shapes import case_of
from ops.convolution.shapes import ConvCase
from ops.schema.schema import Signature
from ops.tensor.spec import Array, Shape
from ops.windows.args import spatial
from ops.windows.pixels import pitch

QUAD = 4
"""Inputs that are multiplied at once."""
SHIFT = 128
"""int8 is multiplied as uint8 that is this much more, and so is its zero point."""
_SMALL = 16
"""Bytes of a pixel from which on each pixel is a run: at least four steps of four bytes. Trades starts of runs against
copies of pixels; no benchmark covers it."""
_INT8 = np.dtype("int8")


def x_zero(signature: Signature) -> int:
    """Returns the zero point of x as uint8."""
    return int(signature.attrs["x_zero"]) + flip_of(signature.x.dtype)


def flip_of(dtype: np.dtype[np.generic]) -> int:
    """Returns the bit to invert in each byte of a type, so that it is uint8."""
    return SHIFT if dtype == _INT8 else 0


@frozen(eq=False)
class Source:
    """Windows over uint8: `taps` runs of `depth` quads each; sizes, kernel and begins have three entries.

    `run` and `pixel` are bytes. `line` is the pixels of a line of the copy; 0 if pixels are copied one by one, or none.
    """

    sizes: Shape
    kernel: Shape
    begins: Shape
    run: int
    pixel: int
    copied: bool
    line: int

    @property
    def taps(self) -> int:
        """Returns the runs of a window."""
        return math.prod(self.kernel)

    @property
    def depth(self) -> int:
        """Returns the quads of a run."""
        return -(-self.run // QUAD)

    def copy_bytes(self, batch: int) -> int:
        """Returns the bytes of the copy. A few are read behind the last pixel, and multiplied by zero."""
        return batch * math.prod(self.sizes) * self.pixel + QUAD if self.copied else 0

    def hop(self, x: Array) -> int:
        """Returns the bytes from a pixel to the next."""
        return self.pixel if self.copied else pitch(x)


def source_of(signature: Signature) -> Source:
    """Returns the inputs that suit the pixels of x."""
    return source_for(case_of(signature), signature.x.dtype)


def source_for(case: ConvCase, dtype: np.dtype[np.generic]) -> Source:
    """Returns the inputs that suit the pixels of x, of which the case is a whole convolution or a block."""
    w, each = case.windows, case.channels // case.group
    if _in_lines(case):
        begin, last = w.begins[-1], w.reach(w.ndim - 1, w.outputs[-1])
        line = max(last, begin + w.sizes[-1])
        sizes, kernel, begins = ((*v[:-1], n) for v, n in ((w.sizes, line), (w.kernel, 1), (w.begins, 0)))
        run = w.kernel[-1] * each
        return Source(spatial(sizes, 1), spatial(kernel, 1), spatial(begins, 0), run, each, True, line)
    copied = dtype == _INT8 or each % QUAD > 0
    pixel = case.group * (-(-each // QUAD) * QUAD)
    geometry = spatial(w.sizes, 1), spatial(w.kernel, 1), spatial(w.begins, 0)
    return Source(*geometry, each, pixel, copied, 0)


def _in_lines(case: ConvCase) -> bool:
    w = case.windows
    return case.group == 1 and case.channels < _SMALL and w.kernel[-1] > 1 and w.dilations[-1] == 1


def as_runs(w: Array, source: Source) -> Array:
    """Returns weights (outputs, C / group, kernel...) as (outputs, runs, bytes of a run), padded with zeros."""
    by_run = w.reshape((*w.shape[:2], source.taps, -1)).transpose(0, 2, 3, 1)
    runs = np.zeros((len(w), source.taps, source.depth * QUAD), np.int8)
    runs[..., : source.run] = by_run.reshape((len(w), source.taps, source.run))
    return runs
