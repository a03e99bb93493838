"""Plans in several memories: one memory changes nothing, all ways to run give the same bits, rules are kept."""

import pickle
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from allocator.memories.memory import Memory
from engine import SGD, Executable, ExecutionPlan, Graph
from engine.check.memories import check_memories
from engine.executor.parallel import ParallelExecutor
from engine.lower.calls import Storage
from engine.lower.memories import as_memories, memory_text
from engine.text.errors import BudgetError, OptionError, PlacementError, UndecidedError
from engine.zoo import squeezenet
from tests.helpers.graphs.perceptrons import perceptron, perceptron_feeds
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds

BOARD = ["tcm=4KiB,4GB/s", "sram=48KiB,1GB/s,write=0.5GB/s,latency=20ns", "dram=8MiB,0.2GB/s"]
FLASH = "flash=8MiB,0.1GB/s,read-only"


def small() -> Graph:
    """Returns two layers with a softmax between them; the widest tensor has 8 KiB."""
    rng, graph = np.random.default_rng(0), Graph("small")
    x = graph.input("x", (4, 128))
    hidden = ops.softmax(x @ graph.constant(rng.normal(size=(128, 512)).astype(np.float32), "wide"), axis=1)
    graph.output(hidden @ graph.constant(rng.normal(size=(512, 8)).astype(np.float32), "narrow"), "y")
    return graph


def memory_of(plan: ExecutionPlan, tensor: str) -> str:
    """Returns the memory that holds a tensor, from its bytes in the arena."""
    (memories,) = plan.memories
    (value,) = (v for v in plan.lowered.values if v.name == tensor)
    low, high = plan.places[value.id].layout.extent
    names = zip(memories.memories, memories.ranges, strict=True)
    return next(memory.name for memory, (first, end) in names if first <= low and high <= end)


@pytest.mark.parametrize(
    "options",
    [{}, {"order": "memory"}, {"strategy": "naive"}, {"parallel": "levels"}, {"parallel": "levels", "reuse": False}],
    ids=str,
)
@pytest.mark.parametrize("graph", [small(), squeezenet(image=32), perceptron(0, 16, SGD(0.1))], ids=str)
def test_one_memory_that_is_large_enough_has_the_plan_of_one_arena(graph: Graph, options: dict[str, Any]) -> None:
    plain = engine.make_plan(graph, nodes=500, **options)
    plan = engine.make_plan(graph, memories=[Memory("sram", 1 << 30, 1e9, 1e9)], nodes=500, **options)
    assert plan.plan.offset.tolist() == plain.plan.offset.tolist()
    assert (plan.arena_bytes, plan.plan.bound, plan.plan.strategy) == (
        plain.arena_bytes,
        plain.plan.bound,
        plain.plan.strategy,
    )
    assert [p.layout for p in plan.places] == [p.layout for p in plain.places]
    (transfers,) = plan.report().transfers
    assert transfers.status == "optimal" and transfers.memories[0].weights_bytes == plain.weights_bytes


def _runs(graph: Graph, **options: Any) -> dict[str, Executable]:
    static = engine.compile(graph, **options)
    exes = {"static": static, "poison": engine.compile(graph, debug="poison", **options)}
    exes |= {policy: engine.compile(graph, parallel=policy, threads=2, **options) for policy in ("levels", "edges")}
    assert isinstance(exes["edges"].executor, ParallelExecutor)
    return exes | {"pickled": pickle.loads(pickle.dumps(static))}


def test_all_ways_to_run_in_several_memories_have_the_bits_of_one_arena() -> None:
    graph = small()
    feeds, exes = random_feeds(graph), _runs(graph, memories=[*BOARD, FLASH])
    for exe in exes.values():
        assert_same(exe.run(feeds), engine.compile(graph).run(feeds))
        assert len({m for memories in exe.plan.memories for m in memories.assigned.memory.tolist()}) > 2
    assert exes["pickled"].plan.is_followed
    saved, planned = exes["pickled"].plan.memories[0], exes["static"].plan.memories[0]
    assert saved.assigned.memory.tolist() == planned.assigned.memory.tolist()
    assert saved.assigned.offset.tolist() == planned.assigned.offset.tolist() and saved.starts == planned.starts
    assert saved.assigned.cost == pytest.approx(planned.assigned.cost)


