"""Explanations of plans in several memories: what is alive in each, what transfers take, and copies of a tensor."""

from collections import Counter

import pytest

from engine import ExecutionPlan, make_plan
from tests.helpers.graphs.waiting import rectified
from tests.helpers.traces.cascaded_plans import cascaded_plan
from tests.helpers.traces.copied_beside import copied_beside


@pytest.fixture(scope="module")
def plan() -> ExecutionPlan:
    return copied_beside()


def test_the_text_says_what_is_alive_in_each_memory_and_what_transfers_take(plan: ExecutionPlan) -> None:
    explanation, text = plan.explain(), str(plan.explain())
    (placed,) = plan.memories
    alive = Counter[str]()
    for tensor in explanation.alive:
        assert tensor.memory == placed.memories[int(placed.assigned.memory[tensor.chunk])].name
        assert f"{tensor.tensor}, " in text and f", in {tensor.memory}\n" in text
        alive[tensor.memory] += tensor.bytes
    assert alive.keys() == {"fast", "slow"}
    kib = {name: size / 1024 for name, size in alive.items()}
    assert f"by memory: {kib['fast']:.2f} KiB in fast, {kib['slow']:.2f} KiB in slow, 0 B in flash." in text
    assert explanation.transfers == plan.report().transfers
    assert "beside calls, which wait" in text


def test_a_tensor_says_where_it_is_copied_from_and_to_and_by_whom(plan: ExecutionPlan) -> None:
    (transfers,) = plan.report().transfers
    ticks = {copied.tick for copied in plan.copy_times.copies}
    names = {call.tick: call.name for call in plan.lowered.calls}
    for move in transfers.moves:
        for name in (move.tensor, names[move.tick]):
            explained = plan.explain(tensor=name)
            assert move in explained.moves
            copied = f"In tick {move.tick} {move.tensor} is copied from {move.leaves} to {move.enters}"
            assert f"{copied}, by the copy engine beside other calls.\n" in str(explained)
        assert move.is_beside and move.tick in ticks
    assert not plan.explain(tensor="relu_0").moves


def test_a_tensor_says_when_it_is_computed_again() -> None:
    again = make_plan(rectified(), memories=["fast=2KiB,10GB/s", "slow=64KiB,1GB/s"], optimise=0, nodes=50)
    (tensor,) = again.report().transfers[0].recomputed
    for name in ("relu_0", "relu_0/again"):
        explained = again.explain(tensor=name)
        assert explained.recomputed == (tensor,)
        assert f"  In tick {tensor.tick} relu_0 is computed again, in fast.\n" in str(explained)
    assert not again.explain(tensor="x").recomputed


def test_one_arena_has_no_word_of_memories() -> None:
    assert "by memory" not in str(cascaded_plan().explain()) and not cascaded_plan().explain().transfers
