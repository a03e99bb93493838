import json
from pathlib import Path

import pytest

from allocator.memories.assign import assign
from allocator.memories.plan import BaselineName
from tools.bench_memories import BOARDS, LEAST, MOST, drawn, drawn_problem, main
from tools.solver_instances import KINDS


def test_bench_memories_tells_each_kind_and_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--instances", "9", "--nodes", "300", "-q", "-o", str(tmp_path / "rows.json")]) == 0
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    row = min(rows, key=lambda one: int(one["buffers"]))
    plan = assign(drawn_problem(row["kind"], row["buffers"], row["seed"], row["board"]), nodes=300)
    baselines = {baseline.name: baseline.cost for baseline in plan.baselines}
    assert (row["cost"], row["bound"], row["status"]) == (plan.cost, plan.bound, plan.status)
    assert (row["first_come"], row["density"]) == (baselines[BaselineName.FIRST_COME], baselines[BaselineName.DENSITY])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines[1:]] == [*KINDS, "all"]
    assert all(one["bound"] <= one["cost"] <= min(one["first_come"], one["density"]) for one in rows)


def test_instances_are_of_all_kinds_and_boards() -> None:
    instances = list(drawn(27, 0))
    assert {kind for kind, *_ in instances} == set(KINDS)
    assert {board for *_, board in instances} == set(BOARDS)
    assert all(LEAST <= buffers <= MOST for _, buffers, *_ in instances)
