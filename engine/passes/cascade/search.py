"""The search for cascades: which operators, and how many stripes, by dynamic programming over cut points.

A network is a sequence of segments: single operators, and cascades in some number of stripes. What a segment needs
depends on nothing before or behind it: the tensors that stand around it, and what lies inside. The largest need of all
segments is the arena, their costs are added up. For each position in the sequence, the search
keeps the choices of segments in front of it of which none is better in both (the Pareto front).

Bytes are those of tensors alive at once; an operator writes over an input where its schema lets it. Workspaces and
alignment are left out. The planner has the last word about the few choices that are left.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence, Set
from functools import cached_property

import numpy as np
from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.lower.costs import graph_cost
from engine.passes.cascade.choices import (
    BYTE,
    CALL,
    Choice,
    fully_overwritable,
    overwritable,
    pareto,
    stripe_counts,
    weights,
)
from engine.passes.cascade.rolling import Around, RollingSearch
from engine.passes.cascade.rows import Stripe, is_image, row_bytes, spans
from engine.planning.placed import Cascade
from ops.common.tiling import COLUMNS, ROWS
from ops.schema.schema import no_places

AXES = ROWS, COLUMNS
MOST_OPERATORS = 48
"""The most operators of one cascade: bounds the time of the search."""
_MOST_CHOICES = 64
"""The most choices that are kept in front of a position."""
_NEVER = -1, -1
"""The positions at which something is alive that takes no bytes of the arena, such as a constant."""


def search_cascades(graph: Graph, outside: Set[Var] = frozenset(), axes: Collection[int] = AXES) -> list[Choice]:
    """Returns the Pareto front of choices of cascades along some axes, from the fewest bytes to no extra operation.

    The inputs and outputs in `outside` do not lie in the arena, and nothing may overwrite them.
    """
    return _Search(graph, graph.operators, outside, axes).front()


def cascade_bound(graph: Graph, outside: Set[Var] = frozenset()) -> int:
    """Returns bytes below which no arena is, whatever is cut into stripes, however high, and whatever rows are kept.

    A cascade holds what it reads from outside, its result, and a row of each tensor inside while that is computed; or,
    in two stripes, half of each tensor inside. An image that is taken in pieces is there in front of it together with
    copies of all rows that are read, and no longer when its last row is computed. The bound is the least, over all ways
    to cut the sequence into segments, of the largest need of a segment. What lies `outside` of the arena counts
    nothing. Stripes are taken to be written into their result: if they are put together at the end instead, the bound
    may be too high by the rows of the last one.
    """
    return _Search(graph, graph.operators, outside, AXES).bound()


def operations(graph: Graph) -> int:
    """Returns the operations of a run of a graph."""
    return graph_cost(graph).flops


@frozen(eq=False)
class _Search:
    graph: Graph
    operators: Sequence[Operator]
    outside: Set[Var]
    axes: Collection[int]

    def front(self) -> list[Choice]:
        fronts: list[list[Choice]] = [[Choice(0, 0.0, 0.0)]]
        for end in range(1, len(self.operators) + 1):
            segments = {end - 1: [self.alone[end - 1]]}
            for axis in self._axes(end):
                for segment in (*self._cascades_to(end, axis), *self._rolling_to(end, axis)):
                    segments.setdefault(segment.cascades[0].first, []).append(segment)
            fronts.append(_joined([(fronts[first], pareto(group)) for first, group in segments.items()]))
        return fronts[-1]

    def bound(self) -> int:
        """Returns the least, over all sequences of segments, of the most bytes that a segment needs at least."""
        least = [0]
        for end in range(1, len(self.operators) + 1):
            cut = (need for axis in self._axes(end) for need in self._least_to(end, axis))
            needs = [(end - 1, self._least_alone(end - 1)), *cut]
            least.append(min(max(least[first], need) for first, need in needs))
        return least[-1]

    def _least_alone(self, position: int) -> int:
        """Returns the bytes that an operator needs at least: its output may lie in inputs, or around them."""
        operator = self.operators[position]
        nbytes = sum(size for _, size in self.around[position])
        over = overwritable(operator)
        dies = any(self.alive.get(self.roots.get(v, v), _NEVER)[1] == position for v in over)
        is_join = operator.schema.input_places is not no_places
        return nbytes - sum(map(self._bytes, operator.outputs)) * (dies or is_join)

    def _bytes(self, var: Var) -> int:
        """Returns the bytes that a tensor takes of the arena."""
        return 0 if var in self.outside else var.spec.nbytes

    def _axes(self, end: int) -> tuple[int, ...]:
        """Returns the axes along which what ends in front of a position is cut: columns, too, where they are shorter.

        Elsewhere rows are as short, and lie in one run of bytes, so that they need no copies.
        """
        outputs = self.operators[end - 1].outputs
        if len(outputs) != 1:
            return ()
        (y,) = outputs
        is_wide = is_image(y, COLUMNS) and y.shape[COLUMNS] > y.shape[ROWS]
        axes = (ROWS, COLUMNS) if is_wide else (ROWS,)
        return tuple(axis for axis in axes if axis in self.axes and is_image(y, axis))

    def _least_to(self, end: int, axis: int) -> Iterator[tuple[int, int]]:
        """Yields the first positions of the cascades that end in front of one, and the bytes they need at least."""
        (result,) = self.operators[end - 1].outputs
        stripe, row, largest = Stripe({result: (0, result.shape[axis])}, axis=axis), 0, 0
        for first in range(end - 1, self._first_inner(end, axis) - 1, -1):
            if not stripe.take(self.operators[first]):
                return
            if first < end - 1:
                (output,) = self.operators[first].outputs
                row, largest = max(row, row_bytes(output, axis)), max(largest, output.spec.nbytes)
                held, taken = self._held_bytes(first), self._dying_image(first, end, stripe)
                pieces = _read_bytes(self.operators[first].inputs[0], stripe) if taken else 0
                inside = min(self._bytes(result) + row, largest // 2)  # in two stripes, the first has no result yet
                yield first, min(max(held + pieces, held - taken + inside), held + inside)

    @cached_property
    def flops(self) -> dict[Operator, int]:
        """Returns the operations of each operator."""
        return {operator: operator.schema.cost(operator.signature).flops for operator in self.operators}

    @cached_property
    def overwritable(self) -> dict[Operator, tuple[Var, ...]]:
        """Returns, by operator, the inputs that it may write all of its output over."""
        return {operator: fully_overwritable(operator) for operator in self.operators}

    def _over(self, operator: Operator, dying: Collection[Var]) -> Var | None:
        """Returns the input that an operator writes its output over, of those that die in it."""
        if not self.outside.isdisjoint(operator.outputs):
            return None
        return next((v for v in self.overwritable[operator] if v in dying), None)

    @cached_property
    def roots(self) -> dict[Var, Var]:
        """Returns, by var that is a view, the var that has its bytes."""
        roots: dict[Var, Var] = {}
        for operator in self.operators:
            if operator.shows_its_input and self.outside.isdisjoint(operator.outputs):
                roots |= {v: roots.get(operator.inputs[0], operator.inputs[0]) for v in operator.outputs}
        return roots

    @cached_property
    def alive(self) -> dict[Var, tuple[int, int]]:
        """Returns the positions [first, last] of the operators that write or read bytes of the arena, by var."""
        spans = {v: (-1, -1) for v in self.graph.inputs.values()}
        for position, operator in enumerate(self.operators):
            for var in (*operator.outputs, *operator.inputs):
                root = self.roots.get(var, var)
                if root not in self.graph.constants:
                    spans[root] = spans.get(root, (position, position))[0], position
        for var in self.graph.outputs.values():
            root = self.roots.get(var, var)
            spans |= {root: (spans[root][0], len(self.operators))} if root in spans else {}
        return {v: span for v, span in spans.items() if v not in self.outside}

    @cached_property
    def last_reader(self) -> dict[Var, int]:
        """Returns the position of the last operator that reads each var; behind all of them for an output."""
        readers = {v: position for position, operator in enumerate(self.operators) for v in operator.inputs}
        return readers | dict.fromkeys(self.graph.outputs.values(), len(self.operators))

    @cached_property
    def around(self) -> list[list[tuple[int, int]]]:
        """Returns, by position, the tensors that are alive there as (position of the writer, bytes), writers sorted."""
        lists: list[list[tuple[int, int]]] = [[] for _ in self.operators]
        for var, (first, last) in sorted(self.alive.items(), key=lambda item: item[1]):
            for position in range(max(first, 0), min(last + 1, len(lists))):
                lists[position].append((first, var.spec.nbytes))
        return lists

    @cached_property
    def alone(self) -> list[Choice]:
        """Returns the segments of one operator that is computed whole."""
        return [self._alone(position) for position in range(len(self.operators))]

    def _alone(self, position: int) -> Choice:
        """Returns the segment of one operator that is computed whole."""
        operator = self.operators[position]
        nbytes = sum(size for _, size in self.around[position])
        dying = {v for v in operator.inputs if v not in self.roots and self.alive.get(v, _NEVER)[1] == position}
        written = self._over(operator, dying)
        return Choice(nbytes - (0 if written is None else written.spec.nbytes), 0.0, 0.0)

    def _cascades_to(self, end: int, axis: int) -> Iterator[Choice]:
        """Yields the cascades that end in front of a position, in all numbers of stripes."""
        (result,) = self.operators[end - 1].outputs
        first, rows = self._first_inner(end, axis), result.shape[axis]
        for height in sorted({-(-rows // count) for count in stripe_counts(result)}):
            yield from self._in_stripes(first, end, height, axis)

    def _first_inner(self, end: int, axis: int) -> int:
        """Returns the first position from which on all operators in front of a position may be one cascade."""
        first = end - 1
        while first > max(end - MOST_OPERATORS, 0) and self._is_inner(self.operators[first - 1], end, axis):
            first -= 1
        return first

    def _is_inner(self, operator: Operator, end: int, axis: int) -> bool:
        """Returns whether the output of an operator is an image that nothing reads from a position on."""
        outputs = operator.outputs
        return len(outputs) == 1 and is_image(outputs[0], axis) and self.last_reader.get(outputs[0], end) < end

    def _in_stripes(self, least: int, end: int, height: int, axis: int) -> Iterator[Choice]:
        """Yields cascades from `least` or a later operator on, the shortest first, as long as there are rows.

        Those that need no less than the same operators one by one are left out.
        """
        (result,) = self.operators[end - 1].outputs
        kinds = _kinds(result, height, axis)
        extra, apart, read = 0.0, 0, 0
        again = result.shape[0] * sum(kind.count for kind in kinds) - 1
        for first in range(end - 1, least - 1, -1):
            operator = self.operators[first]
            if not all([kind.stripe.take(operator) for kind in kinds]):
                return
            apart = max(apart, self.alone[first].nbytes)
            extra += self.flops[operator] * (sum(_share(kind) * kind.count for kind in kinds) - 1)
            read += weights(operator)
            beside = self._bytes(result) + self._held_bytes(first)
            if first < end - 1 and beside < apart:
                nbytes = beside + self._inner(max((kind.stripe for kind in kinds), key=_rows), result)
                if nbytes < apart:
                    cost = max(extra, 0.0) + again * ((end - first) * CALL + read * BYTE) + _copies(kinds, result)
                    yield Choice(nbytes, cost, max(extra, 0.0), (Cascade(first, end, height, axis=axis),))

    @cached_property
    def rolling(self) -> "RollingSearch":
        """Returns the search for cascades that keep rows."""
        alone = [each.nbytes for each in self.alone]
        return RollingSearch(
            self.operators,
            self.flops,
            self.overwritable,
            self.last_reader,
            alone,
            self._around,
        )

    def _rolling_to(self, end: int, axis: int) -> Iterator[Choice]:
        """Yields the cascades that end in front of a position and keep rows, in all numbers of stripes."""
        yield from self.rolling.segments(self._first_inner(end, axis), end, axis)

    def _around(self, first: int, end: int, stripe: Stripe) -> Around:
        """Returns the bytes around a cascade of a stripe like this one."""
        (result,) = self.operators[end - 1].outputs
        return Around(self._bytes(result), self._held_bytes(first), self._dying_image(first, end, stripe))

    def _held(self, first: int) -> list[tuple[int, int]]:
        """Returns the tensors from in front of a cascade that are alive in it: what it reads stays to its end."""
        held = self.around[first]
        return held[: bisect_left(held, (first, 0))]

    def _held_bytes(self, first: int) -> int:
        return sum(size for _, size in self._held(first))

    def _dying_image(self, first: int, end: int, stripe: Stripe) -> int:
        """Returns the bytes of the image that the first operator of a cascade reads, where it may be taken in pieces.

        0 where it lies outside, where the stripe reads it whole, and where something else shows the same bytes, or
        reads them behind the cascade.
        """
        image = self.operators[first].inputs[0] if self.operators[first].inputs else None
        if image is None or not is_image(image, stripe.axis) or not _read_bytes(image, stripe):
            return 0
        root = self.roots.get(image, image)
        _, last = self.alive.get(root, (0, end))
        alone = all(v is image for position, v in self.readers.get(root, ()) if position >= first)
        return image.spec.nbytes if last < end and alone and image.spec.nbytes == root.spec.nbytes else 0

    @cached_property
    def readers(self) -> dict[Var, list[tuple[int, Var]]]:
        """Returns, by var that has bytes of its own, the positions of what reads them, each with the var it reads."""
        readers: dict[Var, list[tuple[int, Var]]] = {}
        for position, operator in enumerate(self.operators):
            for var in operator.inputs:
                readers.setdefault(self.roots.get(var, var), []).append((position, var))
        return readers

    def _inner(self, stripe: Stripe, result: Var) -> int:
        """Returns the most bytes that are alive at once of the inner tensors of a stripe."""
        parts = stripe.parts[::-1]
        reads = {v: n for n, part in enumerate(parts) for v in part.operator.inputs}
        outside = stripe.outside() if stripe.axis != ROWS else {}  # columns are copied for most kernels
        alive: dict[Var, int] = {}
        most = 0
        for number, part in enumerate(parts):
            (output,) = part.operator.outputs
            dying = {v for v in part.operator.inputs if v in alive and reads[v] == number}
            over = self._over(part.operator, dying)
            copied = sum(outside.get(v, 0) for v in set(part.operator.inputs)) if outside else 0
            if output is not result or stripe.axis != ROWS:
                low, high = stripe.needed[output]
                alive[output] = row_bytes(output, stripe.axis) * (high - low)
            most = max(most, sum(alive.values()) + copied - (0 if over is None else alive[over]))
            for var in dying:
                del alive[var]
        return most


@frozen(eq=False)
class _Kind:
    """A stripe of a cascade, and how many of its stripes are counted like it."""

    stripe: Stripe
    count: int


def _kinds(result: Var, height: int, axis: int) -> list[_Kind]:
    """Returns the first stripe of a result, one from the middle for all others, and the last one."""
    every = list(spans(result.shape[axis], height))
    counts = {0: 1, len(every) // 2: len(every) - 2, len(every) - 1: 1} if len(every) > 1 else {0: 1}
    return [_Kind(Stripe({result: every[number]}, axis=axis), count) for number, count in counts.items()]


def _copies(kinds: Sequence[_Kind], result: Var) -> int:
    """Returns the operations that take as long as copying what stripes of columns read, and compute of the result."""
    if kinds[0].stripe.axis == ROWS:
        return 0
    images = result.shape[0]
    read = sum(kind.count * sum(kind.stripe.outside().values()) for kind in kinds)
    return BYTE * (images * read + result.spec.nbytes)


def _share(kind: _Kind) -> float:
    """Returns the share of the rows of the operator taken in last that a stripe computes."""
    part = kind.stripe.parts[-1]
    first, last = part.written
    return (last - first) / part.operator.outputs[0].shape[kind.stripe.axis]


def _read_bytes(image: Var, stripe: Stripe) -> int:
    """Returns the bytes of the rows of an image that a stripe reads; 0 where it reads it whole."""
    low, high = stripe.needed.get(image, (0, 0)) if image not in stripe.whole else (0, 0)
    return image.spec.nbytes // image.shape[stripe.axis] * (high - low)


def _rows(stripe: Stripe) -> int:
    """Returns how many rows of all tensors a stripe needs."""
    return sum(last - first for first, last in stripe.needed.values())


def _joined(pairs: Sequence[tuple[Sequence[Choice], Sequence[Choice]]]) -> list[Choice]:
    """Returns the Pareto front of the choices in front of segments with each of these behind; not too many."""
    nbytes = [np.maximum.outer(*([c.nbytes for c in each] for each in pair)) for pair in pairs]
    costs = [np.add.outer(*([c.cost for c in each] for each in pair)) for pair in pairs]
    starts = np.cumsum([0, *(matrix.size for matrix in nbytes)])
    flat, cost = (np.concatenate([matrix.ravel() for matrix in each]) for each in (nbytes, costs))
    order = np.lexsort((cost, flat))
    least = np.minimum.accumulate(cost[order])
    kept = order[np.concatenate(([True], cost[order][1:] < least[:-1]))].tolist()
    while len(kept) > _MOST_CHOICES:
        del kept[1:-1:2]  # the ends stay
    joined = []
    for way in kept:
        number = int(np.searchsorted(starts, way, "right")) - 1
        before, behind = pairs[number]
        first, second = divmod(way - int(starts[number]), len(behind))
        joined.append(_both(before[first], behind[second]))
    return joined


def _both(before: Choice, segment: Choice) -> Choice:
    return Choice(
        max(before.nbytes, segment.nbytes),
        before.cost + segment.cost,
        before.extra + segment.extra,
        before.cascades + segment.cascades,
    )
