"""Channels last: convolutions, and what hangs together with them, on tensors (N, spatial..., C).

A region is what hangs together with a convolution or pooling and can be computed in the other order of axes. It is
where what enters and leaves it, which has to be turned, is little beside what these read and write. What turns a tensor
is a transpose, which is a view: whoever reads it may read it as it lies.
"""

from collections import deque
from collections.abc import Iterator

from attrs import define, field

from engine.graph import Graph
from engine.operator import Operator
from engine.passes.channels_last_rules import find
from engine.passes.dead_code import DEAD_CODE
from engine.passes.edit import Edit
from engine.passes.transposes import runnable
from engine.passes.turned import Turned, is_free, turn, turn_back, turn_constant
from engine.var import Var
from ops.views import TRANSPOSE

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
    numbers = {edit.operator(n): n for n in edit.numbers()}
    region = _Region(edit, spatial, numbers)
    region.grow(start)
    region.prune()
    if region.pays():
        region.apply()
        return set()
    return {numbers[operator] for operator in region.members}


@define(eq=False)
class _Region:
    """Operators, and how each is computed on turned tensors."""

    edit: Edit
    spatial: int
    numbers: dict[Operator, int]
    members: dict[Operator, Turned] = field(factory=dict)

    def grow(self, start: Operator) -> None:
        """Takes in all that hangs together."""
        waiting = deque([start])
        while waiting:
            operator = waiting.popleft()
            found = None if operator in self.members else find(self.edit, operator, self.spatial)
            if found is None:
                continue
            self.members[operator] = found
            for var in (operator.inputs[i] for i in found.reads):
                waiting += [w for w in (self.edit.writer(var),) if w is not None]
                waiting += self.edit.readers(var)
            if found.leaves:
                waiting += [r for v in operator.outputs for r in self.edit.readers(v)]

    def prune(self) -> None:
        """Gives up operators at the border, one after the other, that make more to be turned than without them."""
        waiting = deque(self.members)
        while waiting:
            operator = waiting.popleft()
            found = self.members.get(operator)
            if found is None or found.gains:
                continue
            vars = dict.fromkeys((*operator.inputs, *operator.outputs))
            before = sum(map(self.turned_bytes, vars))
            del self.members[operator]
            if sum(map(self.turned_bytes, vars)) >= before:
                self.members[operator] = found
            else:
                waiting += [op for v in vars for op in self._around(v) if op in self.members]

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
        wanted = not viewed and any(self._reads_turned(op, var) for op in self.edit.readers(var))
        return var.spec.nbytes if wanted else 0

    def _is_made(self, var: Var) -> bool:
        """Whether an operator of the region computes it, turned."""
        writer = self.edit.writer(var)
        return writer is not None and writer in self.members and self.members[writer].leaves

    def _is_wanted_back(self, var: Var) -> bool:
        """Whether something reads it as it was."""
        return self.edit.is_fetched(var) or any(self._reads_plain(op, var) for op in self.edit.readers(var))

    def _reads_plain(self, operator: Operator, var: Var) -> bool:
        found = self.members.get(operator)
        return found is None or any(v is var and i not in found.reads for i, v in enumerate(operator.inputs))

    def _reads_turned(self, operator: Operator, var: Var) -> bool:
        found = self.members.get(operator)
        return found is not None and any(operator.inputs[i] is var for i in found.reads)

    def apply(self) -> None:
        """Computes the region anew."""
        members = {op: self.members[op] for op in runnable(tuple(self.members))}
        wanted = {v for op in members for v in op.outputs if self._is_made(v) and self._is_wanted_back(v)}
        made: dict[Var, Var] = {}
        plain: dict[Var, Var] = {}
        for operator, found in members.items():
            self.edit.operator(self.numbers[operator])
            inputs = [self._given(v, made) if i in found.reads else v for i, v in enumerate(operator.inputs)]
            for var, new in zip(operator.outputs, found.build(inputs), strict=True):
                (made if found.leaves else plain)[var] = new
                self.edit.bequeath(var, new)
        for operator in reversed(members):
            for var in operator.outputs:
                if var in plain:
                    self.edit.replace(var, plain[var])
                elif var in wanted:
                    self.edit.operator(self.numbers[operator])
                    self.edit.replace(var, turn_back(made[var], self.spatial, var.shape))
        self.edit.changes += 1

    def _given(self, var: Var, made: dict[Var, Var]) -> Var:
        """What enters the region or is made in it, turned."""
        if var not in made:
            constant = var in self.edit.constants
            made[var] = turn_constant(self.edit, var, self.spatial) if constant else turn(var, self.spatial)
        return made[var]


CHANNELS_LAST = _ChannelsLast()
