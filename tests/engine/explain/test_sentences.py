"""Explanations of rare cases: nothing given back, no arena, one of a thing, updated parameters."""

import numpy as np
import pytest

import engine
import ops
from engine import Graph, zoo
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.training_graphs import chain


def test_an_alternative_that_a_strategy_cannot_plan_is_left_out() -> None:
    """One operator after the other, a plan of this strategy is made; at once and with reuse, it cannot be."""
    plan = engine.make_plan(zoo.lstm_classifier(), strategy="pushdown", reuse=False, parallel="exact", optimise=0)
    advised = plan.explain().advised
    (left,) = [text for text in advised.left_out if "pushdown" in text]
    assert left.startswith("bytes reused by one tensor after the other, as strategy 'pushdown' cannot plan that")
    assert any(alternative.options == {"parallel": ""} for alternative in advised.tried), "the others are tried"


def test_a_budget_that_another_order_meets_says_that_nothing_runs_again() -> None:
    plan = engine.make_plan(zoo.minilm(), budget=1_400_000, optimise=0)
    text = str(plan.explain())
    assert "Kept within the budget: in another order, nothing runs again; without it, the arena has " in text
    assert "Not tried: other ways" not in text


def test_explain_does_not_blame_live_tensors_for_a_much_larger_arena() -> None:
    text = str(engine.make_plan(zoo.lstm_classifier(), alignment=1 << 20, parallel="exact", optimise=0).explain())
    assert "though no more than " in text and "may be alive at once where operators run at once" in text
    text = str(engine.make_plan(zoo.lstm_classifier(), parallel="exact", optimise=0).explain())
    assert ", because " in text and "may be alive at once where operators run at once" in text


def test_explain_tries_all_strategies_for_the_cost_of_workspaces() -> None:
    plan = engine.make_plan(build(seeded(37)), views=False, optimise=0)
    assert "the arena would be at least 88 B smaller" in str(plan.explain())


def test_an_arena_of_no_bytes_is_one_paragraph() -> None:
    graph = Graph("nothing")
    graph.output(ops.relu(graph.input("x", (0,))), "y")
    assert str(engine.make_plan(graph, optimise=0).explain()) == (
        "nothing: the arena has 0 B (0 bytes): nothing is computed that needs any.\n"
    )


def test_an_output_that_is_a_view_names_it_once() -> None:
    graph = Graph("parts")
    x = graph.input("x", (4, 64))
    for i, part in enumerate(ops.split(ops.tanh(x), 2, axis=0)):
        graph.output(part, f"y{i}")
    graph.output(ops.neg(x), "z")
    text = str(engine.make_plan(graph, optimise=0).explain())
    assert "an output, so it stays to the end (as split_0" in text and "reads it as" not in text


def test_one_tensor_read_as_two_inputs_is_refused_once() -> None:
    graph = Graph("twice")
    x = graph.input("x", (64,))
    graph.output(ops.max(x, x), "y")
    graph.output(ops.tanh(x), "z")
    plan = engine.make_plan(graph, optimise=0)
    lines = str(plan.explain(operator="max_0")).splitlines()
    assert len([line for line in lines if line.startswith("  may write ")]) == 1


def test_a_part_that_is_copied_is_not_computed_in_place() -> None:
    graph = Graph("joined")
    x = graph.input("x", (8, 4))
    graph.output(ops.concat((x, ops.tanh(x)), axis=0), "y")
    plan = engine.make_plan(graph, optimise=0)
    assert plan.report().savings.nested.tensors == 1 == plan.report().savings.copies.tensors
    (joined,) = [a.joined for a in plan.explain().alive if a.joined]
    assert joined == 1
    assert "1 tensor is computed directly inside it" in str(plan.explain())
    assert "   1 input of a concatenation is written directly into its output\n" in str(plan.report())
    assert "   1 input is copied into place\n" in str(plan.report())


def test_without_reuse_no_tick_is_the_reason() -> None:
    graph = Graph("convolution")
    image = graph.input("x", (1, 3, 12, 12))
    graph.output(ops.relu(ops.conv2d(image, np.ones((4, 3, 3, 3), np.float32))), "y")
    plan = engine.make_plan(graph, reuse=False, overwrite=False, optimise=0)
    text = str(plan.explain())
    assert "because no bytes are reused: " in text and "stay from the first tick to the last." in text
    assert "scratch space of conv_0, for tick 1 alone\n" in text
    for wrong in ("not needed now", "read now", "never read", "Without any of these"):
        assert wrong not in text
    assert "not needed now" not in str(plan.explain(operator="feed"))


@pytest.mark.slow
def test_an_updated_parameter_is_whole() -> None:
    """A parameter's new value lies in its bytes: where the one is left out, so is the other."""
    graph = Graph("step")
    w = graph.parameter(np.ones(256, np.float32), "w")
    x = graph.input("x", (256,))
    graph.assign(w, w - x)
    graph.output(ops.reduce_sum(x), "y")
    plan = engine.make_plan(graph, optimise=0)
    assert not {"w", "sub_0"} <= {a.tensor for a in plan.explain().alive}
    assert plan.explain().other_peak.bytes == 0
    deep = engine.make_plan(chain(12), optimise=0).explain()
    assert 0 < deep.other_peak.bytes < deep.arena_bytes - sum(a.bytes for a in deep.alive if a.role == "parameter")


@pytest.mark.parametrize(("seed", "options"), [(9, {"nest": False, "order": "memory"}), (10, {"reuse": False})])
def test_the_explained_other_peak_leaves_out_tensors_of_the_whole_run(seed: int, options: dict[str, object]) -> None:
    explanation = engine.make_plan(build(seeded(seed)), optimise=0, **options).explain()  # type: ignore[arg-type]
    whole = sum(a.bytes for a in explanation.alive if (a.begin, a.end) == (0, explanation.last_tick + 1))
    assert whole and explanation.other_peak.bytes <= explanation.arena_bytes - whole
