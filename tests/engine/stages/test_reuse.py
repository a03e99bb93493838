"""New lengths reuse what was planned, judged and bound for others: the same bits, plans and errors."""

import gc
import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator.breadths import first_tick
from allocator.problem import Plan, Problem
from engine import Executable, Graph, Var
from engine.check.overlaps import check_overlaps, overlap_rules
from engine.executor import binding
from engine.executor.relocation import Operands, movable, relocation, same_words
from engine.lower.calls import Call
from engine.planning.placed import PlacedPlan
from engine.stages.geometry import OtherChoiceError
from engine.stages.pattern import make_pattern
from engine.stages.restacking import Restacking, restacking
from engine.stages.reuse import ReusedStage
from engine.system.arrays import aligned_empty
from engine.text.errors import DataFlowError, FeedError, KernelError, PlacementError
from engine.zoo.encoder import EncoderSize, encoder
from ops.native.call import Native
from ops.tensor.errors import OpError
from ops.tensor.layout import address_of
from ops.tensor.spec import Array
from ops.vector.bytecode import Script
from ops.vector.kernel import run
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.staged_executors import staged
from tests.helpers.graphs.symbolic_graphs import NAMES, feeds_of, symbolic
from tests.helpers.graphs.unplanned_run import assert_same

SMALL = EncoderSize(layers=3, width=24, heads=3, sequence="sequence", batch="batch")
LENGTHS = ((1, 5), (2, 9), (1, 12), (3, 2), (1, 1), (2, 31))


def lengths(batch: int, sequence: int) -> dict[str, int]:
    return {"batch": batch, "sequence": sequence}


def reused(exe: Executable) -> bool:
    """Returns whether the last run had a stage that was made from another."""
    (stage,) = exe.stages
    return isinstance(stage, ReusedStage)


def test_new_lengths_give_the_bits_of_a_graph_with_numbers_and_its_arena() -> None:
    graph = encoder(SMALL)
    exe, reuses = engine.compile(graph, optimise=0), []
    for pair in LENGTHS:
        fed = feeds_of(graph, lengths(*pair), 0)
        numbered = engine.compile(engine.bind(graph, lengths(*pair)), optimise=0)
        assert_same(exe.run(fed), numbered.run(fed))
        reuses.append(reused(exe))
        assert exe.plan.arena_bytes == exe.stages[0].arena_bytes == numbered.arena_bytes
    assert reuses[0] is False and sum(reuses) >= len(LENGTHS) - 3


@pytest.mark.slow
def test_lengths_below_their_greatest_give_the_bits_of_stages_that_are_planned() -> None:
    graph, ranges = encoder(SMALL), {"batch": (1, 3), "sequence": (1, 31)}
    exe = engine.compile(graph, length_ranges=ranges)
    for pair in LENGTHS:
        fed = feeds_of(graph, lengths(*pair), 0)
        planned = engine.compile(graph, length_ranges=ranges).run(fed)  # its first lengths: nothing to reuse
        assert_same(exe.run(fed), planned)
    assert reused(exe)
    with pytest.raises(FeedError, match="sequence=32 is out of its range"):
        exe.run(feeds_of(graph, lengths(1, 32), 0))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.tuples(*[st.integers(1, 6)] * 4), min_size=2, max_size=4))
def test_random_graphs_give_the_bits_of_graphs_with_numbers(seed: int, chosen: list[tuple[int, ...]]) -> None:
    graph = symbolic(seeded(seed), 6)
    exe = engine.compile(graph, optimise=0)
    for numbers in chosen:
        named = dict(zip(NAMES, numbers, strict=True))
        fed = feeds_of(graph, named, seed)
        try:
            wanted = engine.compile(engine.bind(graph, named), optimise=0).run(fed)
        except OpError:
            with pytest.raises(FeedError):
                exe.run(fed)
            continue
        assert_same(exe.run(fed), wanted)


def test_guards_are_checked_for_lengths_that_reuse_a_plan() -> None:
    graph = Graph("guarded")
    x = graph.input("x", ("n", 2))
    graph.output(ops.exp(x) if x.shape[0] > 4 else x, "y")
    exe = engine.compile(graph, optimise=0)
    for length in (5, 6, 7):
        exe.run({"x": np.zeros((length, 2), np.float32)})
    assert reused(exe)
    with pytest.raises(FeedError, match="n must be greater than 4, but n is 3"):
        exe.run({"x": np.zeros((3, 2), np.float32)})


