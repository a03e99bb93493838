"""LLVM code for the tile that products of float32 are made of: some rows times a panel of weights, finished at once.

A row is what a pixel (a row of a matrix) contributes to the product: `runs` runs of `depth` floats side by side, each
anywhere in memory. A panel is the weights of `channels` outputs, (runs * depth, channels), dense, padded with zeros. So
a matrix product has one run a row, a convolution one a tap. The sums stay in registers from the first product to the
last clip. Imports llvmlite: only modules of compiled code load it.

    multiply(AVX512.tag, TileArgs(rows=..., height=..., ...))            # in a module of compiled code

All are int64, addresses and pitches in bytes. `rows`: runs x `shape.rows` addresses of runs, the first `height` of each
are read. `first`, `first_pitch`: what the sums begin with, (height, channels); a bias has pitch 0; y itself, with what
earlier panels left there, goes on with them. `added`: an address, or 0: one more addend, which may be y. `channels`:
how many of the panel's exist, at least 1; no other is read from `first` and `added`, or written. `finish`: the address
of a FINISH record; NaN stays NaN. Each sum is one chain of fused multiplications and additions in the order of the
runs: how rows fall into tiles changes no bit of it. All may lie anywhere; panels are best at a multiple of ALIGNMENT.
Up to 32 lines behind a panel are prefetched, not read.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from numba import types
from numba.extending import intrinsic

from ops.native.emit.builder import WORD, Value, define, switch, word
from ops.native.emit.tile_emitter import Tile, TileArgs
from ops.native.emit.tile_shapes import SHAPES, TileShape


def _typed(_: Any, tag: Any, args: Any) -> Any:
    shape = SHAPES[len(tag) - 1]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words = [builder.extract_value(values[1], i) for i in range(len(signature.args[1]))]
        _dispatch(builder, shape, TileArgs(*words))
        return context.get_dummy_value()

    return types.void(tag, args), generate


multiply: Any = intrinsic(_typed)
"""multiply(tag, TileArgs(...)): multiplies a tile; the type of `tag` says which shape, see `TileShape.tag`."""


def _dispatch(b: Value, shape: TileShape, args: TileArgs) -> None:
    """Calls the tile of that height, and of as many vectors as the channels need."""
    narrow = b.icmp_signed("<=", args.channels, word(shape.lanes))
    selector = b.add(b.mul(args.height, word(2)), b.zext(narrow, WORD))
    words = _without_height(args)

    def tile(rows: int, vectors: int) -> None:
        b.call(tile_function(b.module, shape, rows, vectors), words)

    sizes = [(rows, vectors) for rows in range(1, shape.rows + 1) for vectors in (shape.width, 1)]
    switch(b, selector, {2 * rows + int(vectors == 1): partial(tile, rows, vectors) for rows, vectors in sizes})


def _without_height(args: TileArgs) -> list[Value]:
    return [value for name, value in args._asdict().items() if name != "height"]


def tile_function(module: Value, shape: TileShape, rows: int, vectors: int) -> Value:
    """Returns the function of a tile of so many rows and vectors; its arguments are TileArgs without the height."""

    def emit(b: Value, words: Sequence[Value]) -> None:
        names = [name for name in TileArgs._fields if name != "height"]
        args = dict(zip(names, words, strict=True))
        Tile(b, shape, rows, vectors).emit(TileArgs(height=word(rows), **args))

    return define(module, f"arenaplan_tile_{shape.lanes}_{rows}_{vectors}", len(TileArgs._fields) - 1, emit)