def test_a_step_of_training_keeps_its_parameters_in_their_memories() -> None:
    options: dict[str, Any] = {"memories": ["sram=1KiB,4GB/s", "dram=64KiB,1GB/s"], "place": {"parameters": "dram"}}
    exe, plain = engine.compile(perceptron(1, 8, SGD(0.1)), **options), engine.compile(perceptron(1, 8, SGD(0.1)))
    feeds = perceptron_feeds(8)
    for _ in range(3):
        assert_same(exe.run(feeds), plain.run(feeds))
    assert_same(exe.parameters, plain.parameters)
    assert {memory_of(exe.plan, name) for name in exe.parameters} == {"dram"}


MEMORIES = st.builds(
    Memory,
    name=st.just("m"),
    capacity=st.integers(1, 2**62 - 1),
    read_bandwidth=st.floats(1e-3, 1e18),
    write_bandwidth=st.floats(1e-3, 1e18),
    latency=st.floats(0, 1e6),
    alignment=st.integers(0, 61).map(lambda bits: 1 << bits),
    writable=st.booleans(),
)


@given(memory=MEMORIES)
def test_the_text_of_a_memory_is_read_as_the_same_memory(memory: Memory) -> None:
    assert as_memories(memory_text(memory)) == (memory,)
    assert as_memories(each for each in [memory]) == (memory,)


@st.composite
def boards(draw: st.DrawFn) -> list[Memory]:
    """Draws up to three memories that can be written, and perhaps one that cannot."""
    count = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.sampled_from([64, 212, 520, 1 << 12, 1 << 20]), min_size=count, max_size=count))
    edges = draw(st.lists(st.sampled_from([1, 16, 64, 256]), min_size=count, max_size=count))
    memories = [
        Memory(f"m{i}", size, 4e9 / 2**i, 1e9 / 3**i, 1e-8 * i, alignment=edge)
        for i, (size, edge) in enumerate(zip(sizes, edges, strict=True))
    ]
    return [*memories, *([Memory("flash", 1 << 20, 1e8, 1e8, writable=False)] if draw(st.booleans()) else [])]


@settings(max_examples=15, deadline=None)
@given(graph=graphs(10), board=boards(), alignment=st.sampled_from([1, 64]))
def test_whatever_the_memories_a_plan_has_the_same_bits_or_there_is_a_reason(
    graph: Graph, board: list[Memory], alignment: int
) -> None:
    feeds, options = random_feeds(graph), {"optimise": 0, "alignment": alignment}
    try:
        exe = engine.compile(graph, memories=board, debug="poison", **options)  # type: ignore[arg-type]
    except BudgetError as error:
        assert "which is proved" in str(error) and "\n" not in str(error)
        return
    except UndecidedError as error:
        assert "was found, and it is not proved that there is none" in str(error)
        return
    assert_same(exe.run(feeds), engine.compile(graph, **options).run(feeds))  # type: ignore[arg-type]


def test_calls_move_the_bytes_of_their_operands_and_the_caller_those_of_inputs_and_outputs() -> None:
    plan = engine.make_plan(small(), memories=BOARD, optimise=0)
    (memories,) = plan.memories
    problem, names = memories.problem, {v.name: v.id for v in plan.lowered.values}

    def moved(row: int) -> tuple[int, int, int]:
        return tuple(int(c[row]) for c in (problem.read_bytes, problem.written_bytes, problem.calls))  # type: ignore[return-value]

    assert moved(plan.chunk_of(names["x"])) == (2048, 2048, 2)  # fed, then read by one product
    assert moved(plan.chunk_of(plan.lowered.outputs["y"])) == (128, 128, 2)
    weights = {
        plan.lowered.values[value].name: memories.contents.chunks + i
        for i, value in enumerate(memories.contents.constants)
    }
    assert moved(weights["wide"]) == (128 * 512 * 4, 0, 1)
    placed = {weight.name: weight for share in plan.report().transfers[0].memories for weight in share.weights}
    assert {name: weight.bytes for name, weight in placed.items()} == {"wide": 128 * 512 * 4, "narrow": 512 * 8 * 4}
    assert {w.offset for w in placed.values()} == {int(memories.assigned.offset[row]) for row in weights.values()}
    assert moved(weights["narrow"]) == (512 * 8 * 4, 0, 1)
    assert memories.assigned.cost == pytest.approx(sum(share.seconds for share in plan.report().transfers[0].memories))


