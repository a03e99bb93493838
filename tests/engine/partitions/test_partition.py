"""Parts fit, send what they must, and no partition that fits sends less."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import zoo
from engine.graph.graph import Graph
from engine.partitions.partition import partition
from engine.partitions.parts import part_graph
from engine.planning.options import Options
from engine.planning.planner import plan_graph
from engine.text.errors import BudgetError, GraphError, OptionError, UndecidedError
from tests.helpers.graphs.branching import branching_graph


def _needs(graph: Graph, members: tuple[int, ...]) -> int:
    part = part_graph(graph, [graph.operators[i] for i in members], "part", is_last=False).graph
    if not part.outputs:
        return 0
    plan = plan_graph(part, Options(optimise=0))
    return plan.resident_weights_bytes + plan.arena_bytes


def _least_traffic(graph: Graph, capacities: tuple[int, ...]) -> float:
    """Returns the least bytes that are sent, of all partitions that fit, tried one by one."""
    operators = graph.operators
    maker = {var: i for i, op in enumerate(operators) for var in op.outputs}
    tried = []
    for part_of in itertools.product(range(len(capacities)), repeat=len(operators)):
        reads = {(v, part_of[i]) for i, op in enumerate(operators) for v in op.inputs if v in maker}
        if len(set(part_of)) < len(capacities) or any(part_of[maker[v]] > part for v, part in reads):
            continue
        tried.append((sum(v.spec.nbytes for v, part in reads if part_of[maker[v]] != part), part_of))
    for traffic, part_of in sorted(tried):
        members = [tuple(i for i, p in enumerate(part_of) if p == part) for part in range(len(capacities))]
        if all(_needs(graph, m) <= c for m, c in zip(members, capacities, strict=True)):
            return traffic
    return math.inf


def _check_best(graph: Graph, parts: int) -> None:
    plan = plan_graph(graph, Options(optimise=0))
    capacity = (plan.resident_weights_bytes // parts) + plan.arena_bytes + 1024
    best = _least_traffic(graph, (capacity,) * parts)
    if math.isinf(best):
        with pytest.raises((BudgetError, UndecidedError)):
            partition(graph, [capacity] * parts, optimise=0)
        return
    result = partition(graph, [capacity] * parts, optimise=0)
    assert result.value == result.traffic_bytes == best
    assert result.status == "optimal"


@pytest.mark.parametrize(("operators", "parts"), [(6, 2), (8, 2), (7, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_no_partition_that_fits_sends_less(seed: int, operators: int, parts: int) -> None:
    _check_best(branching_graph(seed, operators), parts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_no_partition_of_14_operators_that_fits_sends_less(seed: int) -> None:
    _check_best(branching_graph(seed, 14), 2)


@pytest.mark.parametrize("objective", ["traffic", "throughput"])
def test_parts_fit_and_their_sends_add_up(objective: str) -> None:
    result = partition(zoo.minilm(), ["70MiB"] * 3, objective)
    assert all(part.weights_bytes + part.arena_bytes <= part.capacity for part in result.parts)
    assert sum(send.nbytes for send in result.sends) == result.traffic_bytes
    assert all(send.maker < send.reader for send in result.sends)
    names = [name for part in result.parts for name in part.operators]
    assert sorted(names) == sorted(op.name for op in result.graph.operators)
    assert (
        result.bound <= result.value == (result.traffic_bytes if objective == "traffic" else max(result.part_seconds))
    )


def test_a_pipeline_is_faster_than_the_partition_that_sends_least() -> None:
    graph = zoo.minilm()
    fast, frugal = (partition(graph, ["90MiB"] * 2, objective) for objective in ("throughput", "traffic"))
    assert fast.speedup > 1.9
    assert max(fast.part_seconds) <= max(frugal.part_seconds)
    assert frugal.traffic_bytes <= fast.traffic_bytes


def _open() -> Graph:
    graph = Graph("open")
    graph.output(ops.relu(graph.input("x", ("n", 4))), "y")
    return graph


def _loop() -> Graph:
    graph = Graph("loop")
    x = graph.input("x", (4,))
    graph.output(engine.fori_loop(3, lambda _, carried: carried * 2.0, x), "y")
    return graph


def _training() -> Graph:
    graph = Graph("trained")
    weight = graph.parameter(np.ones((4, 4), np.float32), "weight")
    loss = ops.reduce_mean(graph.input("x", (2, 4)) @ weight, (0, 1))
    return engine.train_step(graph, loss, engine.SGD()).graph


def _small() -> Graph:
    graph = Graph("small")
    graph.output(ops.relu(graph.input("x", (4,))), "y")
    return graph


@pytest.mark.parametrize(
    ("graph", "asked", "error", "says"),
    [
        (_open(), {}, GraphError, "no parts before lengths are given for: n"),
        (_loop(), {}, GraphError, "has operators inside it"),
        (_training(), {}, GraphError, "'trained' trains"),
        (_small(), {}, OptionError, "has 1 operator, too few for 2 parts"),
        (_small(), {"capacities": []}, OptionError, "capacities are a list of sizes"),
        (_small(), {"capacities": "1MiB"}, OptionError, "capacities are a list of sizes"),
        (_small(), {"capacities": ["1 furlong"]}, OptionError, "'1 furlong' is no size"),
        (_small(), {"capacities": [-1]}, OptionError, "is no size"),
        (_small(), {"objective": "fame"}, OptionError, "objective 'fame' is unknown"),
        (_small(), {"bandwidth": 0}, OptionError, "sends nothing"),
        (_small(), {"padding": -1}, OptionError, "padding"),
        (_small(), {"ordre": "given"}, OptionError, "did you mean 'order'"),
        (_small(), {"capacities": [8]}, BudgetError, "part 1 of 1 needs at least"),
    ],
)
def test_what_cannot_be_cut_is_told(graph: Graph, asked: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as raised:
        partition(graph, **{"capacities": ["1MiB", "1MiB"], **asked})
    assert "\n" not in str(raised.value)


def test_a_part_that_fits_but_for_its_plan_is_named() -> None:
    graph = branching_graph(0, 4)
    plan = plan_graph(graph, Options(optimise=0))
    with pytest.raises(BudgetError, match=r"part 1 of 1 needs at least .*, 1 B more than its capacity"):
        partition(graph, [plan.resident_weights_bytes + plan.arena_bytes - 1], optimise=0)


def test_the_part_that_lacks_bytes_is_named_with_them() -> None:
    with pytest.raises(BudgetError, match="part 2 of 2 needs at least") as raised:
        partition(zoo.squeezenet(), ["1MiB", "2MiB"])
    assert raised.value.excess == raised.value.required - 2 * 2**20
    assert raised.value.required == raised.value.lower_bound
