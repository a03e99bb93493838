"""The steps of an LSTM over time, compiled: sequences that do not depend on each other are shared out to threads.

    gates of a step, from x      + h (tile of sequences) x panels of r      -> c, h of the step -> y

Imports numba: a door loads it, on first use.
"""

from typing import Any

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import copy, fill, jitable, longs
from ops.native.emit.builder import Value, advance
from ops.native.emit.tile_shapes import AVX2, AVX512, PORTABLE
from ops.native.emit.vector_tile import multiply
from ops.native.intrinsics import intrinsic_of, stack
from ops.native.memory import floats, record_at, share
from ops.native.records import offset
from ops.recurrent.args import LSTM_ARGS
from ops.vector.lanes import Carried, Floats, Lanes, each_vector, load, store
from ops.vector.math import sigmoid, tanh

_TAG_512, _TAG_2, _TAG_PORTABLE = AVX512.tag, AVX2.tag, PORTABLE.tag
_SHAPE_512, _SHAPE_2, _SHAPE_PORTABLE = ((shape.rows, shape.channels) for shape in (AVX512, AVX2, PORTABLE))
_MOST_ROWS = AVX512.rows
_FINISH = offset(LSTM_ARGS, "kind")
_GATES = 4
_row_table = stack(8 * _MOST_ROWS)


def _emit_cell(b: Value, gates: Value, hidden: Value, h: Value, c: Value) -> None:
    """Writes c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c); the gates are i, o, f, g."""

    def body(index: Value, lanes: Lanes, _: Carried) -> Carried:
        def at(address: Value) -> Value:
            return advance(b, address, index, 4)

        def gate(number: int) -> Floats:
            return load(b, at(advance(b, gates, number, b.mul(hidden, hidden.type(4)))), lanes)

        kept = sigmoid(gate(2)) * load(b, at(c), lanes)
        cell = sigmoid(gate(0)).times(tanh(gate(3)), kept)
        store(b, at(c), lanes, cell)
        store(b, at(h), lanes, sigmoid(gate(1)) * tanh(cell))
        return []

    each_vector(b, hidden, [], body)


_cell = intrinsic_of(_emit_cell)


@jitable
def _copy(source: int, target: int, count: int) -> None:
    """Copies floats, or writes zeros where there is no source."""
    y = floats(target, count)
    if source == 0:
        fill(y, 0)
    else:
        copy(floats(source, count), y)


@jitable
def _step(tag: Any, width: int, address: int, weights: tuple[int, int], states: tuple[int, int, int, int]) -> None:
    """Takes one step of some sequences; `weights` are the addresses of their gates and of the panels of r.

    `states` are the address of the table of their h, their number, and the addresses of h and c.
    """
    table, height, h, c = states
    gates, panels = weights
    hidden = record_at(address, LSTM_ARGS).hidden
    columns = _GATES * hidden
    pitch = 4 * columns
    for column in range(0, columns, width):
        y, channels = gates + 4 * column, min(width, columns - column)
        panel = panels + 4 * column * hidden
        multiply(tag, (table, height, 1, hidden, panel, y, pitch, 0, 0, y, pitch, channels, address + _FINISH))
    for i in range(height):
        _cell((gates + i * pitch, hidden, h + 4 * i * hidden, c + 4 * i * hidden))


@jitable
def _sequences(tag: Any, width: int, address: int, direction: int, rows: tuple[int, int]) -> None:
    """Runs all steps of the block for some sequences of a direction."""
    args, table = record_at(address, LSTM_ARGS), _row_table()
    hidden, batch, first, height = args.hidden, args.batch, rows[0], rows[1] - rows[0]
    size, state, places = 4 * hidden, 4 * (direction * batch + first) * hidden, longs(table, _MOST_ROWS)
    h, c, count = args.h + state, args.c + state, args.count
    panels = args.panels + direction * 4 * hidden * ((_GATES * hidden + width - 1) // width * width)
    for i in range(height):
        places[i] = h + i * size
    if args.starts:
        _copy(args.first_h + state if args.first_h else 0, h, height * hidden)
        _copy(args.first_c + state if args.first_c else 0, c, height * hidden)
    for i in range(count):
        backwards = args.backwards[direction]
        t = args.time - 1 - args.begin - i if backwards else args.begin + i
        line = count - 1 - i if backwards else i
        gates = args.gates + ((direction * args.block + line) * batch + first) * _GATES * size
        _step(tag, width, address, (gates, panels), (table, height, h, c))
        if args.y:
            _copy(h, args.y + ((t * args.directions + direction) * batch + first) * size, height * hidden)
    if args.ends:
        _copy(h, args.last_h + state, height * hidden)
        _copy(c, args.last_c + state, height * hidden)


@jitable
def _run(tag: Any, shape: tuple[int, int], address: int, part: int, parts: int) -> None:
    most, width = shape
    args = record_at(address, LSTM_ARGS)
    batch, tiles = args.batch, (args.batch + most - 1) // most
    begin, end = share(args.directions * tiles, part, parts)
    for unit in range(begin, end):
        rows = share(batch, unit % tiles, tiles)
        _sequences(tag, width, address, unit // tiles, rows)


@entry(needs=AVX512.needs)
def run_avx512(address: int, part: int, parts: int) -> None:
    """Runs a block of steps by tiles of 14 sequences; the arguments are an LSTM_ARGS record."""
    _run(_TAG_512, _SHAPE_512, address, part, parts)


@entry(needs=AVX2.needs)
def run_avx2(address: int, part: int, parts: int) -> None:
    """Runs a block of steps by tiles of 6 sequences; the arguments are an LSTM_ARGS record."""
    _run(_TAG_2, _SHAPE_2, address, part, parts)


@entry()
def run_portable(address: int, part: int, parts: int) -> None:
    """Runs a block of steps by tiles of 6 sequences; the arguments are an LSTM_ARGS record."""
    _run(_TAG_PORTABLE, _SHAPE_PORTABLE, address, part, parts)
