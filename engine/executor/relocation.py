"""Calls of compiled code moved to other addresses, without binding them again.

The arguments of a compiled call are words: numbers, and addresses of bytes inside its operands (arrays of the call, and
what it packed), inside tables of words that belong to the call, or inside other arrays that it made. A movable call has
these words with each address counted from the first byte of what it points into. So equal calls of one network (the
same shapes, layouts and attributes) have equal words, and get their addresses in one numpy expression.

That a kernel may be moved is proved by binding it: `same_words` compares calls that were bound at unrelated addresses.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, combinations
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.native.call import Native
from ops.native.runners import CHECK, FOREIGN, locate
from ops.tensor.layout import address_of
from ops.tensor.spec import Array

MOST_WORDS = 4096
"""Most words of a movable call: a call with large tables is bound again, so that the tables are not copied."""
_NUMBER = -1
_NO_WORDS = np.empty(0, np.int64)
_NOWHERE = np.zeros(1, np.int64)


@frozen(eq=False)
class Operands:
    """The operands of a call, a row for each: first byte, end, and address of the first element."""

    spans: Array

    @property
    def are_apart(self) -> bool:
        """True if operands that share bytes begin at the same address."""
        return all(
            low >= other_high or other_low >= high or first == other or low == high or other_low == other_high
            for (low, high, first), (other_low, other_high, other) in combinations(self.spans.tolist(), 2)
        )

    def have(self, address: int) -> bool:
        """Returns whether an address lies inside of an operand."""
        return any(low <= address < high for low, high, _ in self.spans.tolist())


@frozen(eq=False)
class MovableCall:
    """A call of our own code. Word i counts from operand `pointee[i]`; from table `pointee[i] - operands` beyond them.

    Where `pointee` is negative, it is a number, or the address of an array that the call made and `native` keeps:
    `arrays` has these by their addresses. `starts` are the first words of the arguments of each step, `tables` those of
    the tables.
    """

    words: Array
    pointee: Array
    operands: int
    functions: tuple[int, ...]
    kinds: tuple[int, ...]
    starts: tuple[int, ...]
    tables: tuple[int, ...]
    arrays: Mapping[int, Array] = field(repr=False)
    native: Native = field(repr=False)

    @property
    def structure(self) -> Hashable:
        """A key that is equal for calls whose words differ in numbers only."""
        return self.pointee.tobytes(), self.functions, self.kinds, self.starts, self.tables

    @property
    def may_fail(self) -> bool:
        """True if a step checks something."""
        return CHECK in self.kinds

    @property
    def private(self) -> tuple[tuple[int, int, int], ...]:
        """The words that point to arrays that the call made: position, number of the array, bytes from its first."""
        return tuple(_private(self.words, self.pointee, self.arrays))


def movable(native: Native, operands: Operands) -> tuple[MovableCall, ...]:
    """Returns a bound call as a movable one; () where it calls a library, is large, or its operands overlap."""
    kinds = tuple(step.kind for step in native.steps)
    if FOREIGN in kinds or not operands.are_apart:
        return ()
    arrays = {at: a for at, a in _kept(native).items() if not operands.have(at)}
    tables = {at: a for at, a in arrays.items() if a.dtype == np.int64 and a.flags.c_contiguous}
    parts = [*(step.args for step in native.steps), *(table.reshape(-1) for table in tables.values())]
    ends = list(accumulate(map(len, parts), initial=0))
    if ends[-1] > MOST_WORDS:
        return ()
    words = np.concatenate([*parts, _NO_WORDS])
    pointee = np.empty_like(words)
    inside = np.array([(at, at + table.nbytes, at) for at, table in tables.items()], np.int64).reshape(-1, 3)
    locate(words, np.concatenate((operands.spans, inside)), pointee)
    steps = len(native.steps)
    call = MovableCall(
        words,
        pointee,
        len(operands.spans),
        tuple(step.address for step in native.steps),
        kinds,
        tuple(ends[:steps]),
        tuple(ends[steps:-1]),
        {at: a for at, a in arrays.items() if at not in tables},
        native,
    )
    return (call,)


def same_words(one: MovableCall, other: MovableCall) -> bool:
    """Returns whether two calls that were bound at unrelated addresses differ in nothing else."""
    private = one.private
    if one.structure != other.structure or private != other.private:
        return False
    numbers = np.ones(len(one.words), bool)
    numbers[[position for position, _, _ in private]] = False
    pairs = zip(one.arrays.values(), other.arrays.values(), strict=False)
    same = len(one.arrays) == len(other.arrays) and all(_same_array(a, b) for a, b in pairs)
    return same and np.array_equal(one.words[numbers], other.words[numbers])


def _same_array(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _private(words: Array, pointee: Array, arrays: Mapping[int, Array]) -> Iterator[tuple[int, int, int]]:
    for number, (low, array) in enumerate(arrays.items()):
        inside = np.flatnonzero((pointee == _NUMBER) & (low <= words) & (words <= low + array.nbytes))
        yield from ((position, number, int(words[position]) - low) for position in inside.tolist())


def _kept(kept: Any) -> dict[int, Array]:
    """Returns the arrays that a call keeps alive, by their addresses."""
    if isinstance(kept, np.ndarray):
        return {address_of(kept): kept} if kept.nbytes else {}
    parts = kept.keep if isinstance(kept, Native) else kept if isinstance(kept, (tuple, list)) else ()
    return {at: array for part in parts for at, array in _kept(part).items()}


@frozen(eq=False)
class Relocation:
    """Where the words of calls go in one buffer, one call behind the other.

    Word i of the buffer is word source[i] of the different calls, counted from address column[i]: of the addresses that
    are given, then 0, then those of the tables inside the buffer, which begin at words `tables`. Step i is of kinds[i]
    and calls functions[i], whose arguments begin at word arguments[i]; the steps of call k are rows[k] to rows[k + 1].
    """

    source: Array
    column: Array
    tables: Array
    functions: Array
    kinds: Array
    arguments: Array
    rows: tuple[int, ...]

    def words(self, distinct: Iterable[MovableCall], addresses: Array) -> Array:
        """Returns the buffer, for operands at these addresses."""
        buffer = np.concatenate([*(call.words for call in distinct), _NO_WORDS])[self.source]
        inside = address_of(buffer) + 8 * self.tables
        buffer += np.concatenate((addresses, _NOWHERE, inside))[self.column]
        return buffer

    def steps(self, buffer: Array) -> Array:
        """Returns the table of all steps (ops.native.call.table_of)."""
        table = np.empty((len(self.functions), 3), np.int64)
        table[:, 0], table[:, 1], table[:, 2] = self.functions, address_of(buffer) + 8 * self.arguments, self.kinds
        return table


def relocation(
    distinct: Sequence[MovableCall], number: Sequence[int], columns: Sequence[Array], count: int
) -> Relocation:
    """Returns the relocation of calls: call i is distinct[number[i]], its operands are columns[i] of `count` ones."""
    begins = np.cumsum([0, *(len(call.words) for call in distinct)]).tolist()
    source, column = [_NO_WORDS], [_NO_WORDS]
    tables, functions, kinds, arguments = list[int](), list[int](), list[int](), list[int]()
    rows, first = [0], 0
    for which, own in zip(number, columns, strict=True):
        call = distinct[which]
        inside = np.arange(len(call.tables)) + (count + 1 + len(tables))
        source.append(np.arange(len(call.words)) + begins[which])
        column.append(np.concatenate((own, inside, [count]))[call.pointee])
        tables += [first + start for start in call.tables]
        functions += call.functions
        kinds += call.kinds
        arguments += [first + start for start in call.starts]
        rows.append(len(functions))
        first += len(call.words)
    return Relocation(
        np.concatenate(source),
        np.concatenate(column),
        np.array(tables, np.int64),
        np.array(functions, np.int64),
        np.array(kinds, np.int64),
        np.array(arguments, np.int64),
        tuple(rows),
    )
