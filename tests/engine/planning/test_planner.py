"""Limits of the search, and what a budget does to a plan."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from allocator.memories.assign import assign
from allocator.memories.problem import MemoryProblem
from allocator.problem import FREE, NO_CAPACITY, Problem, Status
from allocator.solvers import solve
from allocator.solvers.base import NO_NODES
from engine import Graph
from engine.planning.options import Options
from engine.planning.solving import solve_problem
from engine.text.errors import BudgetError, OptionError
from engine.text.units import parse_seconds
from engine.zoo import squeezenet
from tests.helpers.allocator.strategies import problems
from tests.helpers.graphs.random_graphs import graphs

NODES = 300


@settings(max_examples=30, deadline=None)
@given(problems(), st.sampled_from(["best", "pushdown", "naive"]), st.data())
def test_a_budget_makes_no_plan_larger_and_leaves_one_that_fits_as_it_is(
    problem: Problem, strategy: str, data: st.DataObject
) -> None:
    options = Options(strategy=strategy, nodes=NODES)
    free = solve_problem(problem, options, NO_CAPACITY)
    budget = data.draw(st.integers(0, free.arena_bytes + 1))
    held = solve_problem(problem, options, budget)
    assert held.arena_bytes <= free.arena_bytes and held.lower_bound >= free.lower_bound
    if free.arena_bytes <= budget:
        assert held.offset.tolist() == free.offset.tolist() and held.status is free.status
    elif held.arena_bytes > budget:
        assert held.status is (Status.INFEASIBLE if held.lower_bound > budget else Status.UNKNOWN)


def test_a_budget_is_the_goal_of_a_second_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def recorded(problem: Problem, *_: object, **limits: Any) -> Any:
        asked.append(limits)
        return solve(problem, "naive")

    monkeypatch.setattr("engine.planning.solving.solvers.solve", recorded)
    problem = Problem([0, 2], [1, 3], [10, 10], [1, 1], [FREE, FREE])
    for budget, capacities in ((20, [NO_CAPACITY]), (15, [NO_CAPACITY, 15]), (9, [NO_CAPACITY])):
        asked.clear()
        plan = solve_problem(problem, Options(nodes=7), budget)
        assert [limits["capacity"] for limits in asked] == capacities
        assert all(limits["nodes"] == 7 and limits["seconds"] == math.inf for limits in asked)
        assert (plan.arena_bytes, plan.capacity) == (20, budget)
    asked.clear()
    solve_problem(problem, Options(timeout=0), 15)
    assert [limits["seconds"] for limits in asked] == [0], "no time is left for a second one"


def products() -> Graph:
    """Returns three products in a row: two of four tensors live at once, and naive planning keeps all four."""
    graph = Graph("products")
    weights = np.ones((16, 16), np.float32)
    graph.output(graph.input("x", (16, 16)) @ weights @ weights @ weights)
    return graph


def test_the_message_says_whether_a_smaller_plan_may_exist() -> None:
    least, most = (engine.make_plan(products(), strategy=s, optimise=0).arena_bytes for s in ("best", "naive"))
    assert least < most
    with pytest.raises(BudgetError, match="proved: no plan of these calls in this order fits") as proved:
        engine.make_plan(products(), budget=least - 1, optimise=0)
    assert proved.value.lower_bound == proved.value.required == least
    with pytest.raises(BudgetError, match=r"a smaller plan may exist: .*--timeout") as open_:
        engine.make_plan(products(), budget=most - 1, strategy="naive", optimise=0)
    assert open_.value.lower_bound == least < open_.value.available


@settings(max_examples=12, deadline=None)
@given(graphs())
def test_planning_is_deterministic_for_a_number_of_nodes(graph: Graph) -> None:
    one, other = (engine.make_plan(graph, nodes=NODES, strategy="exact", seed=3, optimise=0).plan for _ in range(2))
    assert one.offset.tolist() == other.offset.tolist()


def test_planner_limits_reach_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def recorded(problem: Problem, strategy: str, seed: int, **limits: Any) -> Any:
        asked.append({"strategy": strategy, "seed": seed, **limits})
        return solve(problem)

    monkeypatch.setattr("engine.planning.solving.solvers.solve", recorded)
    monkeypatch.setattr("engine.planning.deadline.time", SimpleNamespace(monotonic=lambda: 0.0))
    engine.make_plan(products(), optimise=0)
    engine.compile(products(), strategy="exact", seed=5, timeout="500ms", nodes=12, optimise=0)
    free = {"capacity": NO_CAPACITY, "seconds": math.inf, "nodes": NO_NODES}
    assert asked == [
        {"strategy": "best", "seed": 0} | free,
        {"strategy": "exact", "seed": 5} | free | {"seconds": 0.5, "nodes": 12},
    ]


@pytest.mark.parametrize("options", [{}, {"order": "memory"}, {"memories": ["sram=16MiB,1GB/s"]}], ids=str)
def test_orders_nestings_and_memories_share_the_time(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    asked = [0.0]

    def solved(problem: Problem, *_: Any, seconds: float, **__: Any) -> Any:
        asked.append(seconds)
        return solve(problem, "naive")

    def assigned(problem: MemoryProblem, *_: Any, seconds: float, **__: Any) -> Any:
        asked.append(seconds)
        return assign(problem, "naive")

    monkeypatch.setattr("engine.planning.solving.solvers.solve", solved)
    monkeypatch.setattr("engine.planning.memories.choose.assign", assigned)
    monkeypatch.setattr("engine.planning.deadline.time", SimpleNamespace(monotonic=lambda: sum(asked)))
    plan = engine.make_plan(squeezenet(image=32), timeout=8_000, optimise=0, **options)
    assert len(asked) > 2 and sum(asked) == pytest.approx(8_000)
    assert plan.options.timeout == 8_000


@pytest.mark.parametrize("timeout", [0, 0.5, "10s", math.inf])
def test_a_timeout_of_any_kind_gives_a_plan(timeout: float | str) -> None:
    assert engine.make_plan(products(), timeout=timeout, optimise=0).plan.status is Status.OPTIMAL


@pytest.mark.parametrize("wrong", [-1, math.nan, "soon", "", True, None, "-1s", "1 day"])
def test_a_timeout_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(OptionError, match=r"no duration|no number of seconds"):
        engine.make_plan(products(), timeout=wrong, optimise=0)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many", True, None, NO_NODES + 1])
def test_nodes_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(OptionError, match=r"nodes .* is no integer from 1 to"):
        engine.make_plan(products(), nodes=wrong, optimise=0)


def test_durations_are_read() -> None:
    read = {text: parse_seconds(text) for text in ("500ms", "10s", " 2 m ", "1h", "0", "1.5", 3)}
    assert list(read.values()) == [0.5, 10, 120, 3600, 0, 1.5, 3]


def test_a_part_that_reductions_solve_needs_no_search() -> None:
    """Each of its chunks finds a place in any plan of 260 bytes, chains of overwrites among them."""
    chunks = [
        *((0, 2, 64), (1, 32, 1), (3, 9, 64), (4, 5, 64), (5, 7, 64), (6, 17, 1), (7, 8, 64), (8, 29, 1)),
        *((14, 17, 64), (15, 22, 64), (16, 18, 1), (17, 19, 1), (18, 32, 1), (19, 23, 64), (21, 22, 1), (22, 25, 1)),
        *((23, 24, 64), (24, 26, 1), (26, 27, 64), (27, 32, 64), (28, 30, 1), (29, 30, 1), (30, 31, 64)),
    ]
    src, dest = [1, 5, 7, 10, 11, 12, 14, 15, 17, 20, 21], [0, 4, 2, 8, 10, 11, 9, 13, 15, 7, 20]
    begin, end, alignment = zip(*chunks, strict=True)
    size = [8 if i == 16 else 4 for i in range(len(chunks))]
    problem = Problem(begin, end, size, alignment, [FREE] * len(chunks), src, dest, [0] * len(src))
    plan = solve(problem, "exact")
    assert (plan.arena_bytes, plan.status) == (260, Status.OPTIMAL)


@pytest.mark.parametrize("name", ["views", "overwrite", "reuse", "prepack", "nest"])
@pytest.mark.parametrize("value", ["no", None, 1])
def test_a_plan_option_switch_is_on_or_off(name: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{name} .* is neither True nor False"):
        Options(**{name: value})  # type: ignore[arg-type]
