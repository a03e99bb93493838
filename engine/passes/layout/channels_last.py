"""Channels last: regions of operators around convolutions are computed on tensors (N, spatial..., C).

A region is a connected set of operators that have a form with channels last and contains a convolution or a pooling.
Its layout is changed where the tensors to convert, at its border, are small beside what its convolutions and poolings
read and write. A conversion is a transpose, which is a view: a kernel may read it without a copy.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from attrs import define, field

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import Pass
from engine.passes.edit import Edit
from engine.passes.layout.nhwc_form import NhwcForm, constant_to_nhwc, keeps_element_order, to_nchw, to_nhwc
from engine.passes.layout.rules import nhwc_form
from engine.passes.recognise.transposes import runnable
from ops.movement.views import TRANSPOSE

_SHARE = 2
"""The preferring operators must read and write at least this many times the bytes that are converted.

A larger number converts fewer regions: it loses faster kernels, and saves copies of tensors at the border.
"""


class _ChannelsLast(Pass):
    """The pass that changes the layout of each region where that pays.

    1. f(x), f in a region -> nchw(form of f(nhwc(x))); see `engine.passes.layout.rules` for the forms
    2. nhwc(nchw(x)) inside a region -> x: only the border of a region has conversions

    The pass does not change a region without convolution or pooling, nor one whose conversions cost too much.
    """

    name = "channels last"

    def apply(self, edit: Edit) -> None:
        """Converts each region that has an operator which prefers channels last."""
        edit.remove_dead_code()
        refused: set[int] = set()
        for operator_id in edit.operator_ids():
            if edit.has_operator(operator_id) and operator_id not in refused:
                refused |= _convert_region(edit, operator_id)


def _convert_region(edit: Edit, operator_id: int) -> set[int]:
    """Converts the region of an operator that prefers channels last; returns its operators where that does not pay."""
    start = edit.operator(operator_id)
    spatial = start.inputs[0].ndim - 2 if start.inputs else 0
    form = nhwc_form(edit, start, spatial) if spatial > 0 else None
    if form is None or not form.prefers_nhwc:
        return set()
    region = _Region(edit, spatial)
    region.grow(start)
    region.prune()
    if region.pays():
        region.apply()
        return set()
    return set(map(edit.operator_id, region.members))


@define(eq=False)
class LayoutReaders:
    """The number of operators that read each var with channels last, and with channels first. One may do both.

    A concatenation of n inputs costs O(n), each time it is added, given up, or taken in again.
    """

    last: Counter[Var] = field(factory=Counter)
    first: Counter[Var] = field(factory=Counter)

    def add(self, operator: Operator, nhwc_inputs: Collection[int], times: int = 1) -> None:
        """Counts an operator that reads these input positions with channels last; -1 times removes it."""
        positions = frozenset(nhwc_inputs)
        for var in dict.fromkeys(operator.inputs[i] for i in nhwc_inputs):
            self.last[var] += times
        for var in dict.fromkeys(v for i, v in enumerate(operator.inputs) if i not in positions):
            self.first[var] += times

    def change(self, operator: Operator, before: Collection[int], after: Collection[int]) -> None:
        """Counts an operator with other positions than before."""
        self.add(operator, before, -1)
        self.add(operator, after)


@define(eq=False)
class _Region:
    """The operators of a region, each with its form with channels last."""

    edit: Edit
    spatial: int
    members: dict[Operator, NhwcForm] = field(factory=dict)
    readers: LayoutReaders = field(factory=LayoutReaders)

    def grow(self, start: Operator) -> None:
        """Adds all operators with a form that are connected to `start` by tensors with channels last."""
        frontier, reached_operators, reached_vars = deque([start]), {start}, set[Var]()
        while frontier:
            operator = frontier.popleft()
            form = nhwc_form(self.edit, operator, self.spatial)
            self.readers.add(operator, () if form is None else form.nhwc_inputs)
            if form is None:
                continue
            self.members[operator] = form
            vars = dict.fromkeys((*_nhwc_inputs(operator, form), *(operator.outputs if form.nhwc_outputs else ())))
            for var in (v for v in vars if v not in reached_vars):
                reached_vars.add(var)
                neighbours = [op for op in self._neighbours(var) if op not in reached_operators]
                reached_operators.update(neighbours)
                frontier += neighbours

    def prune(self) -> None:
        """Removes operators at the border, one after the other, where that makes fewer bytes to convert.

        Then the neighbours of removed operators are tried again, in that order, where their situation has changed.
        """
        untried, changed = {op for op, form in self.members.items() if not form.prefers_nhwc}, deque[Var]()
        for operator in tuple(self.members):
            if operator in untried:
                changed += self._try_without(operator, untried)
        while changed and untried:
            for operator in self._neighbours(changed.popleft()):
                if operator in untried:
                    changed += self._try_without(operator, untried)

    def _try_without(self, operator: Operator, untried: set[Operator]) -> Iterable[Var]:
        """Removes an operator if that saves conversions; returns the vars whose neighbours are to be tried again."""
        untried.remove(operator)
        vars = dict.fromkeys((*operator.inputs, *operator.outputs))
        before = sum(map(self.converted_bytes, vars))
        form = self.members.pop(operator)
        self.readers.change(operator, form.nhwc_inputs, ())
        if sum(map(self.converted_bytes, vars)) >= before:
            self.members[operator] = form
            self.readers.change(operator, (), form.nhwc_inputs)
            return ()
        for var in (*operator.outputs, *filter(self._depends_on_one, _nhwc_inputs(operator, form))):
            neighbours = (op for op in self._neighbours(var) if op in self.members)
            untried.update(op for op in neighbours if not self.members[op].prefers_nhwc)
        return vars

    def _depends_on_one(self, var: Var) -> bool:
        """Returns whether one reader that changes its layout decides whether the var is converted."""
        return self.readers.last[var] <= 1 or self.readers.first[var] <= 1

    def _neighbours(self, var: Var) -> Iterator[Operator]:
        writer = self.edit.writer(var)
        yield from () if writer is None else (writer,)
        yield from self.edit.readers(var)

    def pays(self) -> bool:
        """Returns whether few bytes are converted beside those that the preferring operators read and write."""
        preferring = [op for op, form in self.members.items() if form.prefers_nhwc]
        touched = self.edit.estimated_bytes(v for op in preferring for v in (op.inputs[0], *op.outputs))
        vars = dict.fromkeys(v for op in self.members for v in (*op.inputs, *op.outputs))
        return bool(preferring) and _SHARE * sum(map(self.converted_bytes, vars)) <= touched

    def converted_bytes(self, var: Var) -> int:
        """Returns the bytes of a tensor that must exist in both layouts; 0 for any other."""
        if var in self.edit.constants or var.ndim < self.spatial + 2 or keeps_element_order(var.shape, self.spatial):
            return 0
        writer = self.edit.writer(var)
        if self._is_computed_nhwc(var):
            return self.edit.estimated_bytes((var,)) if self._is_needed_nchw(var) else 0
        is_view = writer is not None and writer.schema is TRANSPOSE
        needed = not is_view and self.readers.last[var] > 0
        return self.edit.estimated_bytes((var,)) if needed else 0

    def _is_computed_nhwc(self, var: Var) -> bool:
        """Returns whether an operator of the region computes a var with channels last."""
        writer = self.edit.writer(var)
        return writer is not None and writer in self.members and self.members[writer].nhwc_outputs

    def _is_needed_nchw(self, var: Var) -> bool:
        """Returns whether something reads a var with channels first."""
        return self.edit.is_fetched(var) or self.readers.first[var] > 0

    def apply(self) -> None:
        """Replaces the operators of the region by their forms with channels last."""
        members = {op: self.members[op] for op in runnable(tuple(self.members))}
        both = {v for op in members for v in op.outputs if self._is_computed_nhwc(v) and self._is_needed_nchw(v)}
        nhwc: dict[Var, Var] = {}
        nchw: dict[Var, Var] = {}
        for operator, form in members.items():
            self._insert_behind(operator)
            positions = frozenset(form.nhwc_inputs)
            inputs = [self._nhwc(v, nhwc) if i in positions else v for i, v in enumerate(operator.inputs)]
            for var, new in zip(operator.outputs, form.build(inputs), strict=True):
                (nhwc if form.nhwc_outputs else nchw)[var] = new
                self.edit.inherit_name(var, new)
        for operator in reversed(members):
            for var in operator.outputs:
                if var in nchw:
                    self.edit.replace(var, nchw[var])
                elif var in both:
                    self._insert_behind(operator)
                    self.edit.replace(var, to_nchw(nhwc[var], self.spatial, var.shape))
        self.edit.changes += 1

    def _insert_behind(self, operator: Operator) -> None:
        self.edit.insert_behind(self.edit.operator_id(operator))

    def _nhwc(self, var: Var, nhwc: dict[Var, Var]) -> Var:
        """Returns a var with channels last: a result of the region, or an input that is converted once."""
        if var not in nhwc:
            constant = var in self.edit.constants
            nhwc[var] = constant_to_nhwc(self.edit, var, self.spatial) if constant else to_nhwc(var, self.spatial)
        return nhwc[var]


def _nhwc_inputs(operator: Operator, form: NhwcForm) -> Sequence[Var]:
    """Returns the vars that an operator reads with channels last, each once."""
    return tuple(dict.fromkeys(operator.inputs[i] for i in form.nhwc_inputs))


CHANNELS_LAST = _ChannelsLast()