def test_a_table_of_which_rows_are_gathered_is_read_in_these_rows_alone() -> None:
    graph = Graph("gathers")
    table = graph.constant(np.zeros((1000, 16), np.float32), "table")
    graph.output(ops.gather(table, graph.input("rows", (3,), "int64"), axis=0), "y")
    (memories,) = engine.make_plan(graph, memories=["dram=1MiB,1GB/s"]).memories
    assert memories.problem.read_bytes[memories.contents.chunks :].tolist() == [3 * 16 * 4]


RULES = {
    "x": ("dram", "x"),
    "inputs": ("dram", "x"),
    "outputs": ("dram", "y"),
    "softmax*": ("!sram", "softmax_0"),
    "matmul_0": ("dram", "matmul_0"),
}


@pytest.mark.parametrize("pattern", RULES)
def test_a_rule_puts_tensors_into_a_memory_or_keeps_them_out(pattern: str) -> None:
    where, tensor = RULES[pattern]
    options: dict[str, Any] = {"memories": ["sram=1MiB,4GB/s", "dram=1MiB,1GB/s"], "optimise": 0}
    plain, plan = engine.make_plan(small(), **options), engine.make_plan(small(), place={pattern: where}, **options)
    name = plan.lowered.values[plan.lowered.outputs["y"]].name if tensor == "y" else tensor
    assert memory_of(plain, name) == "sram" and memory_of(plan, name) == "dram"


def test_a_tensor_and_the_workspace_of_its_operator_lie_where_their_own_rules_say() -> None:
    options: dict[str, Any] = {"memories": ["sram=1MiB,4GB/s", "dram=1MiB,1GB/s"], "optimise": 0, "backend": "numpy"}
    plan = engine.make_plan(small(), place={"softmax_0": "dram", "softmax_0/workspace": "sram"}, **options)
    assert memory_of(plan, "softmax_0") == "dram" and memory_of(plan, "softmax_0/workspace") == "sram"


def test_weights_are_placed_by_rules_and_by_what_can_be_written() -> None:
    board = [*BOARD, FLASH]
    (transfers,) = engine.make_plan(small(), memories=board, place={"constants": "flash"}).report().transfers
    assert [share.weights_bytes > 0 for share in transfers.memories] == [False, False, False, True]
    (transfers,) = engine.make_plan(small(), memories=board, place=["constants=!flash"]).report().transfers
    assert transfers.memories[-1].used_bytes == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memories": BOARD, "budget": 4096}, r"budget= .* is that of one arena"),
        ({"memories": ["a=1MiB,1GB/s", "a=2MiB,1GB/s"]}, "memory 'a' is given 2 times"),
        ({"memories": [Memory("a", 9, 1, 1), 3]}, "memory 3 has no name, capacity and bandwidth"),
        ({"memories": 3}, "memories 3 is no list of memories"),
        ({"memories": ["a=1MiB,0GB/s"]}, "memory 'a': '0GB/s' is no number of bytes a second above 0"),
        ({"memories": ["a=1MiB,fast"]}, "memory 'a': 'fast' is no number of bytes a second; write"),
        ({"memories": ["a=0,1GB/s"]}, "^memory 'a': its capacity is 0, and must be"),
        ({"memories": ["a=1MiB,1GB/s,alignment=x"]}, "memory 'a': its alignment is 'x', and must be a power of two"),
        ({"memories": ["a=1MiB,1GB/s,alignment=48"]}, "memory 'a': its alignment is 48, and must be a power of two"),
        ({"memories": ["a=1MiB,1GB/s,alignment=" + "9" * 400]}, r"its alignment is '9{40}\.\.\.', and must be"),
        ({"memories": ["a=1MiB,1GB/s,write=1GB/s,write=2GB/s"]}, "memory 'a': 'write' is given more than once"),
        ({"memories": ["a=1MiB,1GB/s,read-only,read-only"]}, "memory 'a': 'read-only' is given more than once"),
        ({"memories": ["a=1MiB,1GB/s,latncy=1ns"]}, r"'latncy=1ns' is unknown; did you mean 'latency'\?"),
        ({"memories": ["a b=1MiB,1GB/s"]}, "'a b' is no name of a memory"),
        ({"memories": BOARD, "place": {"x": "srma"}}, r"place 'x': memory 'srma' is unknown; did you mean 'sram'\?"),
        ({"memories": BOARD, "place": {"z*": "sram"}}, r"place 'z\*' fits nothing that lies in a memory; there are x"),
        (
            {"memories": BOARD, "place": {"parameters": "sram"}},
            "'parameters' fits nothing that lies in a memory$",
        ),
        ({"memories": BOARD, "place": "x"}, "place 'x' is no rule; write for example"),
        ({"memories": BOARD, "place": 3}, "place 3 has no rules"),
        ({"memories": BOARD, "place": [("x", "sram"), ("inputs", "dram")]}, "leaves no memory for 'x'"),
        ({"place": {"x": "sram"}}, "place 'x' needs memories to place in"),
        (
            {"memories": BOARD, "parallel": "exact"},
            "'exact' plans one arena; levels and edges plan in several memories",
        ),
    ],
    ids=str,
)
def test_mistakes_are_one_clear_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        engine.make_plan(small(), **options)


