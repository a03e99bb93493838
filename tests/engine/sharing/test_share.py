"""Several networks in one arena: bytes, bounds, random sequences of runs, and faults that the judge finds."""

import pickle
import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from attrs import evolve, fields

import engine
import ops
from allocator.problem import Status
from engine import ExecutionPlan, Graph, SharedPlan
from engine.check.shared import Member, check_shared
from engine.execution_plan import execution_plan
from engine.executor.static import StaticExecutor
from engine.planning.placed import PlacedPlan, place_values
from engine.text.errors import ArenaInUseError, OptionError, SharingError
from engine.zoo.gpt2 import GptSize, Steps, decoder
from engine.zoo.squeezenet import squeezenet
from ops.schema.schema import Binding, Kernel, OpSchema, Thunk
from ops.tensor.spec import Array
from tests.helpers.graphs.branching import branching_graph
from tests.helpers.graphs.training_graphs import chain, random_training
from tests.helpers.graphs.unplanned_run import random_feeds

POISON = 0xA5
SMALL_GPT = GptSize(2, 24, 3, vocabulary=50, positions=13)


def wrong(value: object) -> Any:
    """Returns a value that a checker of types would refuse."""
    return value


def _five() -> list[ExecutionPlan]:
    graphs = (branching_graph(1, 12), branching_graph(3, 20), chain(2, 8, 4), chain(3, 16, 5), squeezenet(image=32))
    return [engine.make_plan(graph) for graph in graphs]


@pytest.fixture(scope="module")
def five() -> list[ExecutionPlan]:
    return _five()


