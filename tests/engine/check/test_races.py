"""The race judge against all pairs of accesses, and against planted faults."""

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import ExecutionPlan, Graph, Var
from engine.check import check_races
from engine.check.happens_before import pasts
from engine.executor.arenas import new_arena
from engine.executor.static import StaticExecutor
from engine.lower.schedule import BARRIER, Schedule, by_data, in_sequence
from engine.text.errors import RaceError, ScheduleError
from tests.helpers.graphs.race_oracle import Oracle, one_afloat, random_schedule, reach, scrambled
from tests.helpers.graphs.random_graphs import THROUGH, Choose, build, graphs, seeded
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned

_MESSAGE = re.compile(
    r"(\S+) (reads|writes) '(.*)' and (\S+) (reads|writes) '(.*)': both touch bytes \[(\d+), (\d+)\) of "
    r"(the arena|caller '(.*)'), and neither waits for the other"
)
_KINDS = st.fixed_dictionaries({}, optional={"reuse": st.just(False), "overwrite": st.just(False)})


def _plan(
    graph: Graph, choose: Choose, *, reuse: bool = True, overwrite: bool = True, nest: bool = True
) -> ExecutionPlan:
    """Returns a sequential plan; some inputs and outputs are bound to arrays of the caller."""
    bound = tuple(name for name in dict.fromkeys((*graph.inputs, *graph.outputs)) if choose(4) == 0)
    return engine.make_plan(
        graph,
        strategy="pushdown",
        alignment=4,
        caller_buffers=bound,
        reuse=reuse,
        overwrite=overwrite,
        nest=nest,
        optimise=0,
    )


def _is_refused(plan: ExecutionPlan) -> bool:
    """Returns whether the judge refuses; then the message names two calls that race, and bytes on which they do."""
    try:
        check_races(plan)
    except RaceError as error:
        _check_message(plan, str(error))
        return True
    return False


def _check_message(plan: ExecutionPlan, message: str) -> None:
    match = _MESSAGE.fullmatch(message)
    assert match, message
    oracle, values = Oracle(plan), {v.name: v for v in plan.lowered.values}
    ticks = {call.name: call.tick for call in plan.lowered.calls}
    one, other = (plan.schedule.tick.tolist().index(ticks[name]) for name in match.group(1, 4))
    place = plan.places[values[match[6]].id]
    columns = oracle.column(place)
    assert oracle.races[one, other, columns[int(match[7])] : columns[int(match[8]) - 1] + 1].all()
    assert match[10] in (None, plan.lowered.values[place.owner].name)
    calls = {call.name: call for call in plan.lowered.calls}
    for name, verb, value in (match.group(1, 2, 3), match.group(4, 5, 6)):
        built = calls[name].outputs + calls[name].workspace
        assert values[value].id in (calls[name].inputs if verb == "reads" else built)


def _sources(seed: int) -> tuple[Graph, Choose]:
    choose = seeded(seed)
    return build(choose, 14), choose


@settings(max_examples=30)
@given(graphs(14), st.integers(0, 99), _KINDS)
def test_a_plan_that_runs_in_sequence_never_races(graph: Graph, seed: int, options: dict[str, bool]) -> None:
    plan = _plan(graph, seeded(seed), **options)
    assert not Oracle(plan).races.any()
    check_races(plan)


@settings(max_examples=30)
@given(graphs(14), st.integers(0, 99))
def test_data_alone_orders_calls_where_every_chunk_has_bytes_of_its_own(graph: Graph, seed: int) -> None:
    """Nothing is nested where operators run at once, so the judge looks at extents alone."""
    plan = _plan(graph, seeded(seed), reuse=False, overwrite=False, nest=False)
    check_races(evolve(plan, schedule=by_data(plan.lowered, "data")))


@settings(max_examples=30)
@given(graphs(14), st.integers(0, 99), _KINDS)
def test_a_sequential_plan_under_data_edges_is_refused_where_two_accesses_are_unordered(
    graph: Graph, seed: int, options: dict[str, bool]
) -> None:
    plan = _plan(graph, seeded(seed), **options)
    at_once = evolve(plan, schedule=by_data(plan.lowered, "data"))
    assert _is_refused(at_once) == Oracle(at_once).races.any()