def test_what_has_no_plan_or_one_arena_says_so() -> None:
    graph = Graph("open")
    graph.output(ops.relu(graph.input("x", ("n", 4))), "y")
    with pytest.raises(OptionError, match="sizes are not all known has one arena"):
        engine.compile(graph, memories=BOARD)
    with pytest.raises(OptionError, match="mode 'dynamic' has none"):
        engine.compile(small(), memories=BOARD, mode="dynamic")
    plans = [engine.make_plan(small(), memories=BOARD), engine.make_plan(squeezenet(image=32))]
    with pytest.raises(OptionError, match=r"a shared plan, with 'small' in it, has one arena"):
        engine.share(*plans)
    with pytest.raises(OptionError, match="each part of a partition has one arena"):
        engine.partition(squeezenet(image=32), ["1MiB", "1MiB"], memories=BOARD)


@pytest.mark.parametrize("capacity", [212, 240, 255, 256])
def test_a_weight_lies_between_tensors_where_it_has_no_room_behind_them(capacity: int) -> None:
    graph = Graph("gathers")
    table = graph.constant(np.arange(32, dtype=np.float32).reshape(32, 1), "table")
    graph.output(ops.gather(table, graph.input("rows", (5,), "int64"), axis=0), "y")
    feeds, options = random_feeds(graph), {"memories": [f"m={capacity},1GB/s"]}
    exe = engine.compile(graph, debug="poison", **options)  # type: ignore[arg-type]
    assert_same(exe.run(feeds), engine.compile(graph).run(feeds))
    (placed,) = exe.plan.memories
    assert (int(placed.assigned.offset[-1]) < placed.parts[0].arena_bytes) == (capacity < 256)
    followed: Executable = pickle.loads(pickle.dumps(engine.compile(graph, **options)))  # type: ignore[arg-type]
    assert followed.plan.is_followed
    assert followed.plan.memories[0].assigned.offset.tolist() == placed.assigned.offset.tolist()
    with pytest.raises(BudgetError, match="which is proved"):
        engine.compile(graph, memories=["m=211,1GB/s"])


def test_state_that_no_call_writes_is_not_in_a_read_only_memory() -> None:
    board = ["ram=64KiB,1GB/s", "rom=64KiB,5GB/s,read-only"]
    graph = perceptron(1, 8, SGD(0.1))
    exe = engine.compile(graph, memories=board)
    assert {memory_of(exe.plan, name) for name in exe.parameters} == {"ram"}
    feeds, plain = perceptron_feeds(8), engine.compile(graph)
    for _ in range(2):
        assert_same(exe.run(feeds), plain.run(feeds))
    with pytest.raises(
        BudgetError, match=r"no memory can hold .*: ram is ruled out, rom has 64.00 KiB and is read-only"
    ):
        engine.compile(graph, memories=board, place={"parameters": "rom"})


