"""Checks that explanations are true: each number and each reason is derived again from the calls of the plan."""

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator import bounds
from allocator.check.offsets import check
from allocator.derive import chunks as memory
from allocator.solvers import solve
from engine import ExecutionPlan, Graph, Var, zoo
from engine.explain.accesses import accesses_of
from engine.explain.alternatives import NODES, Alternative
from engine.explain.names import UnknownNameError
from engine.explain.overwrites import NOT_MEASURED, Forward, forwards_of, is_counterfactual, saving, with_overwrite
from engine.lower.steps import to_program
from engine.passes.pipeline import optimise
from engine.planning.options import CASCADE_PERCENT
from engine.text.units import format_bytes
from ops.registry import find
from tests.engine.passes.cascade.random_chains import large_images
from tests.helpers.graphs.perceptrons import perceptron
from tests.helpers.graphs.plan_facts import holds, owner, reads
from tests.helpers.graphs.random_graphs import graphs, seeded
from tests.helpers.graphs.training_graphs import chain, random_training

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"overwrite": False},
    {"nest": False, "padding": 32},
    {"views": False, "alignment": 16},
    {"reuse": False},
    {"parallel": "exact"},
    {"parallel": "levels"},
    {"parallel": "colour:2"},
    {"parallel": "edges"},
    {"strategy": "naive"},
    {"caller_buffers": ("x0", "y0")},
)


def planned(graph: Graph, options: dict[str, Any]) -> ExecutionPlan:
    return engine.make_plan(graph, nodes=100, optimise=0, **options)


def declared(plan: ExecutionPlan) -> list[Forward]:
    accesses = accesses_of(plan)
    return [f for call in plan.lowered.calls for f in forwards_of(accesses, call)]


@settings(max_examples=20)
@given(graphs(), st.sampled_from(OPTIONS))
def test_explained_parts_add_up_to_the_arena(graph: Graph, options: dict[str, Any]) -> None:
    plan = planned(graph, options)
    explanation, report = plan.explain(), plan.report()
    assert sum(part.bytes for part in explanation.parts) == explanation.arena_bytes == plan.arena_bytes
    assert sum(part.tensors for part in explanation.parts) == len(explanation.alive) == len(report.peak_tensors)
    assert sum(a.bytes + a.padding for a in explanation.alive) == explanation.peak_bytes == report.peak_bytes
    assert (explanation.peak_tick, explanation.peak_operator) == (report.peak_tick, report.peak_operator)
    assert [(a.tensor, a.role) for a in explanation.alive] == [(t.name, t.role) for t in report.peak_tensors]
    assert str(explanation) and json.dumps(explanation.to_json())


@settings(max_examples=20)
@given(graphs(), st.sampled_from([o for o in OPTIONS if "parallel" not in o and "reuse" not in o]))
def test_explain_gives_true_reasons_for_live_tensors(graph: Graph, options: dict[str, Any]) -> None:
    plan = planned(graph, options)
    explanation = plan.explain()
    last = len(plan.lowered.instructions) + 1
    for alive in explanation.alive:
        uses = sorted(set(reads(plan, owner(plan, alive.tensor))))
        later = sorted({tick for tick, _ in uses if tick > explanation.peak_tick})
        assert alive.later_readers == len(later)
        assert [u.tick for u in alive.next] == later[:1]
        assert alive.wait == (later[0] - explanation.peak_tick if later else 0)
        assert alive.fetched == any(tick == last for tick, _ in uses)
        assert [u.tick for u in alive.last] == [tick for tick, _ in uses][-1:]
        is_read = any(tick == explanation.peak_tick for tick, _ in uses)
        if 0 < explanation.peak_tick < last:
            assert (alive.need == "read") == is_read
            assert alive.need != "held" or (later and alive.written < explanation.peak_tick)


@settings(max_examples=40)
@given(graphs(), st.sampled_from(OPTIONS))
def test_every_reason_why_an_overwrite_is_not_taken_is_a_fact(graph: Graph, options: dict[str, Any]) -> None:
    plan = planned(graph, options)
    for forward in declared(plan):
        assert holds(plan, forward), forward


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_overwrite_refusals_are_facts_where_parameters_are_updated(seed: int) -> None:
    plan = planned(random_training(seeded(seed)), {})
    for forward in declared(plan):
        assert holds(plan, forward), forward


