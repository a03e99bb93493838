"""Computing values again to keep within a budget: equal bits, true numbers, and no more than is needed."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.api import make_plan
from engine.lower.lowering import lower
from engine.remat.check import check_again
from engine.remat.writing import write_again
from engine.text.errors import BudgetError, PassError
from ops.tensor.spec import Array
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.graphs.training_graphs import chain, random_training
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned

STEPS = 2
NODES = 100
"""Of searches for addresses, which are not what is tested here."""


@st.composite
def trained(draw: st.DrawFn, most: int = 14) -> Graph:
    return random_training(lambda n: draw(st.integers(0, n - 1)), most)


def _trained(graph: Graph, **options: object) -> dict[str, Array]:
    """Returns outputs and parameters after some steps."""
    exe = engine.compile(graph, nodes=NODES, optimise=0, **options)  # type: ignore[arg-type]
    for seed in range(STEPS):
        outcome = exe.run(random_feeds(graph, seed))
    return outcome | {f"parameter {n}": a for n, a in exe.parameters.items()}


def _smallest_budget(graph: Graph, budget: int) -> int:
    """Returns the budget, or what recomputing gets down to where that is more."""
    try:
        plan = make_plan(graph, budget=budget, nodes=NODES, optimise=0)
    except BudgetError as error:
        plain = make_plan(graph, nodes=NODES, optimise=0)
        assert error.required == plain.arena_bytes and error.available == budget
        assert error.excess == error.required - budget
        assert budget < error.least <= error.required
        assert not error.share or error.least < error.required
        return error.least
    assert plan.arena_bytes <= budget
    return budget


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(trained(), st.integers(20, 99))
def test_recomputed_values_have_the_same_bits_in_every_mode(graph: Graph, percent: int) -> None:
    _check_modes(graph, percent)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(trained(most=30), st.integers(10, 99))
def test_recomputed_values_have_the_same_bits_in_large_networks(graph: Graph, percent: int) -> None:
    _check_modes(graph, percent)


def _check_modes(graph: Graph, percent: int) -> None:
    plain = make_plan(graph, nodes=NODES, optimise=0)
    budget = _smallest_budget(graph, plain.arena_bytes * percent // 100)
    plan = make_plan(graph, budget=budget, nodes=NODES, optimise=0)
    wanted = _trained(graph)
    assert plan.arena_bytes <= budget
    for options in ({}, {"mode": "dynamic"}, {"debug": "poison", "budget": budget + 4096}):
        assert_same(_trained(graph, **({"budget": budget} | options)), wanted)


@settings(max_examples=15, deadline=None)
@given(trained())
def test_remat_recomputes_nothing_where_the_budget_holds(graph: Graph) -> None:
    plain = make_plan(graph, nodes=NODES, optimise=0)
    plan = make_plan(graph, budget=plain.arena_bytes, nodes=NODES, optimise=0)
    assert not plan.recomputed and plan.lowered.graph is graph
    assert not plan.report().recomputed and "not recomputed" not in plan.report().text()


@settings(max_examples=15, deadline=None)
@given(graphs(most=20), st.integers(30, 99), st.sampled_from(["given", "memory"]), st.booleans())
def test_remat_gives_the_same_bits_on_any_graph(graph: Graph, percent: int, order: str, overwrite: bool) -> None:
    options: dict[str, Any] = {"order": order, "overwrite": overwrite, "nodes": NODES}
    budget = make_plan(graph, optimise=0, **options).arena_bytes * percent // 100
    with suppress(BudgetError):
        feeds = random_feeds(graph)
        exe = engine.compile(graph, budget=budget, optimise=0, **options)
        assert exe.plan.arena_bytes <= budget
        assert_same(exe.run(feeds), run_unplanned(graph, feeds))


def test_remat_plans_are_deterministic() -> None:
    texts = set()
    for _ in range(2):
        graph = chain(12)
        plan = make_plan(graph, budget=make_plan(graph, optimise=0).arena_bytes * 6 // 10, optimise=0)
        texts.add(plan.lowered.graph.text() + str(plan.plan.offset.tolist()))
    assert len(texts) == 1


def test_remat_runs_a_chain_in_half_the_bytes() -> None:
    graph = chain(12)
    plain = make_plan(graph, optimise=0)
    exe = engine.compile(graph, budget=plain.arena_bytes // 2, optimise=0)
    (again,) = exe.plan.recomputed
    assert exe.graph is graph and list(exe.parameters) == [v.name for v in graph.parameters]
    assert again.plain_bytes == plain.arena_bytes and 0 < again.share < 1
    assert again.flops == exe.plan.report().flops - plain.report().flops
    assert all("/again" in name for name in again.operators)
    text, data = exe.report().text(), exe.report().to_json()
    assert f"{len(again.operators)} operators run again, {again.share:.1%} more operations" in text
    assert data["recomputed"][0]["share"] == again.share
    with pytest.raises(BudgetError) as caught:
        engine.compile(graph, budget=plain.arena_bytes // 2, recompute=False, optimise=0)
    assert caught.value.least == caught.value.required == plain.arena_bytes


def test_remat_says_how_far_it_gets_where_a_budget_cannot_be_met() -> None:
    graph = chain(12)
    with pytest.raises(BudgetError, match="The smallest arena found has") as caught:
        make_plan(graph, budget="200 KiB", optimise=0)
    error = caught.value
    assert error.available == 200 * 1024 < error.least < error.required
    assert error.share > 0
    (alive,) = re.findall(r"peak in tick .*: (\d+) B alive", str(error))
    assert int(alive) <= error.least  # of the plan that recomputes, not of the plain one
    assert make_plan(graph, budget=error.least, optimise=0).arena_bytes == error.least


def test_skips_of_a_network_that_is_only_run_forward_are_computed_again() -> None:
    """The upper levels of a U-Net wait for the way back; here what they hold is cheap to have again."""
    graph = Graph("skips")
    x = graph.input("x", (1, 4096))
    y, skips = x, list[engine.Var]()
    for _ in range(4):
        skips.append(ops.tanh(x * float(len(skips) + 2)))
        y = y + ops.sigmoid(skips[-1])
    for skip in reversed(skips):
        y = y * skip
    graph.output(y, "y")
    plain = make_plan(graph, optimise=0)
    exe = engine.compile(graph, budget=plain.arena_bytes * 3 // 4, optimise=0)
    feeds = random_feeds(graph)
    assert exe.plan.recomputed
    assert_same(exe.run(feeds), run_unplanned(graph, feeds))


@pytest.mark.parametrize("option", [{"parallel": "exact"}, {"reuse": False}])
def test_plans_that_recomputing_does_not_help_are_left_alone(option: dict[str, Any]) -> None:
    graph = chain(6)
    plain = make_plan(graph, optimise=0, **option)
    with pytest.raises(BudgetError) as caught:
        make_plan(graph, budget=plain.arena_bytes // 2, optimise=0, **option)
    assert caught.value.least == plain.arena_bytes and not caught.value.share


def _run_again(reads: str) -> tuple[Graph, Graph]:
    """Returns y = z = exp(tanh(x)), and the same with a second exponential for z, perhaps of something else."""
    before, after = Graph("g"), Graph("g")
    ops.exp(ops.tanh(before.input("x", (4,))))
    expected = {"x": after.input("x", (4,))}
    tanh, exp = before.operators
    for op, source, name in ((tanh, "x", "tanh_0"), (exp, "tanh_0", "exp_0"), (exp, reads, "exp_0/again")):
        (expected[name],) = after.add_signed(op.schema, [expected[source]], op.signature, name, [name])
    for name, built in (("y", "exp_0"), ("z", "exp_0/again")):
        before.output(exp.outputs[0], name)
        after.output(expected[built], name)
    return before, after


def test_the_remat_judge_finds_recomputation_of_something_else() -> None:
    check_again(*_run_again("tanh_0"))
    with pytest.raises(PassError, match="output 'z' is computed in another way"):
        check_again(*_run_again("x"))


@settings(max_examples=15, deadline=None)
@given(trained(), st.data())
def test_the_remat_judge_finds_a_changed_input_anywhere(graph: Graph, data: st.DataObject) -> None:
    """One operator reads an input, a constant or a parameter of the same spec in place of what it read."""
    right = write_again(lower(graph), range(len(lower(graph).instructions) + 2))
    check_again(graph, right)
    wrong, changed = _with_one_input_changed(right, lambda n: data.draw(st.integers(0, n - 1)))
    if changed:
        with pytest.raises(PassError):
            check_again(graph, wrong)


def _with_one_input_changed(graph: Graph, choose: Callable[[int], int]) -> tuple[Graph, bool]:
    built, changed = Graph(graph.name), False
    expected = {v: built.input(n, v.shape, v.dtype) for n, v in graph.inputs.items()}
    expected |= {v: built.add_constant(v.name, v.spec, a) for v, a in graph.constants.items()}
    expected |= {v: built.parameter(p.initial, v.name, trainable=p.trainable) for v, p in graph.parameters.items()}
    sources, target = tuple(expected.values()), choose(len(graph.operators))
    for i, op in enumerate(graph.operators):
        inputs = [expected[v] for v in op.inputs]
        others = [v for v in sources if v.spec == inputs[0].spec and v is not inputs[0]]
        if i == target and others:
            inputs[0], changed = others[choose(len(others))], True
        names = [v.name for v in op.outputs]
        expected.update(zip(op.outputs, built.add_signed(op.schema, inputs, op.signature, op.name, names), strict=True))
    for name, var in graph.outputs.items():
        built.output(expected[var], name)
    for parameter, value in graph.updates.items():
        built._updates[expected[parameter]] = expected[value]  # as it is, with no operator in front of it
    return built, changed