def test_the_alignment_of_a_memory_does_not_move_the_other_ones() -> None:
    boards = [[f"a=8KiB,1GB/s,alignment={edge}", "b=1MiB,0.5GB/s"] for edge in (64, 1 << 26)]
    assert (
        len({engine.make_plan(small(), memories=board, place={"x": "a"}).memories[0].starts for board in boards}) == 1
    )
    assert engine.make_plan(small(), memories=boards[1], place={"x": "a"}).arena_bytes < 1 << 16


def test_a_plan_is_saved_whose_memory_asks_for_more_alignment_than_its_tensors() -> None:
    graph = Graph("unaligned")
    x = y = graph.input("x", (3, 3))
    for _ in range(3):
        y = ops.tanh(y @ y) * x
    graph.output(y, "y")
    exe = engine.compile(graph, memories=["fast=64KiB,1GB/s"], alignment=4, optimise=0)
    followed: Executable = pickle.loads(pickle.dumps(exe))
    assert followed.plan.is_followed and followed.plan.arena_bytes == exe.plan.arena_bytes == 164


def test_memories_that_cannot_hold_a_tensor_or_a_moment_are_a_proof() -> None:
    with pytest.raises(BudgetError, match=r"no memory can hold wide \(256.00 KiB\): a has 64.00 KiB"):
        engine.make_plan(small(), memories=["a=64KiB,1GB/s"], optimise=0)
    with pytest.raises(BudgetError, match=r"no memory can hold x .*: flash has 8.00 MiB and is read-only"):
        engine.make_plan(small(), memories=[FLASH])
    with pytest.raises(
        BudgetError, match=r"alive in tick 2 .* need 16384 bytes and can lie in a alone, with 8192"
    ) as e:
        options: dict[str, Any] = {"overwrite": False, "optimise": 0}
        engine.make_plan(small(), memories=["a=8KiB,1GB/s", FLASH], place={"constants": "flash"}, **options)
    assert (e.value.required, e.value.available) == (16384, 8192)


def test_the_judge_finds_values_between_memories_in_read_only_ones_and_weights_that_overlap() -> None:
    plan = engine.make_plan(small(), memories=[*BOARD, FLASH], optimise=0)
    rooms = plan.memories[0].rooms
    check_memories(plan, rooms)
    used = next(room for room in rooms if room.low < room.high)
    faults = {
        "not those of one memory": evolve(used, high=used.high - 1),
        "which is read-only": evolve(used, is_writable=False),
        "and is taken up to byte": evolve(used, capacity=used.high - used.low - 1),
    }
    for message, room in faults.items():
        with pytest.raises(PlacementError, match=message):
            check_memories(plan, [room if r is used else r for r in rooms])
    whole = engine.make_plan(small(), memories=["a=8MiB,1GB/s"], overwrite=False, optimise=0)
    (room,) = whole.memories[0].rooms
    (value, first), *others = room.weights
    apart = tuple((weight, (i + 1) << 20) for i, (weight, _) in enumerate(room.weights))
    with pytest.raises(PlacementError, match="the alignment of 'a' is 1048576"):
        check_memories(whole, [evolve(room, alignment=1 << 20, weights=apart)])
    wrong = {
        "lies in no memory": others,
        "which is not its weight": ((whole.lowered.outputs["y"], 1 << 12), *room.weights),
        "has two weights at byte": [(weight, first) for weight, _ in room.weights],
        "on a weight in 'a'": [(value, 0), *others],
        r"lies in bytes \[-64": ((value, -64), *others),
        r"lies in bytes \[3": ((value, 3), *others),
        r"lies in bytes \[8388608": ((value, 1 << 23), *others),
    }
    for message, weights in wrong.items():
        with pytest.raises(PlacementError, match=message):
            check_memories(whole, [evolve(room, weights=tuple(weights))])
    for rule in (("x", "!a"), ("inputs", "b"), ("wide", "b"), ("softmax*", "!a"), ("constants", "!a")):
        with pytest.raises(PlacementError, match="against the rule"):
            check_memories(whole, [room], [rule])
    check_memories(whole, [room], [("x", "a"), ("outputs", "!b")])
    with pytest.raises(PlacementError, match="ends at byte"):
        check_memories(plan, [rooms[0], evolve(rooms[1], low=rooms[0].high - 1), *rooms[2:]])
    assert all(plan.places[v].storage is Storage.ARENA for v in plan.ids)
