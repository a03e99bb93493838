"""Each planted fault is caught by the judge that is there for it; what a judge lets pass runs right."""

import re
from collections import Counter

import pytest

import engine
from tests.faults import FAULTS
from tests.helpers.faults.base import DATA_FLOW, JUDGES, REFUSALS, Fault
from tests.helpers.faults.work import SEEDS, Planned, random_graph
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "internals" / "planning.md"
ON_RANDOM_GRAPHS = [f for f in FAULTS if f.judge is DATA_FLOW and isinstance(f.work, Planned)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught_by_its_judge(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.work()  # without the fault, nothing is refused
    fault.plant(monkeypatch)
    with pytest.raises(REFUSALS) as caught:
        fault.work()
    assert fault.judge.has_spoken(caught.value), f"{caught.value!r} is not of {fault.judge.name}"


@pytest.mark.parametrize("fault", ON_RANDOM_GRAPHS, ids=lambda fault: fault.name)
def test_a_faulty_plan_that_is_not_refused_runs_right(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(fault.work, Planned)
    fault.plant(monkeypatch)
    refused = 0
    for seed in range(SEEDS):
        graph = random_graph(seed)
        try:
            exe = engine.compile(graph, optimise=0, **fault.work.options)
        except REFUSALS:
            refused += 1
            continue
        feeds = random_feeds(graph)
        assert_same(exe.run(feeds), run_unplanned(graph, feeds))
    assert refused


def test_the_table_has_at_least_sixty_faults_and_each_judge_has_one() -> None:
    assert len(FAULTS) >= 60
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {fault.judge for fault in FAULTS} == set(JUDGES)


def test_the_table_names_files_that_exist() -> None:
    places = {fault.where for fault in FAULTS if "/" in fault.where} | {
        file for judge in JUDGES for file in judge.files
    }
    assert [place for place in sorted(places) if not (ROOT / place).is_file()] == []


def test_the_page_counts_the_faults_of_each_judge() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| `[^|]*` \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    counted = Counter(fault.judge.name for fault in FAULTS)
    assert {name: int(number) for name, number in rows} == counted
