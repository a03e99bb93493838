"""Calls of compiled batch normalization of (N, C, elements), in float32 and float64."""

from allocator.machine_code.door import address
from ops.common.batches import by_image, image_bytes
from ops.native.call import Native, native_call
from ops.native.records import Layout
from ops.norm.args import CHANNEL_SUMS, COMBINE, MOMENTS, SCALE_SHIFT
from ops.schema.schema import Thunk
from ops.tensor.spec import Array


def _call(name: str, layout: Layout, x: Array, **values: Array | int) -> Native:
    function = address("ops.norm.channels_code", f"{name}_{x.dtype.name}")
    images, channels, elements = x.shape
    return native_call(function, layout, x=x, images=images, channels=channels, elements=elements, **values)


def scale_shift(x: Array, factors: Array, shifts: Array, y: Array) -> Thunk:
    """Returns y = x * factor + shift, one of each a channel, rounded once where a processor can; y may be x."""

    def bind(x: Array, y: Array) -> Thunk:
        return _call("scale_shift", SCALE_SHIFT, x, factors=factors, shifts=shifts, y=y)

    return by_image(bind, x, y)


def channel_moments(x: Array, means: Array, variances: Array) -> Thunk:
    """Returns the mean and the variance of each channel: that of all elements, not of a sample."""
    pitch = image_bytes(x) // x.itemsize
    return _call("moments", MOMENTS, x, means=means, variances=variances, x_pitch=pitch)


def channel_sums(x: Array, dy: Array, means: Array, factors: Array, outputs: tuple[Array, Array]) -> Thunk:
    """Returns the sums over each channel of (x - mean) * factor * dy, and of dy: the two outputs."""
    products, sums = outputs
    return _call(
        "channel_sums",
        CHANNEL_SUMS,
        x,
        dy=dy,
        means=means,
        factors=factors,
        products=products,
        sums=sums,
        x_pitch=image_bytes(x) // x.itemsize,
        dy_pitch=image_bytes(dy) // dy.itemsize,
    )


def combine(data: tuple[Array, Array, Array], of_x: tuple[Array, Array], of_dy: tuple[Array, Array]) -> Thunk:
    """Returns y = (x - mean) * factor + (dy - middle) * slope; `data` are x, dy and y, which may be either.

    `of_x` are mean and factor, `of_dy` are middle and slope, one of each a channel.
    """
    (means, x_factors), (middles, dy_factors) = of_x, of_dy

    def bind(x: Array, dy: Array, y: Array) -> Thunk:
        numbers = {"means": means, "x_factors": x_factors, "middles": middles, "dy_factors": dy_factors}
        return _call("combine", COMBINE, x, dy=dy, y=y, **numbers)

    return by_image(bind, *data)