def test_explained_roles_in_training_are_those_of_the_report() -> None:
    plan = planned(perceptron(3, 8, engine.Adam(), "float32"), {})
    explanation, report = plan.explain(), plan.report()
    assert [(a.tensor, a.role) for a in explanation.alive] == [(t.name, t.role) for t in report.peak_tensors]
    assert {part.what for part in explanation.parts} >= {"parameter", "optimiser state"}
    state = next(a for a in explanation.alive if a.role == "optimiser state" and not a.written)
    assert "It is kept from run to run." in str(plan.explain(tensor=state.tensor))


def test_images_in_stripes_are_advised_with_what_they_cost() -> None:
    graph = large_images()
    plan = engine.make_plan(graph, nodes=NODES)
    (stripes,) = (each for each in plan.explain().advised.tried if each.options == {"cascade": CASCADE_PERCENT})
    assert stripes.saves > plan.arena_bytes * 4 // 10
    assert stripes.note.endswith("% more operations")
    assert engine.make_plan(graph, nodes=NODES, cascade=CASCADE_PERCENT).arena_bytes == stripes.arena_bytes


@settings(max_examples=20)
@given(graphs(), st.sampled_from(({}, {"nest": False}, {"padding": 16})))
def test_explained_overwrite_savings_equal_a_plan_with_the_overwrite(graph: Graph, options: dict[str, Any]) -> None:
    plan = planned(graph, options)
    for forward in declared(plan):
        if is_counterfactual(plan, forward):
            problem = with_overwrite(plan, forward)
            solution = solve(problem, nodes=1000)
            assert check(problem, solution.offset, solution.arena_bytes) is None
            assert saving(plan, forward) == max(plan.arena_bytes - solution.arena_bytes, 0)


@settings(max_examples=20)
@given(graphs())
def test_a_counterfactual_program_has_no_later_readers(graph: Graph) -> None:
    """Without the later reads, what decides about overwrites takes the one that was refused."""
    plan = planned(graph, {"alignment": 1})
    wishes = [f for f in declared(plan) if f.reason == "later" and is_counterfactual(plan, f)]
    assume(wishes)
    forward, program = wishes[0], to_program(plan.lowered, plan.ids)
    chunk_of = plan.chunks.chunk_of
    steps = tuple(
        evolve(
            step,
            reads=tuple(v for v in step.reads if tick <= forward.tick or chunk_of[v] != forward.input_chunk),
            overwrites=tuple(
                o for o in step.overwrites if tick <= forward.tick or chunk_of[o.src] != forward.input_chunk
            ),
        )
        for tick, step in enumerate(program.steps)
    )
    chunks = memory.derive(evolve(program, steps=steps))
    pairs = set(zip(chunks.src.tolist(), chunks.dest.tolist(), strict=True))
    before = set(zip(plan.chunks.src.tolist(), plan.chunks.dest.tolist(), strict=True))
    assume(pairs == before | {(forward.output_chunk, forward.input_chunk)})
    problem = with_overwrite(plan, forward)
    assert (chunks.begin == problem.begin).all() and (chunks.end == problem.end).all()
    assert (chunks.size == problem.size).all()
    edges = [sorted(zip(p.src, p.dest, p.overwrite_offset, strict=True)) for p in (chunks, problem)]
    assert edges[0] == edges[1]


def done_again(alternative: Alternative, graph: Graph, options: dict[str, Any]) -> ExecutionPlan:
    """Returns the plan of a user who follows the advice."""
    other = dict(alternative.options)
    return engine.make_plan(optimise(graph, other.pop("optimise", 0)), optimise=0, **options | other)


@settings(max_examples=20)
@given(graphs(), st.sampled_from([o for o in OPTIONS if o.get("parallel") in (None, "exact")]))
def test_explained_alternatives_equal_their_plans(graph: Graph, options: dict[str, Any]) -> None:
    options = {**options, "nodes": NODES}
    plan = engine.make_plan(graph, optimise=0, **options)
    advised = plan.explain().advised
    assert not advised.left_out
    for alternative in advised.tried:
        assert alternative.saves == plan.arena_bytes - alternative.arena_bytes
        if alternative.saves > 0 or "budget" not in alternative.options:
            assert done_again(alternative, graph, options).arena_bytes == alternative.arena_bytes


