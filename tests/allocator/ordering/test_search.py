from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.breadths import breadths
from allocator.kernels import ordering as kernels
from allocator.ordering import result as limits
from allocator.ordering import search
from allocator.ordering.parts import cut_out, new_board
from allocator.ordering.reach import cuts, reach
from allocator.ordering.result import Limits, OrderResult, as_given, followed
from allocator.ordering.search import lowest
from allocator.ordering.step_graph import StepGraph, depth_first, step_graph
from allocator.steps import OverwriteForward, Program, Step
from tests.helpers.allocator.reorderable_programs import build, dependences, orders, problem_of, programs, reordered
from tests.helpers.graphs.random_graphs import seeded


def _network(program: Program) -> StepGraph:
    return step_graph(program, dependences(program))


def _peak(program: Program, graph: StepGraph, order: Sequence[int]) -> int:
    """Returns the largest operator breadth of the program in an order of nodes, as the planner computes it."""
    steps = graph.step.tolist()
    return int(breadths(problem_of(reordered(program, [steps[node] for node in order]))).value.max(initial=0))


def _edges(graph: StepGraph) -> list[tuple[int, int]]:
    return [(a, b) for a, result in enumerate(graph.after.lists()) for b in result]


def _best(program: Program, graph: StepGraph) -> int:
    return min(_peak(program, graph, order) for order in orders(len(graph), _edges(graph)))


def _check(program: Program, graph: StepGraph, result: OrderResult) -> None:
    order = result.order.tolist()
    place = {node: i for i, node in enumerate(order)}
    assert sorted(order) == list(range(len(graph)))
    assert all(place[a] < place[b] for a, b in _edges(graph))
    assert result.peak == _peak(program, graph, order)
    assert result.initial_peak == _peak(program, graph, range(len(graph)))
    assert result.bound <= result.peak <= result.initial_peak


@settings(max_examples=60)
@given(programs(most=6))
def test_no_order_of_a_small_program_is_better(program: Program) -> None:
    graph = _network(program)
    result = lowest(graph)
    _check(program, graph, result)
    assert result.is_proved
    assert result.peak == _best(program, graph)


@settings(max_examples=40)
@given(programs(most=6))
def test_the_bound_of_all_orders_is_never_above_the_best_order(program: Program) -> None:
    graph = _network(program)
    assert as_given(graph).bound <= _best(program, graph)


@settings(max_examples=40)
@given(programs(most=12), st.integers(1, 20))
def test_a_search_that_is_cut_short_still_gives_an_order_and_a_bound(program: Program, nodes: int) -> None:
    graph = _network(program)
    result = lowest(graph, Limits(nodes=nodes))
    _check(program, graph, result)
    assert result.bound <= lowest(graph).peak <= result.peak


@settings(max_examples=30)
@given(programs(most=10))
def test_depth_first_order_is_runnable(program: Program) -> None:
    graph = _network(program)
    order = depth_first(graph)
    assert followed(graph, order).peak == _peak(program, graph, order)
    _check_runnable(graph, order)


def _check_runnable(graph: StepGraph, order: Sequence[int]) -> None:
    place = {node: i for i, node in enumerate(order)}
    assert sorted(order) == list(range(len(graph)))
    assert all(place[a] < place[b] for a, b in _edges(graph))


@settings(max_examples=30)
@given(programs(most=6))
def test_order_cuts_are_where_all_orders_agree(program: Program) -> None:
    graph = _network(program)
    fronts = [[frozenset(order[:k]) for order in orders(len(graph), _edges(graph))] for k in range(len(graph) + 1)]
    assert cuts(reach(graph)) == tuple(k for k, result in enumerate(fronts) if len(set(result)) == 1)


@settings(max_examples=30)
@given(programs(most=10), st.integers(0, 10**6))
def test_a_step_taken_back_from_an_order_leaves_no_trace(program: Program, seed: int) -> None:
    graph, rng = _network(program), np.random.default_rng(seed)
    part = cut_out(graph, 0, len(graph))
    board = new_board(part)
    kernels.clear(part, board, graph.start)
    states = []
    while ready := np.flatnonzero(board.node[kernels.WAITING, :-1] == 0).tolist():
        states.append(_state(board))
        kernels.take(part, board, int(rng.choice(ready)))
    for count in range(len(states) - 1, -1, -1):
        kernels.take_back(part, board, count)
        assert _state(board) == states[count]


def _state(board: kernels.OrderState) -> tuple[list[int], list[int], list[int]]:
    return board.node[kernels.WAITING].tolist(), board.chunk[kernels.LEFT].tolist(), board.cursor[:3].tolist()


