"""The shapes of tiles of products: kernels, compiled code and packed weights share them."""

from functools import cache

from attrs import frozen

from allocator.machine_code.instructions import has
from ops.native.records import record

NONE, CLIP, LEAK = 0, 1, 2
"""The last step of sums: none; holding them between two bounds; multiplying negative ones by a slope."""
FINISH = record("kind: int64", "low high slope: float64")
"""The last step of sums: the kind is NONE, CLIP (between low and high) or LEAK (slope)."""
ALIGNMENT = 64
"""Bytes that packed weights start at a multiple of: a cache line."""


@frozen
class TileShape:
    """A tile of so many rows, and of `width` vectors of `lanes` float32.

    Its sums, the vectors and one more register fill the registers of a processor that has what it needs.
    """

    name: str
    lanes: int
    width: int
    rows: int
    needs: tuple[str, ...]

    @property
    def channels(self) -> int:
        """Returns the number of outputs of one panel of weights."""
        return self.lanes * self.width

    @property
    def tag(self) -> tuple[int, ...]:
        """Returns a tuple whose length says in compiled code which of SHAPES this is."""
        return (0,) * (SHAPES.index(self) + 1)


AVX512 = TileShape("avx512", 16, 2, 14, ("avx512f",))
AVX2 = TileShape("avx2", 8, 2, 6, ("avx2", "fma"))
PORTABLE = TileShape("portable", 4, 2, 6, ())
"""Vectors of 128 bits: NEON, SSE, and whatever else LLVM makes of them."""
SHAPES = (AVX512, AVX2, PORTABLE)


@cache
def tile_shape() -> TileShape:
    """Returns the largest tile that compiled code has the registers for."""
    return next(shape for shape in SHAPES if has(*shape.needs))
