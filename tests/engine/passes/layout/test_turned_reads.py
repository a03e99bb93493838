"""Readers are counted as they are found where all are looked through, and are not looked through once more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ops
from engine import Graph, Operator, Var
from engine.passes.edit import Edit
from engine.passes.layout.channels_last import CHANNELS_LAST
from engine.passes.layout.turned_reads import TurnedReads


@given(st.data())
def test_turned_reads_counts_equal_their_definition(data: st.DataObject) -> None:
    graph = Graph("joins")
    vars = [graph.input(f"x{i}", (1, 2, 3, 3)) for i in range(3)]
    joined = st.lists(st.sampled_from(vars), min_size=1, max_size=4)
    joins: list[Var] = [ops.concat(data.draw(joined), axis=1) for _ in range(4)]
    choices = [st.sets(st.sampled_from(range(len(op.inputs)))).map(tuple) for op in graph.operators]
    before, after = ([data.draw(choice) for choice in choices] for _ in range(2))
    reads = TurnedReads()
    for operator, positions in zip(graph.operators, before, strict=True):
        reads.add(operator, positions)
    for operator, old, new in zip(graph.operators, before, after, strict=True):
        reads.change(operator, old, new)
    uses = [
        {(v, i in positions) for i, v in enumerate(op.inputs)}
        for op, positions in zip(graph.operators, after, strict=True)
    ]
    for var in (*vars, *joins):
        assert reads.turned[var] == sum((var, True) in use for use in uses)
        assert reads.plain[var] == sum((var, False) in use for use in uses)


_WEIGHTS = np.ones((2, 2, 1, 1), np.float32)


def _dense(layers: int) -> Graph:
    """Each convolution reads all that was computed before it."""
    graph = Graph("dense")
    found = [graph.input("x", (1, 2, 8, 8))]
    for _ in range(layers):
        whole: Var = ops.concat(found, axis=1)
        found.append(ops.conv(whole, np.ones((2, whole.shape[1], 1, 1), np.float32)))
    graph.output(found[-1], "y")
    return graph


def _star(readers: int) -> Graph:
    """Many that only activate read one convolution, and leave the graph."""
    graph = Graph("star")
    middle = ops.conv(graph.input("x", (1, 2, 8, 8)), _WEIGHTS)
    for i in range(readers):
        graph.output(ops.relu(middle), f"y{i}")
    return graph


def _islands(number: int) -> Graph:
    """Convolutions that have nothing to do with one another."""
    graph = Graph("islands")
    for i in range(number):
        graph.output(ops.conv(graph.input(f"x{i}", (1, 2, 8, 8)), _WEIGHTS), f"y{i}")
    return graph


@pytest.mark.parametrize("graph", [_dense(12), _dense(24), _star(200), _islands(200)])
def test_turned_reads_looks_at_each_reading_a_few_times_only(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    readers, operator = Edit.readers, Edit.operator

    def listed(edit: Edit, var: Var) -> tuple[Operator, ...]:
        nonlocal looked
        found = readers(edit, var)
        looked += len(found)
        return found

    def numbered(edit: Edit, number: int) -> Operator:
        nonlocal looked
        looked += 1
        return operator(edit, number)

    monkeypatch.setattr(Edit, "readers", listed)
    monkeypatch.setattr(Edit, "operator", numbered)
    CHANNELS_LAST(graph)
    readings = sum(len(op.inputs) for op in graph.operators)
    assert 0 < looked <= 5 * (readings + len(graph.operators))