@settings(max_examples=20)
@given(graphs(), st.sampled_from(({}, {"nest": False, "order": "memory"}, {"overwrite": False}, {"padding": 16})))
def test_no_change_to_the_tensors_at_the_peak_goes_below_the_other_peak(graph: Graph, options: dict[str, Any]) -> None:
    """Not even if they had no bytes: that is what is alive in a tick without them, each byte counted once."""
    plan = planned(graph, options)
    explanation, problem = plan.explain(), plan.problem
    gone = {a.chunk for a in explanation.alive}
    under = dict(zip(problem.src.tolist(), problem.dest.tolist(), strict=True))

    def alive(tick: int) -> int:
        lives = [c for c in range(len(problem)) if c not in gone and problem.begin[c] <= tick < problem.end[c]]
        over = {c for c in lives if under.get(c) in lives}  # in the tick in which it is written over it
        return sum(int(problem.size[c]) for c in lives if c not in over)

    most = [alive(tick) for tick in range(explanation.last_tick + 1)]
    assert explanation.other_peak.bytes == max(most) <= plan.arena_bytes
    assert most[explanation.other_peak.tick] == explanation.other_peak.bytes
    assert explanation.other_peak.most_saved == plan.arena_bytes - explanation.other_peak.bytes


@settings(max_examples=20)
@given(graphs(), st.sampled_from(OPTIONS))
def test_every_tensor_and_operator_has_an_explanation(graph: Graph, options: dict[str, Any]) -> None:
    plan = planned(graph, options)
    for value in plan.lowered.values:
        explanation = plan.explain(tensor=value.name)
        uses = sorted(set(reads(plan, value.owner))) if value.id in plan.ids else []
        assert explanation.bytes == value.spec.nbytes and (explanation.chunk >= 0) == (value.id in plan.ids)
        assert sorted({(u.tick, u.tensor) for u in explanation.holders}) == uses or value.id not in plan.ids
        assert str(explanation) and json.dumps(explanation.to_json())
    profile = bounds.profile(plan.problem)
    for stage in plan.lowered.instructions:
        operator = plan.explain(operator=stage.name)
        assert operator.tick == stage.tick and operator.live_bytes == sum(profile[stage.tick : stage.tick + 1])
        assert sum(a.bytes + a.padding for a in operator.alive) == operator.live_bytes
        assert str(operator) and json.dumps(operator.to_json())
    assert plan.explain(operator="feed").tick == 0
    assert plan.explain(operator="fetch").tick == len(plan.lowered.instructions) + 1


def test_neighbours_lie_next_to_a_tensor_while_it_is_alive() -> None:
    plan = engine.make_plan(zoo.squeezenet(image=64), optimise=0)
    for value in plan.lowered.values:
        explanation = plan.explain(tensor=value.name)
        for near in explanation.below:
            assert near.offset + near.bytes + near.gap == plan.plan.offset[explanation.chunk]
            assert near.begin < explanation.end and explanation.begin < near.end
        for near in explanation.above:
            assert near.offset - near.gap == plan.plan.offset[explanation.chunk] + plan.problem.size[explanation.chunk]
            assert near.begin < explanation.end and explanation.begin < near.end


def residual() -> Graph:
    """Returns y = tanh(x) + x: tanh may write over x, which is read later."""
    graph = Graph("residual")
    x = graph.input("x", (256,))
    graph.output(added(graph, "join", "add", added(graph, "squash", "tanh", x), x), "y")
    return graph


def added(graph: Graph, name: str, kind: str, *inputs: Var) -> Var:
    """Returns an operator and its output, both of that name."""
    (out,) = graph.add(find(kind), inputs, name=name, output_names=[name])
    return out


