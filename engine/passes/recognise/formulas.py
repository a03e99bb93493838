"""Steps of formulas, read backwards. Each yields what there is behind a var if it is computed in that way.

Patterns are nested loops over these: a loop that finds nothing is a pattern that does not fit.
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
"""Operators of one formula."""


def writers(edit: Edit, var: Var, schema: OpSchema) -> Iterator[Operator]:
    """The operator that computes a var, if it is of that schema."""
    operator = edit.writer(var)
    if operator is not None and operator.schema is schema:
        yield operator


def pairs(edit: Edit, var: Var, schema: OpSchema) -> Iterator[tuple[Var, Var]]:
    """The operands of a sum or a product, in both orders; of other operators in theirs."""
    for operator in writers(edit, var, schema):
        a, b = operator.inputs
        yield a, b
        if schema in (ADD, MUL):
            yield b, a


def quotients(edit: Edit, var: Var) -> Iterator[tuple[Var, Var]]:
    """(a, b) where var = a / b, or a * reciprocal(b)."""
    yield from pairs(edit, var, DIV)
    for a, inverse in pairs(edit, var, MUL):
        for operator in writers(edit, inverse, RECIPROCAL):
            yield a, operator.inputs[0]
        for one, b in pairs(edit, inverse, DIV):
            if edit.number(one) == 1:
                yield a, b


def powers(edit: Edit, var: Var, exponent: float) -> Iterator[Var]:
    """a where var = a ** exponent."""
    for a, b in pairs(edit, var, POW):
        if edit.number(b) == exponent:
            yield a


def roots(edit: Edit, var: Var) -> Iterator[Var]:
    """a where var = sqrt(a)."""
    yield from powers(edit, var, 0.5)
    for operator in writers(edit, var, SQRT):
        yield operator.inputs[0]


def squares(edit: Edit, var: Var) -> Iterator[Var]:
    """a where var = a ** 2, or a * a."""
    yield from powers(edit, var, 2)
    for operator in writers(edit, var, MUL):
        if operator.inputs[0] is operator.inputs[1]:
            yield operator.inputs[0]


def root_quotients(edit: Edit, var: Var) -> Iterator[tuple[Var, Var]]:
    """(a, b) where var = a / sqrt(b), or a * b ** -0.5."""
    for a, root in quotients(edit, var):
        yield from ((a, b) for b in roots(edit, root))
    for a, inverse in pairs(edit, var, MUL):
        yield from ((a, b) for b in powers(edit, inverse, -0.5))


def means(edit: Edit, var: Var) -> Iterator[tuple[Var, Axes]]:
    """(a, axes) where var is the mean of a over the axes, which are kept."""
    for operator in writers(edit, var, REDUCE_MEAN):
        if operator.attrs["keepdims"]:
            (a,) = operator.inputs
            yield a, tuple(sorted(reduced_axes(operator.attrs, a.ndim)))


def with_number(edit: Edit, var: Var) -> Iterator[tuple[Var, float]]:
    """(a, n) where var = a + n for a number n; n = 0 where it is no sum."""
    found = False
    for a, b in pairs(edit, var, ADD):
        number = edit.number(b)
        if number is not None:
            found = True
            yield a, number
    if not found:
        yield var, 0.0


def centred(edit: Edit, var: Var, axes: Axes) -> Iterator[Var]:
    """x where var = x - mean(x) over the axes."""
    for x, mean in pairs(edit, var, SUB):
        for a, over in means(edit, mean):
            if a is x and over == axes:
                yield x


def are_pieces(edit: Edit, result: Var, sources: Collection[Var]) -> bool:
    """Whether nobody needs what is computed between these vars, which can be read later, and the result, but for it."""
    if any(map(edit.is_old_state, sources)):
        return False
    found: dict[Operator, None] = {}
    waiting = [edit.writer(result)]
    while waiting:
        operator = waiting.pop()
        if operator is not None and operator not in found:
            found[operator] = None
            waiting += [edit.writer(v) for v in operator.inputs if v not in sources]
            if len(found) > _MOST:
                return False
    return edit.is_closed(found, result)
