"""Resizing on vars."""

from collections.abc import Sequence

from ops.functional.apply import V, apply1
from ops.spatial.resize import RESIZE
from ops.tensor.errors import ArityError


def resize(
    x: V,
    sizes: Sequence[int] = (),
    scales: Sequence[float] = (),
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    extrapolation_value: float = 0.0,
    roi: Sequence[float] = (),
    antialias: bool = False,
) -> V:
    """x brought to `sizes`, or to floor(shape * scales); one entry for each dimension. Raises ArityError."""
    if not sizes and not scales:
        raise ArityError("resize: sizes or scales must be given")
    return apply1(
        RESIZE,
        x,
        sizes=tuple(sizes),
        scales=tuple(scales),
        mode=mode,
        coordinate_transformation_mode=coordinate_transformation_mode,
        nearest_mode=nearest_mode,
        cubic_coeff_a=cubic_coeff_a,
        exclude_outside=exclude_outside,
        extrapolation_value=extrapolation_value,
        roi=tuple(roi),
        antialias=antialias,
    )
