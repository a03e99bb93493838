"""The benchmark of whole graphs: it measures what it says, on a network that is quickly made."""

from attrs import asdict

from engine import make_plan
from tools.bench_graphs import measure, network, phases, show


def test_bench_graphs_runs_each_phase_alone() -> None:
    plan = make_plan(network("encoder"), optimise=0)
    again = phases(plan)
    assert again["place"]() == plan.places
    again["judge"]()


def test_bench_graphs_has_a_time_for_each_phase_and_a_line_in_the_table() -> None:
    row = measure("encoder", runs=1)
    assert row.operators == len(network("encoder").operators)
    assert all(v > 0 for v in list(asdict(row).values())[1:])
    head, line = show([row]).splitlines()
    assert head.split() == list(asdict(row)) and line.split()[0] == "encoder"
