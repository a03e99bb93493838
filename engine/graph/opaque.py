"""Operators of a graph that nobody implements: with them, it can be planned and not run."""

from collections.abc import Iterator

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.text.errors import UnsupportedError
from ops.schema.opaque import is_opaque

_MOST_NAMED = 3
"""Operators of one kind that a text names."""


@frozen
class OpaqueOperator:
    """An operator that nobody implements: its name, and its domain and name in the model as `kind`."""

    operator: str
    kind: str


def opaque_operators(graph: Graph) -> tuple[OpaqueOperator, ...]:
    """Returns the operators of a graph, and of the bodies inside it, that nobody implements."""
    return tuple(OpaqueOperator(each.name, each.schema.name) for each in _all(graph) if is_opaque(each.schema))


def opaque_text(operators: tuple[OpaqueOperator, ...]) -> str:
    """Returns the operators as a text: the kinds, each with the names of a few of its operators."""
    kinds: dict[str, list[str]] = {}
    for each in operators:
        kinds.setdefault(each.kind, []).append(repr(each.operator))
    return ", ".join(f"{kind} ({_some(names)})" for kind, names in kinds.items())


def check_runs(graph: Graph) -> None:
    """Raises UnsupportedError, with the names of the operators, where nobody implements some of a graph."""
    operators = opaque_operators(graph)
    if operators:
        raise UnsupportedError(
            f"graph {graph.name!r} can be planned, and not run: nobody implements {opaque_text(operators)}; "
            "arenaplan.register_operator or --ops takes an implementation"
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _all(graph: Graph) -> Iterator[Operator]:
    for operator in graph.operators:
        yield operator
        for value in operator.attrs.values():
            inside = value if isinstance(value, Graph) else getattr(value, "graph", None)
            if isinstance(inside, Graph):
                yield from _all(inside)