def test_bodies_of_loops_have_the_numbers_of_new_lengths() -> None:
    graph = Graph("loop")
    x = graph.input("x", ("n", 2))

    def turn(_: Var, total: Var) -> Var:
        body: Any = total.graph
        grown: Var = total + body.constant(x.shape[0])
        return grown

    graph.output(engine.fori_loop(2, turn, graph.constant(np.ones(1, np.int64))), "y")
    graph.output(ops.exp(x), "z")
    exe = engine.compile(graph, optimise=0)
    for length in (3, 4, 5, 6):
        assert exe.run({"x": np.zeros((length, 2), np.float32)})["y"] == 1 + 2 * length
    assert reused(exe)


def test_equal_layers_are_bound_once_for_new_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, bound = encoder(evolve(SMALL, layers=8)), list[str]()
    exe = engine.compile(graph, optimise=0)
    for length in (30, 31):
        exe.run(feeds_of(graph, lengths(1, length), 0))
    bind = binding.bind_call

    def counted(call: Any, *others: Any) -> Any:
        bound.append(call.name)
        return bind(call, *others)

    monkeypatch.setattr("engine.stages.bound_calls.bind_call", counted)
    exe.run(feeds_of(graph, lengths(1, 33), 0))
    assert reused(exe) and len(exe.stages[0].plan.lowered.calls) > 6 * len(bound) > 0


def test_a_plan_that_is_kept_takes_few_bytes() -> None:
    graph = encoder(evolve(SMALL, layers=8))
    exe = engine.compile(graph, optimise=0)
    fed = [feeds_of(graph, lengths(1, n), 0) for n in range(20, 44)]
    for feeds in fed[:4]:
        exe.run(feeds, copy=False)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for feeds in fed[4:]:
            exe.run(feeds, copy=False)
            assert reused(exe)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(fed[4:]) < 250_000


