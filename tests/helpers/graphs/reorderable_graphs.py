"""Small graphs with concatenations whose operators can be put into every order, for claims about all orders."""

from collections.abc import Iterator, Sequence
from itertools import permutations

from attrs import frozen

import ops
from engine import Graph, Var
from tests.helpers.graphs.random_graphs import Choose

_KINDS = ("tanh", "sum", "relu", "add", "concat", "softmax")


@frozen
class Recipe:
    """Operators as (kind, input, input); an input is the number of an operator, or -1 for that of the graph."""

    operators: tuple[tuple[str, int, int], ...]
    outputs: tuple[int, ...]

    def graph(self, order: Sequence[int]) -> Graph:
        """Returns the graph with its operators added in that order."""
        graph = Graph("recipe")
        values = {-1: graph.input("x", (8, 4))}
        for number in order:
            values[number] = _apply(self.operators[number][0], [values[i] for i in self.inputs(number)])
        for i, number in enumerate(self.outputs):
            graph.output(values[number], f"y{i}")
        return graph

    def orders(self) -> Iterator[tuple[int, ...]]:
        """Returns all orders in which operators follow what they read; the one of the recipe first."""
        for order in permutations(range(len(self.operators))):
            place = {-1: -1} | {number: at for at, number in enumerate(order)}
            if all(place[n] > max(place[i] for i in self.inputs(n)) for n in order):
                yield order

    def inputs(self, number: int) -> tuple[int, ...]:
        """Returns the numbers of what an operator reads."""
        kind, left, right = self.operators[number]
        return (left, right) if kind in ("add", "concat") else (left,)


def recipe(choose: Choose, most: int = 5) -> Recipe:
    """Builds a recipe from choices."""
    count = 3 + choose(most - 2)
    operators, width = list[tuple[str, int, int]](), {-1: 4}
    for number in range(count):
        kind, left, right = _KINDS[choose(len(_KINDS))], choose(number + 1) - 1, choose(number + 1) - 1
        if kind == "add" and width[left] != width[right]:
            kind = "concat"
        operators.append((kind, left, right))
        width[number] = {"sum": 1, "concat": width[left] + width[right]}.get(kind, width[left])
    return Recipe(tuple(operators), tuple(sorted({count - 1, choose(count)})))


def _apply(kind: str, inputs: Sequence[Var]) -> Var:
    if kind == "concat":
        return ops.concat(inputs, axis=1)
    if kind == "sum":
        return ops.reduce_sum(inputs[0], axes=(1,), keepdims=True)
    if kind == "add":
        return ops.add(inputs[0], inputs[1])
    return {"tanh": ops.tanh, "relu": ops.relu, "softmax": ops.softmax}[kind](inputs[0])
