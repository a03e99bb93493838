"""What a budget costs: the command on a small chain, simulated and executed, and the words on its numbers."""

import json
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from engine.text.palette import PAINTS
from tools import bench_budgets, bench_remat
from tools.bench_budgets import EXECUTED, PLAN, WAYS, Cost, main, slower, verdict
from tools.budgets_chart import budgets_chart

CHAIN = {"chain": partial(bench_remat.chain, 12, 16, 64)}


@pytest.mark.slow
def test_budgets_are_simulated_and_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_budgets, "CASES", CHAIN)
    monkeypatch.setattr(bench_budgets, "EXECUTED_CASES", CHAIN)
    file = tmp_path / "budgets.json"
    assert main(["chain", "--budgets", "100,70", "--rounds", "1", "-q", "-o", str(file)]) == 0
    data = json.loads(file.read_text())
    costs, times = [Cost(**row) for row in data["costs"]], data["times"]
    assert [c.way for c in costs if c.percent == 70 and not c.is_smallest] == list(WAYS)
    planned = {c.percent: c.slowdown for c in costs if c.way == PLAN and not c.is_smallest}
    assert planned[100] == 1 < planned[70] < 1.5
    assert all(0.2 < c.budget / c.plain_bytes < 1 and c.slowdown > 1 for c in costs if c.is_smallest)
    assert {(t["way"], t["percent"]) for t in times} == {(way, p) for way in EXECUTED for p in (70, 50)}
    assert all(t["time"] > 0 for t in times if t["slowdown"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[-2:] == ["smallest", "budget"] and len(lines) > 2 * len(WAYS) - 4


def test_the_verdict_says_where_eviction_does_less_work_than_the_plan() -> None:
    def cost(way: str, percent: float, slowdown: float, *, least: bool = False) -> Cost:
        return Cost("net", way, percent, int(percent), 100, slowdown, is_smallest=least)

    costs = [cost(PLAN, 70, 1.2), cost("dtr", 70, 1.3), cost(PLAN, 30, 1.6, least=True)]
    assert slower(costs) == [] and verdict(costs).startswith("Within no budget of the table")
    costs += [cost("lru", 70, 1.1), cost(PLAN, 40, 0.0), cost("dtr", 40, 1.5), cost("dtr", 25, 3.0, least=True)]
    assert slower(costs) == ["net within 70 %: lru 1.100, plan 1.200", "net within 40 %: dtr 1.500, plan none"]
    assert verdict(costs).endswith("smallest budget of the plan: net, dtr: 25 %, 3.00 of the work.")


def test_the_chart_has_a_line_a_way_in_light_and_dark_paints() -> None:
    costs = [Cost("net", way, p, p, 100, s) for way in WAYS for p, s in ((100, 1.0), (60, 1.5), (40, 3.0))]
    text = budgets_chart(costs, "words").decode()
    assert ET.fromstring(text).tag.endswith("svg") and "<desc>words</desc>" in text
    assert PAINTS["ink"].light in text and PAINTS["ink"].dark in text
    assert all(f">eviction at run time: {way}<" in text for way in WAYS[1:])


@pytest.mark.parametrize("arguments", [["vgg"], ["--budgets", "0"], ["--budgets", "x,70"], ["--rounds", "-1"]])
def test_wrong_options_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "Traceback" not in capsys.readouterr().err