def _bits(arrays: dict[str, Array]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


def _members(shared: SharedPlan) -> list[Member]:
    return [Member(model.name, model.plan, model.first) for model in shared.models]


def _up(size: int) -> int:
    return -(-size // 64) * 64


def test_the_arena_is_the_largest_scratch_and_all_state_and_that_is_proved(five: list[ExecutionPlan]) -> None:
    shared = engine.share(*five)
    state, scratch = ([getattr(m, f"{part}_bytes") for m in shared.models] for part in ("state", "scratch"))
    assert [bool(size) for size in state] == [False, False, True, True, False]
    assert shared.separate_bytes == sum(plan.arena_bytes for plan in five)
    assert max(scratch) + sum(state) <= shared.arena_bytes <= _up(max(scratch)) + sum(map(_up, state))
    assert shared.lower_bound == shared.arena_bytes and shared.status is Status.OPTIMAL
    assert [m.plan is plan for m, plan in zip(shared.models, five, strict=True)] == [not size for size in state]
    assert shared.text().count("\n") == 8 and "no arena has less" in shared.text()


@pytest.mark.parametrize(("debug", "runs"), [("", 120), ("poison", 12), pytest.param("", 1000, marks=pytest.mark.slow)])
def test_random_sequences_of_runs_give_the_bits_of_separate_runs(
    debug: str, runs: int, five: list[ExecutionPlan]
) -> None:
    """Bytes that no parameter has are overwritten between runs."""
    shared = engine.share(*five)
    buffer = np.full(shared.arena_bytes + shared.alignment, POISON, np.uint8)
    kept = _state_bytes(shared, buffer)
    together, alone = shared.executables(arena=buffer, debug=debug), [plan.executable() for plan in five]
    draw = random.Random(7)
    for turn in range(runs):
        number = draw.randrange(len(five))
        feeds = random_feeds(five[number].graph, turn)
        assert _bits(together[number].run(feeds)) == _bits(alone[number].run(feeds)), (turn, number)
        buffer[~kept] = POISON
    for one, other in zip(together, alone, strict=True):
        assert _bits(one.parameters) == _bits(other.parameters)


def _state_bytes(shared: SharedPlan, buffer: Array) -> Array:
    """Returns which bytes of the buffer are those of parameters."""
    kept, base = np.zeros(len(buffer), bool), -buffer.ctypes.data % shared.alignment
    for model in shared.models:
        for value in {*model.plan.lowered.parameters, *model.plan.lowered.parameters.values()}:
            low, high = model.plan.places[value].layout.extent
            kept[base + model.first + low : base + model.first + high] = True
    return kept


PAIRS = list(combinations(range(5), 2))


@pytest.mark.parametrize("seed", range(8))
def test_networks_that_may_run_at_once_share_no_byte_and_others_do(seed: int, five: list[ExecutionPlan]) -> None:
    draw, plans = random.Random(seed), five
    pairs = {pair for pair in PAIRS if draw.random() < 0.5}
    shared = engine.share(*plans, concurrent=[(plans[j], plans[i]) for i, j in pairs])
    assert shared.concurrent == tuple(sorted(pairs))
    check_shared(_members(shared), shared.concurrent, shared.arena_bytes)
    least = sum(m.state_bytes for m in shared.models) + _heaviest([m.scratch_bytes for m in shared.models], pairs)
    assert least <= shared.arena_bytes <= shared.separate_bytes + 64 * 5
    assert shared.lower_bound <= shared.arena_bytes
    blocks = [(m.scratch_offset, m.scratch_offset + m.scratch_bytes) for m in shared.models]
    assert all(blocks[i][1] <= blocks[j][0] or blocks[j][1] <= blocks[i][0] for i, j in pairs)


def _heaviest(sizes: list[int], pairs: set[tuple[int, int]]) -> int:
    """Returns the most bytes of networks of which each may run with each other, by trying all."""
    groups = [g for count in range(1, 6) for g in combinations(range(5), count)]
    return max(sum(sizes[i] for i in g) for g in groups if all(pair in pairs for pair in combinations(g, 2)))


def test_the_bound_is_that_of_all_networks_of_which_each_runs_with_each_other(five: list[ExecutionPlan]) -> None:
    shared = engine.share(*five, concurrent=combinations(five, 2))
    assert shared.status is Status.OPTIMAL
    assert shared.arena_bytes >= sum(m.scratch_bytes + m.state_bytes for m in shared.models)


@pytest.mark.parametrize(
    "options", [{}, {"alignment": 16}, {"alignment": 256, "padding": 8}, {"reuse": False}], ids=str
)
def test_random_training_beside_others_keeps_its_parameters(options: dict[str, Any], five: list[ExecutionPlan]) -> None:
    draw = random.Random(str(options))
    plans = [
        engine.make_plan(random_training(draw.randrange, 6), optimise=0, strategy="greedy_by_size", **options)
        for _ in range(2)
    ]
    shared = engine.share(*plans, five[1])
    assert shared.lower_bound <= shared.arena_bytes <= shared.separate_bytes + 3 * 256
    together, alone = shared.executables(), [plan.executable() for plan in (*plans, five[1])]
    for turn in range(6):
        number = turn % 3
        feeds = random_feeds(alone[number].graph, turn)
        assert _bits(together[number].run(feeds)) == _bits(alone[number].run(feeds))
    assert all(_bits(a.parameters) == _bits(b.parameters) for a, b in zip(together, alone, strict=True))


@pytest.mark.parametrize("policy", ["exact", "levels"])
def test_operators_that_run_at_once_share_an_arena_with_other_networks(policy: str) -> None:
    plans = [engine.make_plan(g, parallel=policy, threads=2) for g in (branching_graph(2, 12), chain(2, 8, 4))]
    shared = engine.share(*plans)
    alone = [plan.executable() for plan in plans]
    exes = shared.executables()
    for turn, number in enumerate((0, 1, 0, 1, 1, 0)):
        feeds = random_feeds(plans[number].graph, turn)
        assert _bits(exes[number].run(feeds)) == _bits(alone[number].run(feeds))


def test_a_parameter_in_shared_scratch_is_found(five: list[ExecutionPlan]) -> None:
    shared = engine.share(*five)
    members, model = _members(shared), shared.models[2]
    plan = model.plan
    offset = np.where(plan.state_chunks, plan.plan.offset - int(plan.plan.offset[plan.state_chunks].min()), 0)
    moved = evolve(plan.plan, offset=np.where(plan.state_chunks, offset, plan.plan.offset))
    wrong = evolve(plan, plan=moved, places=place_values(plan.lowered, plan.ids, plan.chunks, moved))
    members[2] = evolve(members[2], plan=wrong)
    with pytest.raises(SharingError, match="'branching_1' has bytes of a parameter of 'chain2', which must survive"):
        check_shared(members, (), shared.arena_bytes)


def test_a_wrong_offset_of_a_network_is_found(five: list[ExecutionPlan]) -> None:
    pair = (five[0], five[1])
    shared = engine.share(*five, concurrent=[pair])
    members = _members(shared)
    check_shared(members, shared.concurrent, shared.arena_bytes)
    with pytest.raises(SharingError, match="'branching_1' and 'branching_3' may run at the same time"):
        check_shared([evolve(m, first=0) for m in members[:2]], shared.concurrent, shared.arena_bytes)
    beyond = [*members[:4], evolve(members[4], first=shared.arena_bytes)]
    with pytest.raises(SharingError, match="'squeezenet' has bytes outside of the arena"):
        check_shared(beyond, shared.concurrent, shared.arena_bytes)
    on_state = [evolve(members[0], first=members[2].first + shared.models[2].state_offset), *members[1:]]
    with pytest.raises(SharingError, match="has bytes of a parameter of 'chain"):
        check_shared(on_state, (), shared.arena_bytes)


def test_two_networks_that_share_and_run_at_once_raise_and_concurrent_ones_do_not(five: list[ExecutionPlan]) -> None:
    """The inner network runs while the outer one does: its operator calls it."""
    inside: list[Any] = []

    def bind(call: Binding) -> Thunk:
        def run() -> None:
            inside[0]()
            np.copyto(call.y, call.x)

        return run

    schema = OpSchema("calls", lambda specs, _: specs[:1], (Kernel("numpy", bind),))
    graph = Graph("outer")
    graph.output(graph.add(schema, [graph.input("x", (16,))], name="op")[0], "y")
    outer, inner = engine.make_plan(graph, optimise=0), five[0]
    x, feeds = np.arange(16, dtype=np.float32), random_feeds(inner.graph, 1)
    for pairs, is_refused in (([], True), ([(outer, inner)], False)):
        exes = engine.share(outer, inner, concurrent=pairs).executables()
        results: list[object] = []

        def run(exe: Any = exes[1], results: list[object] = results) -> None:
            try:
                results.append(_bits(exe.run(feeds)))
            except ArenaInUseError as error:
                results.append(str(error))

        inside[:] = [run]
        assert exes[0].run({"x": x})["y"].tolist() == x.tolist()
        wanted: object = _bits(inner.executable().run(feeds))
        if is_refused:
            wanted = f"{inner.graph.name!r} cannot run while 'outer' runs: they have bytes of the arena in common"
        assert results == [wanted]


def test_a_copy_of_an_executable_has_an_arena_and_parameters_of_its_own(five: list[ExecutionPlan]) -> None:
    exes = engine.share(*five).executables()
    feeds = random_feeds(exes[2].graph, 3)
    exes[2].run(feeds)
    copied = pickle.loads(pickle.dumps(exes[2]))
    assert _bits(copied.run(feeds)) == _bits(exes[2].run(feeds))
    arenas = [exe.executor.arena for exe in (copied, exes[2]) if isinstance(exe.executor, StaticExecutor)]
    assert len(arenas) == 2 and not arenas[0].has(arenas[1].rows[0])


def test_graphs_and_plans_without_bytes_and_of_one_name_can_share() -> None:
    empty = Graph("branching_1")
    empty.output(empty.constant(np.zeros(0, np.float32)), "y")
    shared = engine.share(empty, branching_graph(1, 12), chain(2, 8, 4))
    assert [m.name for m in shared.models] == ["branching_1", "branching_1#2", "chain2"]
    assert shared.arena_bytes == shared.lower_bound
    assert len(repr(shared)) < 80


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda a, _: engine.share(a), "two networks or more"),
        (lambda a, _: engine.share(a, a), "each once"),
        (lambda a, _: engine.share(a, wrong(5)), "takes plans and graphs, not a int"),
        (lambda a, b: engine.share(a, b.executable()), "give the plan of <executable of"),
        (lambda a, b: engine.share(a, b, concurrent=[(a, a)]), "a network with itself"),
        (lambda a, b: engine.share(a, b, concurrent=[(a, branching_graph(1, 12))]), "pairs of the networks that are"),
        (lambda a, b: engine.share(a, b, concurrent=wrong([a])), "pairs of the networks that are given"),
        (lambda a, b: engine.share(a, b).executables(arena=np.zeros(9, np.uint8)), "the shared plan needs an arena of"),
    ],
)
def test_mistakes_are_one_line(ask: Any, says: str, five: list[ExecutionPlan]) -> None:
    with pytest.raises(OptionError, match=says) as caught:
        ask(five[0], five[1])
    assert "\n" not in str(caught.value)