def test_a_residual_connection_by_hand() -> None:
    plan = engine.make_plan(residual(), optimise=0)
    explanation = plan.explain()
    (refused,) = [f for f in explanation.refused if f.output == "squash"]
    assert (refused.reason, [u.operator for u in refused.readers]) == ("later", ["join"])
    assert refused.saves == 1024
    text = str(explanation)
    assert "residual: the arena has 2.00 KiB (2048 bytes)" in text
    assert "squash (1.00 KiB) is not written over x: x is read later, by join (add) in tick 2" in text
    assert "with the overwrite, the arena would be 1.00 KiB smaller" in text
    assert "may write squash over x: it does not" in str(plan.explain(operator="squash"))


def test_a_name_that_there_is_not_is_told_with_the_nearest_ones() -> None:
    plan = engine.make_plan(residual(), optimise=0)
    with pytest.raises(UnknownNameError, match="has no tensor 'squish'; did you mean 'squash'"):
        plan.explain(tensor="squish")
    with pytest.raises(UnknownNameError, match="has no operator 'jion'; did you mean 'join'"):
        plan.explain(operator="jion")


HOSTILE = ('"', "<script>alert(1)</script>", "a\nb", "\ud800", "x" * 10_000, "\x1b[31m", "{}", "%s", "\u202e", " ")


@pytest.mark.parametrize("name", HOSTILE)
def test_explanations_keep_names_on_their_line(name: str) -> None:
    graph = Graph(name)
    x = graph.input(name, (4,))
    graph.output(added(graph, name + "2", "add", added(graph, name + "1", "neg", x), x), name)
    plan = engine.make_plan(graph, optimise=0)
    for text in (str(plan.explain()), str(plan.explain(tensor=name)), str(plan.explain(operator=name + "1"))):
        assert all(c.isprintable() or c == "\n" for c in text)
        assert max(map(len, text.splitlines())) < 500
        text.encode()
    with pytest.raises(UnknownNameError) as error:
        plan.explain(tensor=name + "?")
    assert "\n" not in str(error.value) and len(str(error.value)) < 600
    json.loads(json.dumps(plan.explain().to_json()))


def test_a_graph_that_computes_nothing_has_an_arena_of_its_inputs() -> None:
    graph = Graph("nothing")
    graph.output(graph.input("x", (0,)), "y")
    assert "has 0 B (0 bytes): nothing is computed that needs any" in str(engine.make_plan(graph, optimise=0).explain())
    graph = Graph("through")
    graph.output(graph.input("x", (4,)), "y")
    assert "an input, fed before anything runs" in str(engine.make_plan(graph, optimise=0).explain())


def test_a_plan_that_computes_again_says_so() -> None:
    graph = chain(12)
    plain = engine.make_plan(graph, optimise=0)
    plan = engine.make_plan(graph, budget=plain.arena_bytes * 9 // 10, optimise=0)
    assert plan.recomputed
    text = str(plan.explain())
    assert f"Kept within the budget: {plan.recomputed[0].text}; without it, the arena has " in text
    assert f" has {format_bytes(plain.arena_bytes)}." in text
    assert "Not tried: other ways to plan, as values are computed again for the budget" in text


def test_a_network_too_large_is_not_planned_again() -> None:
    graph = Graph("long")
    x = graph.input("x", (4,))
    for _ in range(2_001):
        x = ops.neg(x)
    graph.output(x, "y")
    assert "Not tried: other ways to plan, as there are 2001 operators" in str(
        engine.make_plan(graph, optimise=0).explain()
    )


def test_explanations_say_what_was_not_measured() -> None:
    assert NOT_MEASURED < 0


def test_an_explanation_says_what_proves_the_bound_and_what_is_copied() -> None:
    """Inputs of a graph cannot be computed inside the output of a concatenation."""
    graph = Graph("copied")
    x, y = graph.input("x", (2, 4)), graph.input("y", (2, 4))
    joined: Var = ops.concat([x, y], axis=0)
    graph.output(ops.relu(joined), "z")
    plan = engine.make_plan(graph, optimise=0)
    explanation = plan.explain()
    assert explanation.bound_reason == plan.plan.bound.reason
    assert f"The bound is proved by: {plan.plan.bound.reason}." in explanation.text()
    concat = next(op.name for op in graph.operators if op.schema.name == "concat")
    assert f"  {concat}: no input can be computed inside the output\n" in explanation.text()
    assert [row["operator"] for row in explanation.to_json()["not_nested"]] == [concat]
