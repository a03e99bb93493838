"""Channels last: convolutions, and what hangs together with them, on tensors (N, spatial..., C).

A region is what hangs together with a convolution or pooling and can be computed in the other order of axes. It is
where what enters and leaves it, which has to be turned, is little beside what these read and write. What turns a tensor
is a transpose, which is a view: whoever reads it may read it as it lies.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.cleanup.dead_code import DEAD_CODE
from engine.passes.edit import Edit
from engine.passes.layout.rules import find
from engine.passes.layout.turned import Turned, is_free, turn, turn_back, turn_constant
from engine.passes.layout.turned_reads import TurnedReads, turned_inputs
from engine.passes.recognise.transposes import runnable
from ops.movement.views import TRANSPOSE

_SHARE = 2
"""So many times the bytes that are turned must be read and written by what gains."""


class _ChannelsLast:
    """Turns every region for which that pays."""

    name = "channels last"

    def __call__(self, graph: Graph) -> Graph:
        """The graph, changed or not. Raises GraphError for a graph with open dimensions."""
        edit = Edit(DEAD_CODE(graph))
        refused: set[int] = set()
        for number in edit.numbers():
            if edit.has(number) and number not in refused:
                refused |= _turn_around(edit, number)
        return edit.graph()


def _turn_around(edit: Edit, number: int) -> set[int]:
    """Turns the region of an operator that gains, if that pays; else tells the operators that it is."""
    start = edit.operator(number)
    spatial = start.inputs[0].ndim - 2 if start.inputs else 0
    found = find(edit, start, spatial) if spatial > 0 else None
    if found is None or not found.gains:
        return set()
    region = _Region(edit, spatial)
    region.grow(start)
    region.prune()
    if region.pays():
        region.apply()
        return set()
    return set(map(edit.number_of, region.members))


@define(eq=False)
class _Region:
    """Operators, and how each is computed on turned tensors."""

    edit: Edit
    spatial: int
    members: dict[Operator, Turned] = field(factory=dict)
    reads: TurnedReads = field(factory=TurnedReads)

    def grow(self, start: Operator) -> None:
        """Takes in all that hangs together."""
        waiting, seen, spread = deque([start]), {start}, set[Var]()
        while waiting:
            operator = waiting.popleft()
            found = find(self.edit, operator, self.spatial)
            self.reads.add(operator, () if found is None else found.reads)
            if found is None:
                continue
            self.members[operator] = found
            vars = dict.fromkeys((*turned_inputs(operator, found), *(operator.outputs if found.leaves else ())))
            for var in (v for v in vars if v not in spread):
                spread.add(var)
                around = [op for op in self._around(var) if op not in seen]
                seen.update(around)
                waiting += around

    def prune(self) -> None:
        """Gives up operators at the border, one after the other, that make more to be turned than without them.

        Around what has been given up operators are tried again, in that order, where something has changed for them.
        """
        stale, waiting = {op for op, found in self.members.items() if not found.gains}, deque[Var]()
        for operator in tuple(self.members):
            if operator in stale:
                waiting += self._give_up(operator, stale)
        while waiting and stale:
            for operator in self._around(waiting.popleft()):
                if operator in stale:
                    waiting += self._give_up(operator, stale)

    def _give_up(self, operator: Operator, stale: set[Operator]) -> Iterable[Var]:
        """Gives up an operator if less is turned without it; gives the vars around which to try again."""
        stale.remove(operator)
        vars = dict.fromkeys((*operator.inputs, *operator.outputs))
        before = sum(map(self.turned_bytes, vars))
        found = self.members.pop(operator)
        self.reads.change(operator, found.reads, ())
        if sum(map(self.turned_bytes, vars)) >= before:
            self.members[operator] = found
            self.reads.change(operator, (), found.reads)
            return ()
        for var in (*operator.outputs, *filter(self._is_alone, turned_inputs(operator, found))):
            stale.update(op for op in self._around(var) if op in self.members and not self.members[op].gains)
        return vars

    def _is_alone(self, var: Var) -> bool:
        """Whether one less that reads it turned, or one more that reads it plain, makes a difference to others."""
        return self.reads.turned[var] <= 1 or self.reads.plain[var] <= 1

    def _around(self, var: Var) -> Iterator[Operator]:
        writer = self.edit.writer(var)
        yield from () if writer is None else (writer,)
        yield from self.edit.readers(var)

    def pays(self) -> bool:
        """Whether little is turned beside what gains."""
        gaining = [op for op, found in self.members.items() if found.gains]
        touched = sum(v.spec.nbytes for op in gaining for v in (op.inputs[0], *op.outputs))
        vars = dict.fromkeys(v for op in self.members for v in (*op.inputs, *op.outputs))
        return bool(gaining) and _SHARE * sum(map(self.turned_bytes, vars)) <= touched

    def turned_bytes(self, var: Var) -> int:
        """The bytes of a tensor, if it is there both turned and not."""
        if var in self.edit.constants or var.ndim < self.spatial + 2 or is_free(var.shape, self.spatial):
            return 0
        writer = self.edit.writer(var)
        if self._is_made(var):
            return var.spec.nbytes if self._is_wanted_back(var) else 0
        viewed = writer is not None and writer.schema is TRANSPOSE
        wanted = not viewed and self.reads.turned[var] > 0
        return var.spec.nbytes if wanted else 0

    def _is_made(self, var: Var) -> bool:
        """Whether an operator of the region computes it, turned."""
        writer = self.edit.writer(var)
        return writer is not None and writer in self.members and self.members[writer].leaves

    def _is_wanted_back(self, var: Var) -> bool:
        """Whether something reads it as it was."""
        return self.edit.is_fetched(var) or self.reads.plain[var] > 0

    def apply(self) -> None:
        """Computes the region anew."""
        members = {op: self.members[op] for op in runnable(tuple(self.members))}
        wanted = {v for op in members for v in op.outputs if self._is_made(v) and self._is_wanted_back(v)}
        made: dict[Var, Var] = {}
        plain: dict[Var, Var] = {}
        for operator, found in members.items():
            self.edit.operator(self.edit.number_of(operator))
            turned = frozenset(found.reads)
            inputs = [self._given(v, made) if i in turned else v for i, v in enumerate(operator.inputs)]
            for var, new in zip(operator.outputs, found.build(inputs), strict=True):
                (made if found.leaves else plain)[var] = new
                self.edit.bequeath(var, new)
        for operator in reversed(members):
            for var in operator.outputs:
                if var in plain:
                    self.edit.replace(var, plain[var])
                elif var in wanted:
                    self.edit.operator(self.edit.number_of(operator))
                    self.edit.replace(var, turn_back(made[var], self.spatial, var.shape))
        self.edit.changes += 1

    def _given(self, var: Var, made: dict[Var, Var]) -> Var:
        """What enters the region or is made in it, turned."""
        if var not in made:
            constant = var in self.edit.constants
            made[var] = turn_constant(self.edit, var, self.spatial) if constant else turn(var, self.spatial)
        return made[var]


CHANNELS_LAST = _ChannelsLast()
