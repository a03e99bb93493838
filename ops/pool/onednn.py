"""Channels-last pooling. Not of windows with gaps, nor of any that lies wholly in the padding."""

from functools import partial
from typing import Any

from attrs import frozen

from ops.common.windows import Windows, nhwc_pool_windows
from ops.onednn import declarations as c
from ops.onednn.descriptors import Post, Tensor, channels_last, numbers
from ops.onednn.guard import Plan, beside, instead, one_to_one
from ops.onednn.library import Library
from ops.pool.nhwc_compiled import AVERAGE_NATIVE, MAX_NATIVE
from ops.schema.schema import Signature, unless
from ops.tensor.spec import Shape

_LOWEST = -0x00800001
"""The bits of the lowest float32: the library's maximum of nothing, or of minus infinity."""
_FEW = 2048
"""Least elements of all windows together for which the library is taken: its calls take longer to start.
tools/bench_kernels.py --operators nhwc_max_pool nhwc_average_pool times both back-ends."""


@frozen
class Pooling:
    """Windows of x, of the kind `algorithm`."""

    algorithm: int
    x: Tensor
    y: Tensor
    kernel: Shape
    strides: Shape
    begins: Shape
    ends: Shape
    posts: tuple[Post, ...] = ()

    def describe(self, at: Library, attributes: Any) -> Any:
        """Returns the library's description of the pooling; see `Case`."""
        lengths = (self.strides, self.kernel, tuple(0 for _ in self.kernel), self.begins, self.ends)
        return at.new(
            "primitive_desc",
            "pooling_forward_primitive_desc_create",
            at.engine,
            c.INFERENCE,
            self.algorithm,
            self.x.descriptor(at),
            self.y.descriptor(at),
            *(numbers(at, n) for n in lengths),
            attributes,
        )


def _behind(w: Windows) -> Shape:
    """Returns how many padded elements behind x windows reach, along each axis."""
    return tuple(max(w.reach(a, w.outputs[a]) - w.begins[a] - w.sizes[a], 0) for a in range(w.ndim))


_REASON = "few taps, or windows with gaps or outside the image"


def _supports(signature: Signature) -> bool:
    w = nhwc_pool_windows(signature)
    if not signature.x.size or max(w.dilations) > 1:
        return False
    taps = signature.y.size
    for k in w.kernel:
        taps *= k
    inside = all(
        begin < k and end < k and end <= most
        for k, begin, end, most in zip(w.kernel, w.begins, _behind(w), w.ends, strict=True)
    )
    whole = inside or (not signature.attrs.get("count_include_pad", False) and _touches(w))
    return taps >= _FEW and whole


def _touches(w: Windows) -> bool:
    """Returns whether all windows have an element inside, also where they reach further than the pads (`ceil_mode`)."""
    numbers_of = zip(w.sizes, w.kernel, w.strides, w.begins, w.outputs, strict=True)
    return all(begin < k and (o - 1) * step - begin < size for size, k, step, begin, o in numbers_of)


def _plan(average: bool, signature: Signature) -> Plan:
    w, padded = nhwc_pool_windows(signature), signature.attrs.get("count_include_pad", False)
    algorithm = c.POOLING_MAX
    if average:
        algorithm = c.POOLING_AVERAGE_ALL if padded else c.POOLING_AVERAGE_INSIDE
    x, y = (channels_last(s.shape, s.shape[-1]) for s in (signature.x, signature.y))
    return Plan(Pooling(algorithm, x, y, w.kernel, w.strides, w.begins, _behind(w)), one_to_one(x, y))


_refused = unless(_supports, _REASON)
MAX_POOL = beside(MAX_NATIVE, partial(_plan, False), _refused, _LOWEST)
AVERAGE_POOL = instead(AVERAGE_NATIVE, partial(_plan, True), _refused)
"""float32. Maxima of NaN and of minus infinity alone are computed by the compiled kernel."""
