"""LLVM code for the tile that products of float32 are made of: some rows times a panel of weights, finished at once.

A row is what a pixel (a row of a matrix) gives to the product: `runs` runs of `depth` floats side by side, each
anywhere in memory. A panel is the weights of `channels` outputs, (runs * depth, channels), dense; what it lacks is
zeros. So a matrix product is one run a row, a convolution one a tap. The sums stay in registers from the first product
to the last clip. Imports llvmlite: only modules of compiled code load it.

    multiply = vector_tile.intrinsic(AVX512)            # in a module of compiled code
    multiply((rows, height, runs, depth, panel, first, first_pitch, added, added_pitch, y, y_pitch, channels, finish))

All are int64, addresses and pitches in bytes. `rows`: runs x `shape.rows` addresses of runs, the first `height` of each
are read. `first`, `first_pitch`: what the sums begin with, (height, channels); a bias has pitch 0; y itself, with what
earlier panels gave, goes on with them. `added`: an address, or 0: one more addend, which may be y. `channels`: how many
of the panel's exist, at least 1; no other is read from `first` and `added`, or written. `finish`: address of four
words: NONE, CLIP or LEAK, and as doubles low, high and slope; NaN stays NaN. Each sum is one chain of fused
multiplications and additions in the order of the runs: how rows fall into tiles changes no bit of it. All may lie
anywhere; panels are best at a multiple of ALIGNMENT. Up to 32 lines behind a panel are asked for, not read.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic as numba_intrinsic

from ops.native.emit.tile_emitter import WORD, Task, Tile, Value, constant
from ops.native.emit.tile_shapes import SHAPES, TileShape


def intrinsic(shape: TileShape) -> Any:
    """The function of a tuple of 13 words that multiplies a tile, for use in compiled code."""

    def typed(_: Any, words: Any) -> Any:
        return types.void(words), _generator(shape)

    return numba_intrinsic(typed)


def _generator(shape: TileShape) -> Callable[..., Any]:
    """What writes the code of a call."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words = [builder.extract_value(values[0], i) for i in range(len(signature.args[0]))]
        _dispatch(builder, shape, words[1], [words[0], *words[2:]])
        return context.get_dummy_value()

    return generate


def _typed_by_tag(_: Any, shape: Any, words: Any) -> Any:
    generate = _generator(SHAPES[len(shape) - 1])

    def generate_last(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return generate(context, builder, types.void(signature.args[1]), values[1:])

    return types.void(shape, words), generate_last


multiply: Any = numba_intrinsic(_typed_by_tag)
"""multiply(tag, words): the same where the type of a tuple of numbers says which shape; see `TileShape.tag`."""


def _dispatch(builder: Value, shape: TileShape, height: Value, words: Sequence[Value]) -> None:
    """Calls the tile of that height, and of as many vectors as the channels need."""
    after = builder.append_basic_block("after")
    narrow = builder.icmp_signed("<=", Task(*words).channels, constant(shape.lanes))
    code = builder.add(builder.mul(height, constant(2)), builder.zext(narrow, WORD))
    switch = builder.switch(code, after)
    for rows in range(1, shape.rows + 1):
        for vectors in (shape.width, 1):
            block = builder.append_basic_block("tile")
            switch.add_case(constant(2 * rows + int(vectors == 1)), block)
            with builder.goto_block(block):
                builder.call(tile_function(builder.module, shape, rows, vectors), words)
                builder.branch(after)
    builder.position_at_end(after)


def tile_function(module: Value, shape: TileShape, rows: int, vectors: int) -> Value:
    """The function of a tile of so many rows and vectors; written once a module."""
    name = f"arenaplan_tile_{shape.lanes}_{rows}_{vectors}"
    known = module.globals.get(name)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * len(Task._fields)), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    Tile(builder, shape, rows, vectors).emit(Task(*function.args))
    builder.ret_void()
    return function