def test_a_beam_finds_what_the_search_is_too_short_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FIRST_LOOK", 1)
    for seed in range(20):
        program = build(seeded(seed), 9)
        graph = _network(program)
        result = lowest(graph, Limits(nodes=400))
        _check(program, graph, result)


def test_order_search_without_time_keeps_the_given_order() -> None:
    graph = _network(build(seeded(3), 12))
    result = lowest(graph, Limits(until=0.0))
    assert result.order.tolist() == list(range(len(graph)))
    assert result.bound <= result.peak == result.initial_peak


def test_an_empty_network_has_an_order() -> None:
    program = Program((Step(writes=(0,)), Step(reads=(0,))), (5,))
    result = lowest(_network(program))
    assert (result.order.tolist(), result.peak, result.bound) == ([], 5, 5)


def test_two_branches_that_grow_and_shrink_run_one_after_the_other() -> None:
    """The input has 1 byte, each branch grows to 10 and ends with 1; in the first order both grow at first."""
    steps = [Step((0,), (1,)), Step((0,), (2,)), Step((1,), (3,)), Step((2,), (4,)), Step((3, 4), (5,))]
    program = Program((Step(writes=(0,)), *steps, Step(reads=(5,))), (1, 10, 10, 1, 1, 1))
    result = lowest(_network(program))
    assert result.order.tolist() == [0, 2, 1, 3, 4]
    assert (result.initial_peak, result.peak, result.bound) == (
        21,
        12,
        12,
    )  # 10, the input and the output of the first branch


def test_an_overwrite_counts_once_and_only_where_its_input_ends() -> None:
    """Steps 1 and 2 read the input; only the last of them can be written over it."""
    over, copy = Step((0,), (1,), (), (OverwriteForward(1, 0),)), Step((0,), (2,))
    program = Program((Step(writes=(0,)), over, copy, Step(reads=(1, 2))), (8, 8, 2))
    result = lowest(_network(program))
    assert result.order.tolist() == [1, 0]
    assert (result.initial_peak, result.peak) == (18, 10)


@pytest.mark.slow
def test_compiled_order_search_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    nets = [_network(build(seeded(seed), 25)) for seed in range(8)]
    plain = [lowest(graph) for graph in nets]
    monkeypatch.setattr(search, "_PLAIN", 0)
    for graph, one in zip(nets, plain, strict=True):
        other = lowest(graph)
        assert (one.order.tolist(), one.peak, one.bound, one.tried) == (
            *(other.order.tolist(), other.peak),
            *(other.bound, other.tried),
        )


@pytest.mark.slow
def test_no_order_of_many_small_programs_is_better() -> None:
    for seed in range(80):
        program = build(seeded(seed), 7, sizes=1 + seed % 30)
        graph = _network(program)
        result = lowest(graph)
        _check(program, graph, result)
        assert result.is_proved and result.peak == _best(program, graph), seed


def _wide(branches: int) -> Program:
    """Returns a program of branches that grow and shrink, and the sum of all of them."""
    steps = [Step(writes=(0,))]
    for i in range(branches):
        steps += [Step((0,), (3 * i + 1,)), Step((3 * i + 1,), (3 * i + 2,)), Step((3 * i + 2,), (3 * i + 3,))]
    last = 3 * branches + 1
    steps.append(Step(tuple(range(3, last, 3)), (last,)))
    sizes = [8, *(n for i in range(branches) for n in (40 + i % 7, 40 + i % 7, 8)), 8]
    return Program((*steps, Step(reads=(last,))), tuple(sizes))


@pytest.mark.slow
@pytest.mark.parametrize("looks", [0, 100_000, 2_000_000])
def test_the_search_of_a_wide_network_ends_at_its_limit(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node that is tried enables runs in all branches, so that the count of those tried says little."""
    monkeypatch.setattr(limits, "LOOKS", looks)
    monkeypatch.setattr(search, "LEAST_LOOKS", 0)
    program = _wide(60)
    graph = _network(program)
    result = lowest(graph)
    _check(program, graph, result)
    assert result.peak > result.bound
    assert result.tried * 100 <= looks + 100 * len(graph)


@pytest.mark.slow
def test_order_search_with_nodes_ignores_its_default_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOKS", 0)
    monkeypatch.setattr(search, "LEAST_LOOKS", 0)
    assert lowest(_network(_wide(60)), Limits(nodes=2_000)).tried >= 2_000
