"""Arguments of compiled sliding windows: what their kernels write, and what their compiled code reads."""

from ops.common.windows import Windows
from ops.native.records import record
from ops.tensor.spec import Shape

DEPTHWISE, SPREAD, LARGEST, AVERAGE, AVERAGE_PADDED = range(5)
"""The kind of an operation on windows. SPREAD is a depthwise convolution with several outputs a channel;
AVERAGE_PADDED counts padding, too."""
GEOMETRY = "sizes[3] outputs[3] kernel[3] strides[3] dilations[3] begins[3] ends[3]: int64"
"""Fields of windows over depth, height and width: elements of x, windows, taps, steps from window to window and from
tap to tap, padding in front and behind."""
WINDOWS = record(
    "kind x y images channels: int64",
    GEOMETRY,
    "x_pitch y_pitch weights bias added added_pitch: int64",
    "low high slope: float64",
    "outputs_per_channel: int64",
)
"""Windows over channels-last pixels: depthwise convolution and pooling.

`channels` are those of y; pitches are bytes from pixel to pixel. weights (taps, channels), bias (channels,) and
`added` (like y) are addresses, or 0; low, high and slope are those of the activation.
"""


def geometry(w: Windows) -> dict[str, Shape]:
    """Returns the fields of GEOMETRY; dimensions that are not there come first, with one window of one element."""
    ones = {
        "sizes": w.sizes,
        "outputs": w.outputs,
        "kernel": w.kernel,
        "strides": w.strides,
        "dilations": w.dilations,
    }
    fields = {name: spatial(values, 1) for name, values in ones.items()}
    return fields | {"begins": spatial(w.begins, 0), "ends": spatial(w.ends, 0)}


def spatial(values: Shape, default: int) -> Shape:
    """Returns one entry for each of three dimensions."""
    return (default,) * (3 - len(values)) + values
