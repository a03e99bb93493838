import json
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from allocator.solvers import solve
from tools.bench_kinds import LEAST, MOST, drawn, main
from tools.solver_instances import KINDS, draw


def test_bench_kinds_tells_each_kind_and_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--instances", "10", "--strategy", "greedy_by_size", "-q"]
    assert main([*options, "-o", str(tmp_path / "kinds.json")]) == 0
    rows = json.loads((tmp_path / "kinds.json").read_text())["rows"]
    for row in rows:
        plan = solve(draw(row["kind"], row["buffers"], row["seed"]), "greedy_by_size")
        assert (row["arena_bytes"], row["lower_bound"], row["status"]) == (
            plan.arena_bytes,
            plan.lower_bound,
            plan.status,
        )
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["kind", *KINDS, "all"]
    assert [line[1] for line in lines[1:]] == ["2", *["1"] * 8, "10"]
    proved = sum(row["status"] == "optimal" for row in rows)
    worst = max(row["arena_bytes"] / row["lower_bound"] - 1 for row in rows)
    assert lines[-1][2:4] == [str(proved), f"{worst:.2%}"]


def test_all_buffers_may_have_one_alignment(tmp_path: Path) -> None:
    options = ["--instances", "9", "--strategy", "greedy_by_size", "--alignment", "64", "-q"]
    assert main([*options, "-o", str(tmp_path / "kinds.json")]) == 0
    for row in json.loads((tmp_path / "kinds.json").read_text())["rows"]:
        problem = draw(row["kind"], row["buffers"], row["seed"])
        aligned = evolve(problem, alignment=np.full(len(problem), 64))
        assert row["arena_bytes"] == solve(aligned, "greedy_by_size").arena_bytes


def test_instances_are_small_and_large() -> None:
    sizes = [buffers for _, buffers, _ in drawn(200, 0)]
    assert min(sizes) >= LEAST and max(sizes) <= MOST
    assert 70 < sum(size < 200 for size in sizes) < 130
