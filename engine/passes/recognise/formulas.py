"""Matchers for steps of formulas, from a result back to its operands.

Each matcher yields the operands of a var where one kind of step computes it, and nothing otherwise. A pattern is a nest
of loops over matchers: a loop without an iteration is a pattern that does not match.
"""

from collections.abc import Collection, Iterator

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from ops.common.fold import reduced_axes
from ops.elementwise.binary import ADD, DIV, MUL, SUB
from ops.elementwise.power import POW
from ops.elementwise.unary import RECIPROCAL, SQRT
from ops.reduce.reduce import REDUCE_MEAN
from ops.schema.schema import OpSchema

Axes = tuple[int, ...]
_MOST = 64
"""Operators of one formula, at most. A larger number recognises longer formulas and makes the search slower."""


def writers(edit: Edit, var: Var, schema: OpSchema) -> Iterator[Operator]:
    """Yields the operator that computes a var, if it has this schema."""
    operator = edit.writer(var)
    if operator is not None and operator.schema is schema:
        yield operator


def pairs(edit: Edit, var: Var, schema: OpSchema) -> Iterator[tuple[Var, Var]]:
    """Yields the two operands of the operator that computes a var; of a sum or a product in both orders."""
    for operator in writers(edit, var, schema):
        a, b = operator.inputs
        yield a, b
        if schema in (ADD, MUL):
            yield b, a


def quotients(edit: Edit, var: Var) -> Iterator[tuple[Var, Var]]:
    """Yields (a, b) where var = a / b, or a * reciprocal(b)."""
    yield from pairs(edit, var, DIV)
    for a, inverse in pairs(edit, var, MUL):
        for operator in writers(edit, inverse, RECIPROCAL):
            yield a, operator.inputs[0]
        for one, b in pairs(edit, inverse, DIV):
            if edit.uniform_value(one) == 1:
                yield a, b


def powers(edit: Edit, var: Var, exponent: float) -> Iterator[Var]:
    """Yields a where var = a ** exponent."""
    for a, b in pairs(edit, var, POW):
        if edit.uniform_value(b) == exponent:
            yield a


def roots(edit: Edit, var: Var) -> Iterator[Var]:
    """Yields a where var = sqrt(a)."""
    yield from powers(edit, var, 0.5)
    for operator in writers(edit, var, SQRT):
        yield operator.inputs[0]


def squares(edit: Edit, var: Var) -> Iterator[Var]:
    """Yields a where var = a ** 2, or a * a."""
    yield from powers(edit, var, 2)
    for operator in writers(edit, var, MUL):
        if operator.inputs[0] is operator.inputs[1]:
            yield operator.inputs[0]


def root_quotients(edit: Edit, var: Var) -> Iterator[tuple[Var, Var]]:
    """Yields (a, b) where var = a / sqrt(b), or a * b ** -0.5."""
    for a, root in quotients(edit, var):
        yield from ((a, b) for b in roots(edit, root))
    for a, inverse in pairs(edit, var, MUL):
        yield from ((a, b) for b in powers(edit, inverse, -0.5))


def means(edit: Edit, var: Var) -> Iterator[tuple[Var, Axes]]:
    """Yields (a, axes) where var is the mean of a over the axes, with keepdims."""
    for operator in writers(edit, var, REDUCE_MEAN):
        if operator.attrs["keepdims"]:
            (a,) = operator.inputs
            yield a, tuple(sorted(reduced_axes(operator.attrs, a.ndim)))


def with_number(edit: Edit, var: Var) -> Iterator[tuple[Var, float]]:
    """Yields (a, n) where var = a + n for a number n; (var, 0) where it is no such sum."""
    is_sum = False
    for a, b in pairs(edit, var, ADD):
        number = edit.uniform_value(b)
        if number is not None:
            is_sum = True
            yield a, number
    if not is_sum:
        yield var, 0.0


def centred(edit: Edit, var: Var, axes: Axes) -> Iterator[Var]:
    """Yields x where var = x - mean(x) over the axes."""
    for x, mean in pairs(edit, var, SUB):
        for a, over in means(edit, mean):
            if a is x and over == axes:
                yield x


def is_replaceable(edit: Edit, result: Var, sources: Collection[Var]) -> bool:
    """Returns whether a formula from `sources` to `result` may become one operator.

    It may where nothing else reads the values in between, and the sources can still be read later.
    """
    if any(map(edit.is_overwritten_state, sources)):
        return False
    formula: dict[Operator, None] = {}
    ends = set(sources)
    frontier = [edit.writer(result)]
    while frontier:
        operator = frontier.pop()
        if operator is not None and operator not in formula:
            formula[operator] = None
            frontier += [edit.writer(v) for v in operator.inputs if v not in ends]
            if len(formula) > _MOST:
                return False
    return edit.is_self_contained(formula, result)
