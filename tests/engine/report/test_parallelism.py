"""How much can run at once: worked by hand, and never more than threads and critical path allow."""

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator.policies import POLICIES
from engine import ExecutionPlan, Graph
from engine.lower.schedule import BARRIER
from engine.report.parallelism import parallelism, predicted_seconds
from engine.system.timing import Timing
from tests.helpers.graphs.random_graphs import graphs


def _diamond() -> Graph:
    """Returns x -> a -> (b, c) -> d, where b is a chain of two."""
    graph = Graph("diamond")
    a = ops.relu(graph.input("x", (8,)))
    graph.output(ops.add(ops.tanh(ops.neg(a)), ops.abs(a)), "y")
    return graph


def _timings(plan: ExecutionPlan, seconds: float) -> list[Timing]:
    return [Timing(c.tick, 0, c.tick * seconds, (c.tick + 1) * seconds) for c in plan.lowered.calls]


def test_parallelism_of_five_calls_on_a_critical_path_of_four() -> None:
    measured = parallelism(engine.make_plan(_diamond(), parallel="exact", optimise=0))
    assert (measured.calls, measured.critical_calls) == (5, 4)
    assert measured.by_count == 5 / 4
    assert measured.critical_cost < measured.cost


def test_parallelism_of_a_sequence_is_one() -> None:
    measured = parallelism(engine.make_plan(_diamond(), optimise=0))
    assert (measured.by_count, measured.by_cost) == (1, 1)


def test_two_threads_save_one_of_five_calls_and_more_threads_save_no_more() -> None:
    plan = engine.make_plan(_diamond(), parallel="exact", optimise=0)
    seconds = [predicted_seconds(plan, _timings(plan, 1.0), threads) for threads in (1, 2, 8)]
    assert seconds == [5, 4, 4]


@settings(max_examples=20)
@given(graphs(), st.sampled_from(POLICIES), st.integers(1, 4))
def test_no_prediction_beats_the_critical_path_nor_all_threads_at_work(graph: Graph, policy: str, threads: int) -> None:
    plan = engine.make_plan(graph, parallel=policy, optimise=0)
    measured, predicted = parallelism(plan), predicted_seconds(plan, _timings(plan, 1.0), threads)
    assert max(measured.critical_calls, measured.calls / threads) <= predicted <= measured.calls
    assert measured.by_count >= 1 or not measured.calls


def test_barriers_cost_nothing_themselves() -> None:
    graph = Graph("wide")
    x = graph.input("x", (8,))
    graph.output(ops.concat([ops.tanh(ops.neg(x)), ops.abs(ops.relu(x))], axis=0), "y")
    plan = engine.make_plan(graph, parallel="levels", optimise=0)
    assert BARRIER in plan.schedule.tick
    assert parallelism(plan).critical_calls == 3
    assert predicted_seconds(plan, _timings(plan, 1.0), 2) == 3
    assert parallelism(evolve(plan, schedule=engine.make_plan(graph, optimise=0).schedule)).by_count == 1
