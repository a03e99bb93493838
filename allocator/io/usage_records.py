"""Tensor usage records (Pisarchyk and Lee 2020) as CSV: id, first_op, last_op, size_bytes; last_op is inclusive."""

from allocator.io.instance import Instance, check_holds, decoded, named_problem
from allocator.io.table import check_cells, parse_table, render_table, require
from allocator.problem import FREE

_COLUMNS = ("id", "first_op", "last_op", "size_bytes")
_ALIASES = {"size": "size_bytes"}
_TITLE = "a table of usage records"


def parse(content: bytes) -> Instance:
    """Parses a table. Raises FormatError, which names line and column, and ProblemError."""
    table = parse_table(decoded(content), _COLUMNS, _ALIASES)
    require(table, _COLUMNS)
    ids, first = table.texts("id"), table.integers("first_op")
    check_cells(ids)
    problem = named_problem(
        ids,
        begin=first,
        end=table.integers("last_op", first) + 1,
        size=table.integers("size_bytes"),
        alignment=[1] * table.rows,
        pinned=[FREE] * table.rows,
    )
    return Instance(problem, ids)


def render(instance: Instance) -> bytes:
    """Returns the table of a problem; it holds no offsets. Raises UnsupportedProblemError for what it cannot hold."""
    check_holds(instance, _TITLE)
    check_cells(instance.ids)
    problem = instance.problem
    values = (instance.ids, problem.begin, problem.end - 1, problem.size)
    return render_table(dict(zip(_COLUMNS, values, strict=True))).encode()
