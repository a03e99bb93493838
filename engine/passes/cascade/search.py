"""The search for cascades: which operators, and how many stripes, by dynamic programming over cut points.

A network is a sequence of segments: single operators, and cascades in some number of stripes. What a segment needs
depends on nothing before or behind it: the tensors that stand around it, and what lies inside. The largest need of all
segments is the arena, their costs are added up. For each position in the sequence, the search
keeps the choices of segments in front of it of which none is better in both (the Pareto front).

Bytes are those of tensors alive at once; an operator writes over an input where its schema lets it. Workspaces and
alignment are left out. The planner has the last word about the few choices that are left.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cascade.rows import Part, Stripe, is_image, spans
from engine.planning.placed import Cascade
from ops.common.tiling import ROWS

_COUNTS = (2, 3, 4, 6, 8, 10, 14, 20, 28, 40, 56)
"""Numbers of stripes that are tried. Between neighbours the bytes of a stripe differ by a third."""
MOST_OPERATORS = 48
"""The most operators of one cascade: bounds the time of the search. The halo of more is nearly a whole image."""
_CALL = 100_000
"""The operations that take as long as what a call takes beside its work, about 2 us."""
_MOST_CHOICES = 64
"""The most choices that are kept in front of a position."""


@frozen(eq=False)
class Choice:
    """Cascades, the bytes that they leave the arena, and the operations that they add to a run. Both are estimates.

    `cost` is what they add to the time of a run, in operations: calls take time, too.
    """

    nbytes: int
    cost: float
    extra: float
    cascades: tuple[Cascade, ...] = ()


def search_cascades(graph: Graph) -> list[Choice]:
    """Returns the Pareto front of choices of cascades, from the fewest bytes to no extra operation."""
    return _Search(graph, graph.operators).front()


def operations(graph: Graph) -> int:
    """Returns the operations of a run of a graph."""
    return sum(map(_flops, graph.operators))


@frozen(eq=False)
class _Search:
    graph: Graph
    operators: Sequence[Operator]

    def front(self) -> list[Choice]:
        fronts: list[list[Choice]] = [[Choice(0, 0.0, 0.0)]]
        for end in range(1, len(self.operators) + 1):
            ways = [_joined(before, self.alone[end - 1]) for before in fronts[end - 1]]
            for segment in self._cascades_to(end):
                ways += [_joined(before, segment) for before in fronts[segment.cascades[0].first]]
            fronts.append(_pareto(ways))
        return fronts[-1]

    @cached_property
    def roots(self) -> dict[Var, Var]:
        """Returns, by var that is a view, the var that has its bytes."""
        roots: dict[Var, Var] = {}
        for operator in self.operators:
            if operator.shows_its_input:
                roots |= {v: roots.get(operator.inputs[0], operator.inputs[0]) for v in operator.outputs}
        return roots

    @cached_property
    def alive(self) -> dict[Var, tuple[int, int]]:
        """Returns the positions [first, last] of the operators that write or read the bytes of each var."""
        spans = {v: (-1, -1) for v in self.graph.inputs.values()}
        for position, operator in enumerate(self.operators):
            for var in (*operator.outputs, *operator.inputs):
                root = self.roots.get(var, var)
                if root not in self.graph.constants:
                    spans[root] = spans.get(root, (position, position))[0], position
        for var in self.graph.outputs.values():
            root = self.roots.get(var, var)
            spans |= {root: (spans[root][0], len(self.operators))} if root in spans else {}
        return spans

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
        dying = {v for v in operator.inputs if v not in self.roots and self.alive.get(v, (0, 0))[1] == position}
        written = _overwritten(operator, dying)
        return Choice(nbytes - (0 if written is None else written.spec.nbytes), 0.0, 0.0)

    def _cascades_to(self, end: int) -> Iterator[Choice]:
        """Yields the cascades that end in front of a position, in all numbers of stripes."""
        last = self.operators[end - 1]
        if len(last.outputs) != 1 or not is_image(last.outputs[0]):
            return
        first = end - 1
        while first > max(end - MOST_OPERATORS, 0) and self._is_inner(self.operators[first - 1], end):
            first -= 1
        rows = last.outputs[0].shape[ROWS]
        for height in sorted({-(-rows // count) for count in _COUNTS}):
            yield from self._in_stripes(first, end, height)

    def _is_inner(self, operator: Operator, end: int) -> bool:
        """Returns whether the output of an operator is an image that nothing reads from a position on."""
        outputs = operator.outputs
        return len(outputs) == 1 and is_image(outputs[0]) and self.last_reader.get(outputs[0], end) < end

    def _in_stripes(self, least: int, end: int, height: int) -> Iterator[Choice]:
        """Yields cascades from `least` or a later operator on, the shortest first, as long as there are rows.

        Those that need no less than the same operators one by one are left out.
        """
        (result,) = self.operators[end - 1].outputs
        kinds = _kinds(result, height)
        extra, apart = 0.0, 0
        for first in range(end - 1, least - 1, -1):
            operator = self.operators[first]
            if not all([kind.stripe.take(operator) for kind in kinds]):
                return
            apart = max(apart, self.alone[first].nbytes)
            extra += sum(_work(kind.stripe.parts[-1]) * kind.count for kind in kinds) - _flops(operator)
            outside = result.spec.nbytes + sum(size for _, size in self._held(first))
            if first < end - 1 and outside < apart:
                nbytes = outside + self._inner(max((kind.stripe for kind in kinds), key=_rows), result)
                if nbytes < apart:
                    calls = (end - first) * (sum(kind.count for kind in kinds) - 1)
                    yield Choice(
                        nbytes, max(extra, 0.0) + calls * _CALL, max(extra, 0.0), (Cascade(first, end, height),)
                    )

    def _held(self, first: int) -> list[tuple[int, int]]:
        """Returns the tensors from in front of a cascade that are alive in it: what it reads stays to its end."""
        held = self.around[first]
        return held[: bisect_left(held, (first, 0))]

    def _inner(self, stripe: Stripe, result: Var) -> int:
        """Returns the most bytes that are alive at once of the inner tensors of a stripe."""
        parts = stripe.parts[::-1]
        reads = {v: n for n, part in enumerate(parts) for v in part.operator.inputs}
        alive: dict[Var, int] = {}
        most = 0
        for number, part in enumerate(parts):
            (output,) = part.operator.outputs
            dying = {v for v in part.operator.inputs if v in alive and reads[v] == number}
            over = _overwritten(part.operator, dying)
            if output is not result:
                low, high = stripe.needed[output]
                alive[output] = output.spec.nbytes // output.shape[ROWS] * (high - low)
            most = max(most, sum(alive.values()) - (0 if over is None else alive[over]))
            for var in dying:
                del alive[var]
        return most


def _overwritten(operator: Operator, dying: Collection[Var]) -> Var | None:
    """Returns the input that an operator may write its output over, of those that die in it."""
    forwards = operator.schema.forwards(operator.signature)
    inputs = (operator.inputs[forward.input] for forward in forwards)
    return next((v for v in inputs if v in dying and v.spec.nbytes == operator.outputs[0].spec.nbytes), None)


@frozen(eq=False)
class _Kind:
    """A stripe of a cascade, and how many of its stripes are counted like it."""

    stripe: Stripe
    count: int


def _kinds(result: Var, height: int) -> list[_Kind]:
    """Returns the first stripe of a result, one from the middle for all others, and the last one."""
    every = list(spans(result.shape[ROWS], height))
    counts = {0: 1, len(every) // 2: len(every) - 2, len(every) - 1: 1}
    return [_Kind(Stripe({result: every[number]}), count) for number, count in counts.items()]


@lru_cache(maxsize=4096)
def _flops(operator: Operator) -> int:
    return operator.schema.cost(operator.signature).flops


def _work(part: Part) -> float:
    """Returns the operations of a part of an operator: its share of the rows."""
    first, last = part.written
    return _flops(part.operator) * (last - first) / part.operator.outputs[0].shape[ROWS]


def _rows(stripe: Stripe) -> int:
    """Returns how many rows of all tensors a stripe needs."""
    return sum(last - first for first, last in stripe.needed.values())


def _joined(before: Choice, segment: Choice) -> Choice:
    return Choice(
        max(before.nbytes, segment.nbytes),
        before.cost + segment.cost,
        before.extra + segment.extra,
        before.cascades + segment.cascades,
    )


def _pareto(choices: Sequence[Choice]) -> list[Choice]:
    """Returns the choices of which none has fewer bytes at no more cost than another, the fewest bytes first."""
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.nbytes, c.cost)):
        if not kept or choice.cost < kept[-1].cost:
            kept.append(choice)
    while len(kept) > _MOST_CHOICES:
        del kept[1:-1:2]  # the ends stay
    return kept