@pytest.mark.slow
@settings(max_examples=100)
@given(graphs(12), st.data(), _KINDS)
def test_check_races_refuses_what_all_pairs_of_accesses_refuse(
    graph: Graph, data: st.DataObject, options: dict[str, bool]
) -> None:
    def choose(n: int) -> int:
        return data.draw(st.integers(0, n - 1))

    plan = _plan(graph, choose, **options)
    schedule = (random_schedule, one_afloat)[choose(2)](plan, choose)
    wild = evolve(scrambled(plan, choose) if choose(2) else plan, schedule=schedule)
    assert _is_refused(wild) == Oracle(wild).races.any()


def _verdicts(seed: int) -> list[bool]:
    """Returns whether the judge refuses plans that make sense, and one that makes none; it must be right about each."""
    graph, choose = _sources(seed)
    plan = _plan(graph, choose, overwrite=bool(choose(2)), reuse=bool(choose(5)))
    wild = scrambled(plan, choose)
    schedules = (by_data(plan.lowered, "data"), random_schedule(plan, choose), one_afloat(plan, choose))
    built = [*(evolve(plan, schedule=s) for s in schedules), evolve(wild, schedule=one_afloat(wild, choose))]
    return [_is_refused_rightly(p) for p in built]


def _is_refused_rightly(plan: ExecutionPlan) -> bool:
    refused = _is_refused(plan)
    assert refused == Oracle(plan).races.any()
    return refused


@pytest.mark.slow
def test_random_plans_both_pass_and_fail_check_races() -> None:
    result = np.array([_verdicts(seed) for seed in range(200)]).mean(axis=0)
    assert (result >= 0.15).all() and (result <= 0.85).all(), result


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_check_races_agrees_with_all_pairs_on_many_plans(part: int) -> None:
    for seed in range(part * 300, part * 300 + 300):
        _verdicts(seed)


def _rearranged(plan: ExecutionPlan, choose: Choose) -> ExecutionPlan:
    """Returns the same calls in another order that the schedule allows: any node that waits for none is next."""
    waits, ticks = reach(plan.schedule), plan.schedule.tick.tolist()
    left, order = list(range(len(ticks))), list[int]()
    while left:
        free = [n for n in left if not waits[left, n].any()]
        order.append(free[choose(len(free))])
        left.remove(order[-1])
    calls = {call.tick: call for call in plan.lowered.calls}
    stages = tuple(calls[ticks[n]] for n in order if ticks[n] != BARRIER)
    return evolve(plan, lowered=evolve(plan.lowered, instructions=stages))


def test_plans_that_pass_check_races_give_the_same_bits_in_any_allowed_order() -> None:
    moved = 0
    for seed in range(150):
        graph, choose = _sources(seed)
        plan = _plan(graph, choose)
        plan = evolve(plan, schedule=random_schedule(plan, choose))
        if not _is_refused(plan):
            other, feeds = _rearranged(plan, choose), random_feeds(graph)
            moved += [c.tick for c in other.lowered.calls] != [c.tick for c in plan.lowered.calls]
            outcome = StaticExecutor(other, new_arena(other)).run(feeds, {}, copy=True)
            assert_same(outcome, run_unplanned(graph, feeds))
    assert moved >= 20