def test_what_needs_little_alignment_on_another_processor_has_no_gaps_between_networks() -> None:
    plans = []
    for _ in range(4):
        graph = Graph("net")
        graph.output(ops.relu(graph.input("x", (17,))), "y")
        plans.append(engine.make_plan(graph, alignment=4, target="none"))
    shared = engine.share(*plans, concurrent=combinations(plans, 2))
    assert shared.arena_bytes == shared.lower_bound == shared.separate_bytes
    assert shared.alignment == 4


def test_pairs_that_are_none_are_refused(five: list[ExecutionPlan]) -> None:
    for concurrent in (None, 5, [5], [(five[0],)]):
        with pytest.raises(OptionError, match="concurrent takes pairs"):
            engine.share(*five, concurrent=wrong(concurrent))


def test_the_plan_of_a_stage_is_refused(five: list[ExecutionPlan]) -> None:
    stage = execution_plan(PlacedPlan(**{f.name: getattr(five[0], f.name) for f in fields(PlacedPlan)}))
    with pytest.raises(OptionError, match="runs in stages"):
        engine.share(stage, five[1])


def _decoder(tokens: int, capacity: int = 12) -> ExecutionPlan:
    return engine.make_plan(decoder(SMALL_GPT, f"gpt_{tokens}", Steps(tokens=tokens, capacity=capacity)))


