"""Plans that are carried: followed without a search where they are those of the same calls, refused where damaged."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator import solvers
from allocator.check.offsets import check
from allocator.problem import NO_CAPACITY
from engine import ExecutionPlan, Graph, zoo
from engine.onnx.embedded import PREFIX, plan_of, texts_of
from engine.planning.options import Options
from engine.remat import planning
from engine.saved.embedded import EmbeddedPlan
from engine.saved.fingerprint import digest_of, identity_of
from engine.saved.replay import embed, follow
from engine.text.errors import OptionError, OtherPlanError, PlanRefusedError
from ops.tensor.spec import NARROW
from tests.engine.passes.cascade.random_chains import large_images
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.graphs.training_graphs import chain as training_chain
from tests.helpers.graphs.training_graphs import random_training
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"order": "memory", "nodes": 50},
    {"order": "depth_first", "alignment": 16, "padding": 8},
    {"parallel": "exact"},
    {"parallel": "levels"},
    {"parallel": "edges", "order": "memory", "nodes": 50},
    {"parallel": "colour:2"},
    {"views": False, "overwrite": False, "reuse": False, "nest": False, "prepack": False},
)


@contextmanager
def no_solver() -> Iterator[None]:
    with patch.object(solvers, "solve", side_effect=AssertionError("a solver ran")):
        yield


def read_back(embedded: EmbeddedPlan) -> EmbeddedPlan:
    return plan_of(texts_of(embedded), embedded.source, embedded.required)


def chain() -> Graph:
    graph = Graph("chain")
    y = graph.input("x", (4, 4))
    for _ in range(3):
        y = ops.relu(y @ y)
    graph.output(y, "y")
    return graph


def texts(graph: Graph) -> dict[str, str]:
    return texts_of(embed(engine.make_plan(graph, optimise=0)))


@given(graphs(), st.sampled_from(OPTIONS))
@settings(max_examples=30, deadline=None)
def test_replay_gives_the_saved_plan_without_a_solver(graph: Graph, options: dict[str, Any]) -> None:
    plan = engine.make_plan(graph, optimise=0, **options)
    embedded = embed(plan)
    assert read_back(embedded) == embedded
    with no_solver():
        replayed = engine.make_plan(graph, embedded=read_back(embedded), optimise=0, **options)
    assert replayed.is_followed and not plan.is_followed
    assert np.array_equal(replayed.plan.offset, plan.plan.offset) and replayed.arena_bytes == plan.arena_bytes
    assert identity_of(replayed.lowered) == identity_of(plan.lowered)
    assert replayed.plan.strategy == plan.plan.strategy


@given(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(-300, 300))
@settings(max_examples=30, deadline=None)
def test_replay_refuses_a_moved_chunk_or_it_is_harmless(seed: int, which: int, by: int) -> None:
    graph = build(seeded(seed))
    embedded = embed(engine.make_plan(graph, optimise=0))
    at = which % len(embedded.offsets)
    name, offset = embedded.offsets[at]
    moved = evolve(embedded, offsets=(*embedded.offsets[:at], (name, offset + 64 * by), *embedded.offsets[at + 1 :]))
    try:
        exe = engine.compile(graph, embedded=read_back(moved), optimise=0)
    except PlanRefusedError as error:
        assert PREFIX + "offsets" in str(error) or "the plan" in str(error)
        return
    feeds = random_feeds(graph)
    for name, array in run_unplanned(graph, feeds).items():
        np.testing.assert_array_equal(exe.run(feeds)[name], array)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_damaged_texts_are_refused_or_change_nothing(data: st.DataObject) -> None:
    graph = chain()
    saved_texts = texts(graph)
    key = data.draw(st.sampled_from(sorted(saved_texts)))
    text = saved_texts[key]
    at = data.draw(st.integers(0, len(text)))
    change = data.draw(st.sampled_from(("", "0", "-", "9" * 30, '"', "[", "]", "null,", "1e400", "\x00", "\ud800")))
    saved_texts[key] = text[:at] + change + text[at + data.draw(st.integers(0, 3)) :]
    try:
        plan = follow(graph, plan_of(saved_texts, "it", False), Options(optimise=0))
    except (PlanRefusedError, OtherPlanError) as error:
        assert "\n" not in str(error) and len(str(error)) < 400
        return
    assert np.array_equal(plan.plan.offset, engine.make_plan(graph, optimise=0).plan.offset)


BOUND = PREFIX + "bound"


@pytest.mark.parametrize("key", sorted(texts(chain()).keys() - {BOUND}))
def test_a_missing_text_is_named(key: str) -> None:
    saved_texts = texts(chain())
    del saved_texts[key]
    with pytest.raises(PlanRefusedError, match=f"it: metadata {key!r} is missing"):
        plan_of(saved_texts, "it", False)


def test_a_bound_is_read_with_its_witness_or_found_anew() -> None:
    saved_texts = texts(chain())
    with_witness = follow(chain(), plan_of(saved_texts, "it", False), Options(optimise=0)).plan.bound
    assert with_witness == engine.make_plan(chain(), optimise=0).plan.bound and with_witness.witness
    del saved_texts[BOUND]
    assert follow(chain(), plan_of(saved_texts, "it", False), Options(optimise=0)).plan.bound == with_witness


def test_a_bound_that_its_witness_does_not_add_up_to_is_refused() -> None:
    saved_texts = texts(chain())
    bound = json.loads(saved_texts[BOUND])
    saved_texts[BOUND] = json.dumps(bound | {"tick": 9_999, "chunks": []})
    with pytest.raises(PlanRefusedError, match=r"it has a wrong lower bound \(another sum\): .* adds up to 0"):
        follow(chain(), plan_of(saved_texts, "it", False), Options(optimise=0))


@pytest.mark.parametrize(
    ("key", "text", "place"),
    [
        ("version", "2", "is '2'; this program reads version 1"),
        ("version", "9" * 99, "is '99999999999999999999'; this program reads version 1"),
        ("offsets", "[[", "is no JSON: line 1, column 3: Expecting value"),
        ("offsets", '[["x",-64]]', "row 0: '-64' is no integer in [0, 4611686018427387904)"),
        ("offsets", '[["x"]]', "row 0: no list of two"),
        ("offsets", "[[3,0]]", "row 0: '3' is no text"),
        ("offsets", '{"x":0}', "is no list"),
        ("offsets", "[" * 100_000, "is no JSON that a plan could be in"),
        ("arena_bytes", "true", "it: 'True' is no integer in [0, 4611686018427387904)"),
        ("arena_bytes", "9" * 5000, "is no JSON that a plan could be in"),
        ("options", '{"alignment":64,"colour":1}', "is no object of alignment, padding, optimise"),
        ("order", "[1]", "'pkg.arenaplan.digest' is not that of the calls and of their order"),
        ("strategy", "tomorrow", "metadata 'pkg.arenaplan.strategy' is 'tomorrow', which is no strategy"),
        ("strategy", "zzz\x1b[31m" + "z" * 10_000, "metadata 'pkg.arenaplan.strategy' is 'zzz\\x1b[31mzzzz"),
        ("strategy", "best", "metadata 'pkg.arenaplan.strategy' is 'best', which is no strategy"),
    ],
)
def test_replay_tells_the_place_of_a_fault(key: str, text: str, place: str) -> None:
    with pytest.raises(PlanRefusedError) as caught:
        plan_of(texts(chain()) | {PREFIX + key: text}, "it", False)
    assert place in str(caught.value) and str(caught.value).isprintable() and len(str(caught.value)) < 200


def test_a_saved_plan_without_an_option_has_its_default() -> None:
    graph = chain()
    stored = texts_of(embed(engine.make_plan(graph, alignment=16, optimise=0)))
    options = json.loads(stored[PREFIX + "options"])
    del options["padding"]
    older = plan_of(stored | {PREFIX + "options": json.dumps(options)}, "it", False)
    assert older.options == plan_of(stored, "it", False).options
    assert follow(graph, older, Options(alignment=16, optimise=0)).arena_bytes == older.arena_bytes


def with_offsets(embedded: EmbeddedPlan, offsets: list[int]) -> EmbeddedPlan:
    named = zip((name for name, _ in embedded.offsets), offsets, strict=False)
    return evolve(embedded, offsets=tuple(named))


def test_replay_refuses_wrong_offsets_and_arena_sizes() -> None:
    graph = chain()
    embedded = embed(engine.make_plan(graph, optimise=0))
    offsets = [at for _, at in embedded.offsets]
    with pytest.raises(PlanRefusedError, match=f"has {len(offsets) - 1} offsets for {len(offsets)} chunks"):
        follow(graph, with_offsets(embedded, offsets[:-1]), Options(optimise=0))
    with pytest.raises(PlanRefusedError, match="is wrong \\(overlap, 'x' and "):
        follow(graph, with_offsets(embedded, [0] * len(offsets)), Options(optimise=0))
    with pytest.raises(PlanRefusedError, match="is wrong \\(arena too small, "):
        follow(graph, with_offsets(embedded, [2**40, *offsets[1:]]), Options(optimise=0))
    with pytest.raises(PlanRefusedError, match="wants an arena of 1099511627776 bytes, where "):
        follow(graph, evolve(embedded, arena_bytes=2**40), Options(optimise=0))


def test_a_plan_that_is_not_safe_for_threads_is_refused() -> None:
    graph = Graph("branches")
    x = graph.input("x", (8, 8))
    graph.output(ops.concat([ops.exp(x @ x), ops.tanh(x @ x)], 0), "y")
    plan = engine.make_plan(graph, parallel="exact", overwrite=False, nest=False, optimise=0)
    embedded, errors = embed(plan), []
    for one, other in permutations(range(len(embedded.offsets)), 2):
        offsets = [at for _, at in embedded.offsets]
        offsets[one] = offsets[other]
        if check(plan.problem, np.array(offsets), embedded.arena_bytes) is None:  # one after the other, they may share
            try:
                follow(graph, evolve(with_offsets(embedded, offsets), arena_bytes=top(plan, offsets)), plan.options)
            except PlanRefusedError as error:
                errors.append(str(error))
    assert errors and all("the plan breaks a rule: " in text for text in errors)


def top(plan: ExecutionPlan, offsets: list[int]) -> int:
    return int((np.array(offsets) + plan.problem.size).max())


def test_replay_tells_why_a_plan_was_made_anew() -> None:
    graph = chain()
    embedded = evolve(embed(engine.make_plan(graph, optimise=0)), source="it")
    wider, longer = Graph("chain"), Graph("chain")
    wider.output(ops.relu(wider.input("x", (8, 4))), "y")
    longer.output(ops.tanh(longer.input("x", (4, 4))), "y")
    cases: tuple[tuple[Graph, dict[str, Any], str], ...] = (
        (wider, {}, "it is for 'x' float32 4x4, and here is 'x' float32 8x4"),
        (longer, {}, "it is for other operators: another model, or other passes over it"),
        (graph, {"alignment": 32}, "it was made with alignment=64, not 32"),
        (graph, {"strategy": "naive"}, f"it was made by strategy {embedded.strategy!r}, not 'naive'"),
        (graph, {"order": "memory"}, "it was made with order='given', not 'memory'"),
    )
    for other, options, reason in cases:
        plan = engine.make_plan(other, embedded=embedded, optimise=0, **options)
        assert plan.origin == f"made anew: {reason}" and not plan.is_followed
        assert f"plan: made anew: {reason}" in plan.report().text() and plan.report().origin == plan.origin
        with pytest.raises(OtherPlanError, match=reason[:20]):
            engine.make_plan(other, embedded=evolve(embedded, required=True), optimise=0, **options)


def test_a_budget_below_the_plan_is_told() -> None:
    graph = chain()
    embedded = embed(engine.make_plan(graph, reuse=False, optimise=0))
    replayed = engine.make_plan(
        graph, embedded=evolve(embedded, required=False), reuse=False, budget=embedded.arena_bytes, optimise=0
    )
    assert replayed.is_followed
    with pytest.raises(OtherPlanError, match=f"needs {embedded.arena_bytes} bytes, and 64 are available"):
        engine.make_plan(graph, embedded=evolve(embedded, required=True), reuse=False, budget=64, optimise=0)


def test_other_kernels_are_told() -> None:
    graph = chain()
    embedded = embed(engine.make_plan(graph, optimise=0))
    embedded = evolve(embedded, identity=evolve(embedded.identity, kernels=digest_of("others")))
    assert "other kernels" in engine.make_plan(graph, embedded=embedded, optimise=0).origin
    embedded = evolve(embed(engine.make_plan(graph, optimise=0)), memory=digest_of("others"))
    assert "other lifetimes" in engine.make_plan(graph, embedded=embedded, optimise=0).origin


def test_long_and_odd_names_make_short_errors() -> None:
    graph, other = Graph("g"), Graph("g")
    graph.output(ops.relu(graph.input("\x1b[31m\n" + "x" * 10_000, (4,))), "y")
    other.output(ops.relu(other.input("x", (4,))), "y")
    origin = engine.make_plan(other, embedded=embed(engine.make_plan(graph, optimise=0)), optimise=0).origin
    assert origin.isprintable() and len(origin) < 200


def test_replay_refuses_what_is_no_plan() -> None:
    with pytest.raises(OptionError, match=r"embedded must be what arenaplan\.load_plan returns, not a str"):
        engine.make_plan(chain(), embedded="planned.onnx", optimise=0)  # type: ignore[arg-type]


def test_a_graph_without_lengths_follows_nothing() -> None:
    embedded, graph = embed(engine.make_plan(chain(), optimise=0)), Graph("open")
    graph.output(ops.relu(graph.input("x", (graph.dim("n"), 4))), "y")
    with pytest.raises(
        OptionError, match=r"an embedded plan is one of known lengths; arenaplan\.bind gives 'open' some"
    ):
        engine.compile(graph, embedded=embedded, optimise=0)


@pytest.mark.parametrize("order", ["given", "memory"])
def test_a_plan_that_computes_again_is_followed_too(order: str) -> None:
    graph = training_chain(12)
    most = engine.make_plan(graph, optimise=0).arena_bytes * 6 // 10
    plan = engine.make_plan(graph, budget=most, order=order, optimise=0)
    assert plan.recomputed and plan.options.order == order
    embedded = evolve(read_back(embed(plan)), required=True)
    with no_solver(), patch.object(planning, "cheapest", side_effect=AssertionError("a search ran")):
        exe = engine.compile(graph, embedded=embedded, budget=most, order=order, optimise=0)
    assert exe.plan.is_followed and exe.plan.recomputed == plan.recomputed
    assert exe.plan.lowered.graph.text() == plan.lowered.graph.text()
    feeds = random_feeds(graph)
    assert_same(exe.run(feeds), engine.compile(graph, optimise=0).run(feeds))
    with pytest.raises(OtherPlanError, match="the plan computes values again, and recompute is off"):
        engine.make_plan(graph, embedded=embedded, order=order, recompute=False, optimise=0)


def test_a_plan_that_a_budget_cut_into_stripes_is_followed_too() -> None:
    graph = large_images()
    budget = engine.make_plan(graph, nodes=100).arena_bytes * 6 // 10
    plan = engine.make_plan(graph, budget=budget, nodes=100)
    assert plan.options.cascade
    with no_solver():
        for most in (budget, NO_CAPACITY):
            again = engine.make_plan(graph, budget=most, nodes=100, embedded=embed(plan))
            assert again.is_followed and again.arena_bytes == plan.arena_bytes
    anew = engine.make_plan(graph, nodes=100, embedded=embed(plan), recompute=False)
    assert "cascade" in anew.origin and anew.arena_bytes > budget


@given(st.integers(0, 2**32), st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_replay_refuses_a_sequence_that_is_none(seed: int, length: int) -> None:
    graph = training_chain(6)
    plan = engine.make_plan(graph, budget=engine.make_plan(graph, optimise=0).arena_bytes * 7 // 10, optimise=0)
    embedded, rng = embed(plan), np.random.default_rng(seed)
    ((names, plain),) = embedded.again
    drawn = tuple(rng.choice(names, length % (2 * len(names))).tolist())
    try:
        follow(graph, evolve(embedded, again=((drawn, plain),)), Options(optimise=0))
    except (PlanRefusedError, OtherPlanError):
        return
    assert drawn == names


def test_replay_refuses_a_read_of_a_parameter_after_its_update() -> None:
    graph = random_training(seeded(3))
    plan = engine.make_plan(graph, budget=engine.make_plan(graph, optimise=0).arena_bytes * 92 // 100, optimise=0)
    embedded = embed(plan)
    ((names, plain),) = embedded.again
    late = evolve(embedded, again=(((*names, "matmul_1/gradient/matmul_0"), plain),), source="it")
    with pytest.raises(PlanRefusedError, match="it cannot run: 'w0/update/sgd_step_0' updates parameter 'w0' in place"):
        follow(graph, late, Options(optimise=0))


def test_bytes_without_are_more_than_those_with_what_runs_again() -> None:
    graph = training_chain(6)
    embedded = embed(
        engine.make_plan(graph, budget=engine.make_plan(graph, optimise=0).arena_bytes * 7 // 10, optimise=0)
    )
    ((names, plain),) = embedded.again
    assert read_back(embedded) == embedded and plain > embedded.arena_bytes
    lied = evolve(embedded, again=((names, embedded.arena_bytes - 1),))
    with pytest.raises(PlanRefusedError, match=r"metadata 'pkg\.arenaplan\.again' row 0: \d+ bytes without are fewer"):
        read_back(lied)


@pytest.mark.parametrize("name", ["squeezenet", "mobilenet_v2", "lstm_classifier"])
def test_identities_are_the_same_in_two_graphs_of_one_network(name: str) -> None:
    one, other = (identity_of(engine.make_plan(zoo.NETWORKS[name].build(), optimise=0).lowered) for _ in range(2))
    assert one == other


def test_digests_tell_attributes_apart() -> None:
    arrays = [np.zeros(3, np.float32), np.zeros(3, np.float64), np.ones(3, np.float32), np.zeros((3, 1), np.float32)]
    values: list[Any] = [*arrays, 1, 1.5, "1", True, None, (1, 2), ((1,), 2), {"a": 1}, np.dtype("int8"), np.float32(1)]
    values += [np.zeros(3, d) for d in sorted(NARROW, key=str)] + sorted(NARROW, key=str)
    assert len({digest_of(value) for value in values}) == len(values)
    assert digest_of((1, 2)) == digest_of([1, 2])


def test_saved_plan_texts_are_ascii_whatever_names_are() -> None:
    graph = Graph("names")
    name = '"</script><script>alert(1)</script>\n\ud800' + "x" * 10_000
    graph.output(ops.relu(graph.input(name, (3,))), "y")
    saved_texts = texts(graph)
    assert (
        all(text.isascii() for text in saved_texts.values())
        and json.loads(saved_texts[PREFIX + "offsets"])[0][0] == name
    )
    with no_solver():
        assert engine.make_plan(graph, embedded=plan_of(saved_texts, "it", True), optimise=0).is_followed
