"""What traces tell of several memories: parts of the arena, reasons, copies between them; and of cascades: stripes."""

import json
from pathlib import Path
from typing import Any

import pytest

import engine
from engine.text.errors import TraceFormatError
from engine.trace.rectangles import rectangles_of
from tests.helpers.traces.cascaded_plans import cascaded_plan
from tests.helpers.traces.moved_tensors import moved_tensors
from tests.helpers.traces.saved_traces import save_trace


def test_a_trace_has_the_memories_of_its_plan_and_the_copies_between_them() -> None:
    plan = moved_tensors()
    trace, (transfers,) = plan.trace(), plan.report().transfers
    for part, share in zip(trace.facts.memories, transfers.memories, strict=True):
        assert (part.name, part.start, part.seconds) == (share.name, share.start, share.seconds)
        assert (part.arena_bytes, part.weights_bytes, part.used_bytes) == (
            share.arena_bytes,
            share.weights_bytes,
            share.used_bytes,
        )
    shown = rectangles_of(trace)
    names = ["sram", "dram", "flash"]
    where = {n: names[trace.facts.memory_at(at)] for n, at in zip(shown.name, shown.offset.tolist(), strict=True)}
    assert where["far"] == "dram" and where["near"] == where["fetched"] == "sram"
    assert {w.name: names[w.memory] for w in shown.weights} == {"w": "flash", "unread": "flash"}
    sources = [shown.weights[m.source].name if m.is_weight else shown.name[m.source] for m in shown.moves]
    assert [(s, shown.name[m.chunk]) for s, m in zip(sources, shown.moves, strict=True)] == [
        ("far", "near"),
        ("w", "fetched"),
    ]


def test_a_trace_says_why_a_tensor_lies_in_its_memory_as_explain_does() -> None:
    plan = moved_tensors()
    shown = rectangles_of(plan.trace())
    for name, reason in zip(shown.name, shown.reason, strict=True):
        assert reason and all(line.strip() in plan.explain(tensor=name).text() for line in reason.splitlines())


def test_a_dynamic_run_of_such_a_plan_has_one_memory() -> None:
    trace = moved_tensors().trace("dynamic")
    assert not trace.facts.memories and not trace.details().moves and not trace.details().reasons


def test_memories_come_back_from_a_saved_trace(tmp_path: Path) -> None:
    trace = moved_tensors().trace()
    again = engine.read_trace(save_trace(trace, tmp_path / "t.json"))
    assert again.facts == trace.facts and list(again) == list(trace)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": 1}, "'sram' has 12288 of 1 bytes"),
        ({"start": "0"}, "facts.memories.start: '0' is not a whole number"),
        ({"more": 1}, "no fact of a memory is called 'more'"),
        ({"arena_bytes": 10**6}, "'dram' begins at 12288, inside the one before"),
    ],
)
def test_memories_that_cannot_be_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = save_trace(moved_tensors().trace(), tmp_path / "t.json")
    data = json.loads(path.read_text())
    data["facts"]["memories"][0] |= change
    path.write_text(json.dumps(data))
    with pytest.raises(TraceFormatError, match=message):
        engine.read_trace(path)


def test_stripes_of_cascades_hold_all_their_operators() -> None:
    plan = cascaded_plan()
    (cascaded,) = plan.optimisation[0].cascades
    runs = plan.trace().details().stripes
    for number, (first, last, count) in enumerate(cascaded.runs):
        mine = [run for run in runs if run.number == number]
        assert [run.stripe for run in mine] == list(range(count)) and {run.cascade for run in mine} == {
            f"{first} to {last}"
        }
        rows = [row for run in mine for row in range(*run.rows)]
        assert rows == list(range(len(rows)))
    names = {name: (s.cascade, s.stripe) for s in cascaded.stripes for name in s.operators}
    ticks = {tick: (run.number, run.stripe) for run in runs for tick in range(run.begin, run.end)}
    calls = [call for call in plan.lowered.calls if call.name in names]
    assert calls and all(ticks[call.tick] == names[call.name] for call in calls)