@pytest.mark.parametrize("debug", ["", "poison"])
def test_the_prompt_and_the_step_of_a_decoder_have_the_same_caches(debug: str, five: list[ExecutionPlan]) -> None:
    """Other networks run in between, and bytes that no parameter has are overwritten."""
    plans = [_decoder(6), _decoder(1), five[0], five[2]]
    shared = engine.share(*plans, same_state=[(plans[0], plans[1])])
    assert shared.status is Status.OPTIMAL
    sizes = [model.state_bytes for model in shared.models]
    assert sizes[0] == sizes[1] and sizes[3] > 0
    most = max(model.scratch_bytes for model in shared.models)
    assert shared.arena_bytes <= _up(sizes[0]) + _up(sizes[3]) + _up(most)
    buffer = np.full(shared.arena_bytes + shared.alignment, POISON, np.uint8)
    kept = _state_bytes(shared, buffer)
    prompt, step, *others = shared.executables(arena=buffer, debug=debug)
    alone = [plan.executable() for plan in (plans[0], plans[1])]
    ids = np.random.default_rng(0).integers(0, 50, (1, 12))
    first = {"ids": ids[:, :6], "position": np.array([0])}
    assert _bits(prompt.run(first)) == _bits(alone[0].run(first))
    alone[1].load(alone[0].parameters)
    for i in range(6, 12):
        buffer[~kept] = POISON
        other = others[i % 2]
        other.run(random_feeds(other.graph, i))
        feeds = {"ids": ids[:, i : i + 1], "position": np.array([i])}
        assert _bits(step.run(feeds)) == _bits(alone[1].run(feeds)), i
    assert _bits(prompt.parameters) == _bits(alone[1].parameters)


def test_networks_without_the_same_parameters_have_no_state_in_common(five: list[ExecutionPlan]) -> None:
    for pair, says in (
        ((_decoder(6), _decoder(1, capacity=13)), "'keys_0' is not the same in both"),
        ((five[2], five[3]), "do not have the same parameters"),
        ((five[0], five[1]), "they have none"),
    ):
        with pytest.raises(OptionError, match=says):
            engine.share(*pair, same_state=[pair])
    pair = (_decoder(6), _decoder(1))
    with pytest.raises(OptionError, match="'gpt_6' and 'gpt_1' stand in one pipeline or have the same state"):
        engine.share(*pair, same_state=[pair], concurrent=[pair])
    shared = engine.share(*pair, same_state=[pair])
    members = _members(shared)
    members[1] = evolve(members[1], first=members[1].first + 64)
    with pytest.raises(SharingError, match="'gpt_6' and 'gpt_1' do not have the same parameters at the same bytes"):
        check_shared(members, (), shared.arena_bytes + 64, (), shared.same_state)


def test_executables_of_two_calls_keep_their_state_from_each_other() -> None:
    pair = (_decoder(2), _decoder(1))
    shared = engine.share(*pair, same_state=[pair])
    buffer = np.zeros(shared.arena_bytes + shared.alignment, np.uint8)
    held = shared.executables(arena=buffer)
    with pytest.raises(OptionError, match=r"parameters of 'gpt_.' must stay there"):
        shared.executables(arena=buffer)
    assert len(held) == 2


@pytest.mark.parametrize("alignments", [(16, 64), (64, 4), (4, 256)], ids=str)
def test_the_same_state_of_plans_with_other_alignments_is_aligned_for_both(alignments: tuple[int, int]) -> None:
    def reader(rows: int) -> Graph:
        graph = Graph(f"rows_{rows}")
        x = graph.input("x", (rows, 3))
        for i, size in enumerate((5, 7, 11)):
            w = graph.parameter(np.full((3, size), i + 1, np.float32), f"w{i}")
            graph.output(x @ w, f"y{i}")
        return graph

    one, other = (engine.make_plan(reader(rows), alignment=a) for rows, a in zip((2, 9), alignments, strict=True))
    shared = engine.share(one, other, same_state=[(one, other)])
    for exe, plan in zip(shared.executables(), (one, other), strict=True):
        feeds = random_feeds(plan.graph, 1)
        assert _bits(exe.run(feeds)) == _bits(plan.executable().run(feeds))


def test_parameters_without_bytes_can_be_the_same_state() -> None:
    empty = Graph("one"), Graph("two")
    for graph in empty:
        graph.output(graph.parameter(np.zeros(0, np.float32), "w"), "y")
    one, other = map(engine.make_plan, empty)
    assert engine.share(one, other, same_state=[(one, other)]).arena_bytes == 0