class TestTheJudgeOfReusedPlans:
    """Faults that the judge must see."""

    def rules_and_bytes(self) -> tuple[Any, Array, Array, int]:
        plan = engine.compile(engine.bind(encoder(SMALL), lengths(2, 9)), nest=False, optimise=0).plan
        extents = [p.layout.extent for p in plan.places]
        low, high = np.array(extents, np.int64).T
        return (
            overlap_rules(plan.lowered, plan.options.alignment, plan.options.padding),
            low.copy(),
            high.copy(),
            plan.arena_bytes,
        )

    def test_a_right_plan_passes(self) -> None:
        check_overlaps(*self.rules_and_bytes())

    def test_every_pair_that_must_not_meet_is_seen(self) -> None:
        rules, low, high, arena = self.rules_and_bytes()
        for one, other in rules.apart.T[:: max(1, rules.apart.shape[1] // 40)]:
            moved, end = low.copy(), high.copy()
            moved[one], end[one] = low[other], low[other] + high[one] - low[one]
            if high[one] > low[one] and high[other] > low[other]:
                with pytest.raises(DataFlowError, match=r"while both are needed|is a view|outside"):
                    check_overlaps(rules, moved, end, max(arena, int(end.max())))

    def test_an_overwrite_at_another_distance_is_seen(self) -> None:
        rules, low, high, arena = self.rules_and_bytes()
        written, read, _ = rules.overwrites
        taken = int(np.flatnonzero(low[written] == low[read])[0])
        value = written[taken]
        low[value], high[value] = low[value] + 4, high[value] + 4
        with pytest.raises(DataFlowError, match="otherwise than permitted"):
            check_overlaps(evolve(rules, apart=rules.apart[:, :0], views=rules.views[:, :0]), low, high, arena + 4)

    @pytest.mark.parametrize("moved", [1, 4, 32])
    def test_addresses_that_are_not_aligned_are_seen(self, moved: int) -> None:
        rules, low, high, arena = self.rules_and_bytes()
        with pytest.raises(PlacementError, match=r"lies at byte \d+; the alignment is 64"):
            check_overlaps(rules, low + moved, high + moved, arena + moved)

    def test_padding_that_is_missing_is_seen(self) -> None:
        rules, low, high, arena = self.rules_and_bytes()
        check_overlaps(rules, low, high, arena)
        with pytest.raises(PlacementError, match="there are no 1024 bytes of padding between '"):
            check_overlaps(evolve(rules, padding=1024), low, high, arena)

    def test_an_arena_that_is_too_small_is_seen(self) -> None:
        rules, low, high, arena = self.rules_and_bytes()
        with pytest.raises(DataFlowError, match="outside of the arena"):
            check_overlaps(rules, low, high, arena - 1)

    def test_wrong_addresses_never_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        graph = encoder(SMALL)
        exe = engine.compile(graph, optimise=0)
        for length in (15, 16):
            exe.run(feeds_of(graph, lengths(1, length), 0))
        place = Restacking.offsets
        monkeypatch.setattr(Restacking, "offsets", lambda *args: place(*args) // 128 * 64)
        with pytest.raises(DataFlowError):
            exe.run(feeds_of(graph, lengths(1, 17), 0))
        monkeypatch.undo()
        fed = feeds_of(graph, lengths(1, 17), 0)
        assert_same(exe.run(fed), engine.compile(engine.bind(graph, lengths(1, 17)), optimise=0).run(fed))


def test_the_geometry_of_new_lengths_is_that_of_lowering() -> None:
    graph = encoder(SMALL)
    exe = engine.compile(graph, optimise=0)
    exe.run(feeds_of(graph, lengths(2, 9), 0))
    executor = staged(exe)
    (pattern,) = make_pattern(executor.template, exe.plan.lowered, executor.terms.options)
    for pair in ((1, 12), (3, 31), (2, 8)):
        fit = pattern.fit(lengths(*pair), {"x": (*pair, SMALL.width)}, {})
        lowered = engine.make_plan(engine.bind(graph, lengths(*pair)), nest=False, optimise=0).lowered
        assert [(v.spec, v.layout) for v in lowered.values] == [(v.spec, v.layout) for v in fit.values]
        for instruction, call in zip(lowered.instructions, fit.calls, strict=True):
            assert not isinstance(instruction, Call) or instruction.signature == call.signature


def test_a_kernel_that_lowering_would_not_choose_is_refused() -> None:
    graph = encoder(SMALL)
    exe = engine.compile(graph, optimise=0)
    exe.run(feeds_of(graph, lengths(2, 9), 0))
    executor = staged(exe)
    (pattern,) = make_pattern(executor.template, exe.plan.lowered, executor.terms.options)
    with pytest.raises(OtherChoiceError):  # a product of one row has another kernel
        pattern.fit(lengths(1, 1), {"x": (1, 1, SMALL.width)}, {})


def bound_at(x: Array, y: Array, scale: float) -> Native:
    """Returns a call of compiled code that reads x and writes y."""
    script = Script(1)
    script.append("mul", 0, 0)
    native = run(script, (x,), y)
    step = evolve(native.steps[0], args=np.append(native.steps[0].args, int(scale)))
    return Native((step,), native.keep)


def operands(*arrays: Array) -> Operands:
    return Operands(np.array([(address_of(a), address_of(a) + a.nbytes, address_of(a)) for a in arrays], np.int64))


def test_calls_at_other_addresses_have_the_same_words_unless_something_else_differs() -> None:
    arrays = [aligned_empty(256, 64).view(np.float32) for _ in range(4)]
    (here,) = movable(bound_at(arrays[0], arrays[1], 1), operands(*arrays[:2]))
    (there,) = movable(bound_at(arrays[2], arrays[3], 1), operands(*arrays[2:]))
    (other,) = movable(bound_at(arrays[2], arrays[3], 2), operands(*arrays[2:]))
    assert same_words(here, there) and not same_words(here, other)
    stray = movable(bound_at(arrays[2], arrays[3], address_of(arrays[0])), operands(*arrays[2:]))[0]
    assert not same_words(here, stray)


def test_moved_words_are_those_of_a_call_that_is_bound_there() -> None:
    arrays = [aligned_empty(256, 64).view(np.float32) for _ in range(4)]
    (call,) = movable(bound_at(arrays[0], arrays[1], 7), operands(*arrays[:2]))
    way = relocation([call], [0, 0], [np.array([0, 1]), np.array([2, 3])], 4)
    buffer = way.words([call], np.array([address_of(a) for a in arrays], np.int64))
    wanted = [bound_at(arrays[0], arrays[1], 7), bound_at(arrays[2], arrays[3], 7)]
    assert buffer.tolist() == [word for native in wanted for word in native.steps[0].args.tolist()]
    assert way.steps(buffer)[:, 0].tolist() == [native.steps[0].address for native in wanted]


def test_an_order_of_addresses_gives_its_own_plan_again() -> None:
    plan = engine.compile(engine.bind(encoder(SMALL), lengths(2, 9)), nest=False, optimise=0).plan
    (orders,) = restacking(plan)
    extents = np.array([v.layout.extent for v in plan.lowered.values], np.int64).T
    size = orders.sizes(*extents)
    offset = orders.offsets(size, never)
    assert orders.decides_alike(*extents) and (offset <= plan.plan.offset).all()


def test_addresses_are_searched_for_where_no_order_is_good_and_the_new_order_is_kept() -> None:
    plan = engine.compile(engine.bind(encoder(SMALL), lengths(2, 9)), nest=False, optimise=0).plan
    (orders,) = restacking(plan)
    size, kept = plan.problem.size, orders.orders[0]
    orders.orders = [evolve(kept, arena_bytes=kept.arena_bytes - 64)]
    offsets = orders.offsets(size, lambda _: plan.plan)
    assert (offsets == plan.plan.offset).all() and len(orders.orders) == 2
    assert (orders.offsets(size, never) + size).max() <= plan.arena_bytes


@given(st.integers(0, 10**6))
def test_an_order_puts_each_chunk_right_above_all_that_lie_below_it(seed: int) -> None:
    plan, random = searched_plan(), np.random.default_rng(seed)
    (orders,), problem, planned = restacking(plan), plan.problem, plan.plan.offset
    begin, root, exists = first_tick(problem), problem.chains.root, problem.size > 0
    size = np.where(exists & (random.random(len(problem)) < 0.7), random.integers(1, 500, len(problem)), 0)
    wanted = np.zeros(len(problem), np.int64)
    for chunk in np.argsort(planned, kind="stable").tolist():
        chain, unit = np.flatnonzero((root == root[chunk]) & exists), problem.alignment[root[chunk]]
        for one in chain.tolist():
            meets = (begin < problem.end[one]) & (begin[one] < problem.end) & exists
            below = meets & (planned < planned[one]) & (root != root[one])
            low = int((wanted + size)[below].max(initial=0))
            wanted[chain] = np.maximum(wanted[chain], -(-low // unit) * unit)
    assert (orders.orders[0].offsets(size, problem) == wanted)[exists].all()


@cache
def searched_plan() -> PlacedPlan:
    return engine.compile(engine.bind(encoder(SMALL), lengths(2, 9)), nest=False, optimise=0).plan


def test_an_index_that_is_outside_is_reported_by_the_call_that_read_it() -> None:
    graph, names = Graph("tables"), ("a", "b", "c")
    for number, name in enumerate(names):
        rows = ops.gather(np.full((3, 4), number, np.float32), graph.input(name, ("n",), np.int64))
        graph.output(ops.exp(rows), f"{name} rows")
    exe = engine.compile(graph, optimise=0)
    for length in (4, 5, 7):
        exe.run({name: np.zeros(length, np.int64) for name in names})
    assert reused(exe)
    for number, wrong in enumerate(names):
        fed = {name: np.zeros(7, np.int64) for name in names}
        fed[wrong][6] = 3 + number
        message = rf"operator 'gather_{number}' failed .*index {3 + number} is outside \[-3, 3\)"
        with pytest.raises(KernelError, match=message):
            exe.run(fed)


def never(_: Problem) -> Plan:
    raise AssertionError("a search")


TWO_LENGTHS = (
    *({"n": 3, "m": 5}, {"n": 4, "m": 7}, {"n": 7, "m": 4}, {"n": 6, "m": 6}, {"n": 5, "m": 3}, {"n": 4, "m": 4}),
)


def check_two_lengths(graph: Graph, **options: Any) -> None:
    """Checks that new lengths, some of which the other name had before, give the bits of graphs with numbers."""
    exe = engine.compile(graph, optimise=0, **options)
    for both in TWO_LENGTHS:
        feeds = feeds_of(graph, both, 0)
        assert_same(exe.run(feeds), engine.compile(engine.bind(graph, both), optimise=0).run(feeds))
    assert reused(exe)


@pytest.mark.parametrize("ranges", [{}, {"n": (1, 9), "m": (1, 9)}])
@pytest.mark.parametrize("join", ["matmul", "concat"])
def test_calls_that_read_one_value_twice_share_no_words_with_others(ranges: dict[str, Any], join: str) -> None:
    graph = Graph("twice")
    x, y, z = (ops.exp(graph.input(name, (length, 4))) for name, length in (("x", "n"), ("y", "m"), ("z", "m")))
    for name, one, other in (("a", x, x), ("b", y, z)):
        view = ops.transpose(other, (1, 0))
        turned = ops.transpose(one, (1, 0))
        graph.output(ops.matmul(one, view) if join == "matmul" else ops.concat([turned, view], axis=0), name)
    check_two_lengths(graph, length_ranges=ranges)


def test_calls_whose_attributes_differ_by_the_sign_of_zero_are_different() -> None:
    graph, identity = Graph("signs"), np.eye(4, dtype=np.float32)
    for name, length, alpha in (("x", "n", 0.0), ("y", "m", -0.0)):
        graph.output(ops.gemm(graph.input(name, (length, 4)), identity, alpha=alpha), f"{name} times {alpha}")
    check_two_lengths(graph)