@given(st.integers(0, 10_000), st.integers(0, 12))
def test_the_past_of_a_node_is_all_that_paths_come_from(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.argwhere(np.triu(rng.random((count, count)) < rng.random(), 1))
    schedule = Schedule("random", np.arange(count), rows[:, 0], rows[:, 1])
    wanted = reach(schedule) | np.eye(count, dtype=bool)
    for node, past in enumerate(pasts(schedule)):
        assert past == 1 | sum(2 << int(n) for n in np.flatnonzero(wanted[:, node]))


def _chain(length: int) -> ExecutionPlan:
    graph = Graph()
    x = graph.input("x", (8,))
    for _ in range(length):
        x = ops.neg(x)
    graph.output(x, "y")
    return engine.make_plan(graph, overwrite=False, optimise=0)


def _without(schedule: Schedule, edges: list[int]) -> Schedule:
    return evolve(schedule, before=np.delete(schedule.before, edges), after=np.delete(schedule.after, edges))


@pytest.mark.parametrize("edge", range(5))
def test_every_edge_of_a_chain_matters(edge: int) -> None:
    plan = _chain(6)
    check_races(plan)
    with pytest.raises(RaceError, match=rf"neg_{edge} writes 'neg_{edge}' and neg_{edge + 1} reads 'neg_{edge}'"):
        check_races(evolve(plan, schedule=_without(plan.schedule, [edge])))


def test_a_barrier_orders_what_stands_before_it_and_what_stands_behind() -> None:
    graph = Graph()
    x = graph.input("x", (16,))
    one, other = ops.neg(x), ops.abs(x)
    graph.output(ops.add(ops.relu(one), ops.tanh(other)), "y")
    plan = engine.make_plan(graph, reuse=False, overwrite=False, optimise=0)
    edges = np.array([(0, 2), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5)])
    levels = Schedule("levels", [1, 2, BARRIER, 3, 4, 5], edges[:, 0], edges[:, 1])
    check_races(evolve(plan, schedule=levels))
    for edge in range(6):
        assert _is_refused(evolve(plan, schedule=_without(levels, [edge])))


def _moved(plan: ExecutionPlan, value: str, onto: str) -> ExecutionPlan:
    """Returns the plan with one value on the bytes of another."""
    value_of, places = {v.name: v.id for v in plan.lowered.values}, list(plan.places)
    layout = places[value_of[value]].layout
    places[value_of[value]] = evolve(
        places[value_of[value]], layout=evolve(layout, offset=places[value_of[onto]].layout.offset)
    )
    return evolve(plan, places=tuple(places))


def _two_readers(read: Callable[[Var], Var]) -> tuple[ExecutionPlan, ExecutionPlan]:
    """Returns a plan in which `tanh_0` takes the bytes of `neg_0` when the one reader is done, and when both are."""
    graph = Graph()
    value = ops.neg(graph.input("x", (4, 4)))
    slow = ops.relu(read(value))
    graph.output(ops.tanh(ops.abs(value)), "quick")
    graph.output(slow, "slow")
    plan = engine.make_plan(graph, reuse=False, overwrite=False, optimise=0)
    plan = _moved(evolve(plan, schedule=by_data(plan.lowered, "colour")), "tanh_0", onto="neg_0")
    node = {call.name: i for i, call in enumerate(plan.lowered.calls)}
    waits = evolve(
        plan.schedule,
        before=np.append(plan.schedule.before, node["relu_0"]),
        after=np.append(plan.schedule.after, node["tanh_0"]),
    )
    return plan, evolve(plan, schedule=waits)


def test_bytes_are_not_free_when_the_releasing_and_the_taking_call_have_one_colour() -> None:
    """The known trap of sharing in one colour: a reader of another colour may still be at it."""
    trapped, waits = _two_readers(lambda v: v)
    message = re.escape(
        "relu_0 reads 'neg_0' and tanh_0 writes 'tanh_0': both touch bytes [64, 128) of the arena, "
        "and neither waits for the other"
    )
    with pytest.raises(RaceError, match=message):
        check_races(trapped)
    check_races(waits)


def test_check_races_counts_readers_through_views() -> None:
    trapped, waits = _two_readers(lambda v: ops.slice(v, [2], [4], [0], [1]))
    with pytest.raises(RaceError, match=r"relu_0 reads 'slice_0' .* both touch bytes \[96, 128\) of the arena"):
        check_races(trapped)
    check_races(waits)


def test_workspaces_of_calls_that_run_at_once_lie_apart() -> None:
    graph = Graph()
    x = graph.input("x", (8,))
    for _ in range(2):
        graph.output(graph.add(THROUGH, [x])[0])
    plan = engine.make_plan(graph, reuse=False, overwrite=False, optimise=0)
    plan = evolve(plan, schedule=by_data(plan.lowered, "data"))
    check_races(plan)
    with pytest.raises(RaceError, match="through_0 writes 'through_0/workspace' and through_1 writes 'through_1/work"):
        check_races(_moved(plan, "through_1/workspace", onto="through_0/workspace"))


def test_an_array_of_the_caller_is_written_before_it_is_read() -> None:
    graph = Graph()
    graph.output(ops.neg(graph.input("x", (8,))), "y")
    graph.output(ops.abs(graph.outputs["y"]), "z")
    plan = engine.make_plan(graph, caller_buffers=("x", "y", "z"), optimise=0)
    check_races(plan)
    with pytest.raises(RaceError, match=r"both touch bytes \[0, 32\) of caller 'neg_0', and"):
        check_races(evolve(plan, schedule=_without(plan.schedule, [0])))


def test_calls_that_only_read_the_same_bytes_need_no_order() -> None:
    graph = Graph()
    x = graph.input("x", (8,))
    for name in "abc":
        graph.output(ops.neg(x), name)
    plan = engine.make_plan(graph, reuse=False, overwrite=False, optimise=0)
    check_races(evolve(plan, schedule=Schedule("none", plan.schedule.tick, [], [])))


_Broken = Callable[[Schedule], Schedule]
_BROKEN: dict[str, tuple[_Broken, str]] = {
    "two calls change places": (lambda s: evolve(s, tick=[2, 1, 3, 4]), "node of tick 1 stands behind that of tick 2"),
    "a call has two nodes": (lambda s: evolve(s, tick=[1, 2, 3, 3]), "node of tick 3 stands behind that of tick 3"),
    "a call has no node": (lambda s: evolve(s, tick=[1, 2, BARRIER, 4]), "no node calls neg_2 of tick 3"),
    "a node calls nothing": (lambda s: evolve(s, tick=[1, 2, 3, 9]), "a node of tick 9, at which nothing is called"),
    "an edge goes back": (lambda s: evolve(s, before=[0, 2, 2], after=[1, 1, 3]), "edge 1 goes from node 2 to node 1"),
    "a node waits for itself": (lambda s: evolve(s, before=[0, 1, 2], after=[0, 2, 3]), "from node 0 to node 0 of 4"),
    "an edge leads out": (lambda s: evolve(s, before=[0, 1, 3], after=[1, 2, 4]), "from node 3 to node 4 of 4"),
    "an edge comes from nowhere": (lambda s: evolve(s, before=[-1, 1, 2], after=[1, 2, 3]), "from node -1 to node 1"),
    "half an edge": (lambda s: evolve(s, before=[0, 1]), "2 nodes to wait for, but 3 that wait"),
}


@pytest.mark.parametrize("name", _BROKEN)
def test_check_races_refuses_an_invalid_schedule(name: str) -> None:
    plan, (broken, message) = _chain(4), _BROKEN[name]
    with pytest.raises(ScheduleError, match=message):
        check_races(evolve(plan, schedule=broken(plan.schedule)))


def test_calls_that_do_not_stand_in_the_order_of_their_ticks_are_refused() -> None:
    plan = _chain(3)
    turned = evolve(plan.lowered, instructions=plan.lowered.instructions[::-1])
    with pytest.raises(ScheduleError, match="the call of tick 2 stands behind that of tick 3"):
        check_races(evolve(plan, lowered=turned))


def test_a_graph_without_calls_has_nothing_to_race() -> None:
    graph = Graph()
    graph.output(graph.input("x", (8,)), "y")
    check_races(engine.make_plan(graph, optimise=0))


@pytest.mark.slow
@pytest.mark.parametrize("make", [in_sequence, partial(by_data, policy="data")])
def test_long_networks_with_one_value_that_all_read_are_judged(make: Callable[..., Schedule]) -> None:
    graph = Graph()
    first = ops.relu(graph.input("x", (4,)))
    result = first
    for _ in range(20_000):
        result = ops.add(result, first)
    graph.output(result, "y")
    plan = engine.make_plan(graph, reuse=False, overwrite=False, optimise=0)
    check_races(evolve(plan, schedule=make(plan.lowered)))
