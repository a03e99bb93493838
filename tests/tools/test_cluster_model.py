"""tools/cluster_model.py: simulated times of few tasks by hand, and what holds for any number of workers."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tools.cluster_model import SCALES, Costs, chart, curves, makespan, table, throughput

FREE = Costs(0.0, 0.0, 0.0, 1e9)


@pytest.mark.parametrize(
    ("costs", "lengths", "workers", "nbytes", "wanted"),
    [
        (FREE, [1, 1, 1, 1], 1, 0, 4.0),
        (FREE, [1, 1, 1, 1], 2, 0, 2.0),
        (FREE, [3, 1, 1, 1], 2, 0, 4.0),  # the third was sent to the first worker, behind its long task
        (evolve(FREE, worker=0.5), [1, 1], 1, 0, 3.0),
        (evolve(FREE, latency=2.0), [1], 1, 0, 5.0),
        (evolve(FREE, latency=2.0), [1, 1], 1, 0, 6.0),
        (evolve(FREE, sender=2.0), [1], 1, 0, 3.0),
        (evolve(FREE, bandwidth=10.0), [1], 1, 20, 3.0),
        (evolve(FREE, sender=2.0), [0, 0, 0, 0, 0], 5, 0, 10.0),
        (FREE, [], 3, 0, 0.0),
    ],
)
def test_times_of_few_tasks(costs: Costs, lengths: list[float], workers: int, nbytes: int, wanted: float) -> None:
    assert makespan(costs, lengths, workers, nbytes) == pytest.approx(wanted)


@given(
    st.lists(st.floats(0.01, 2.0), max_size=40),
    st.integers(1, 9),
    st.builds(Costs, st.floats(0, 0.1), st.floats(0, 0.1), st.floats(0, 0.1), st.floats(1e3, 1e9)),
    st.integers(0, 1000),
)
def test_no_time_is_below_what_the_sender_and_the_workers_need(
    lengths: list[float], workers: int, costs: Costs, nbytes: int
) -> None:
    took = makespan(costs, lengths, workers, nbytes)
    sent = len(lengths) * (costs.sender + nbytes / costs.bandwidth)
    worked = sum(lengths) + len(lengths) * costs.worker
    assert max(sent, worked / workers) - 1e-9 <= took <= sent + worked + 2 * len(lengths) * costs.latency + 1e-9


def test_throughput_grows_with_workers_until_the_sender_is_full() -> None:
    costs = evolve(FREE, sender=0.01)
    assert throughput(costs, 1.0, 1, 0) == 1
    assert throughput(costs, 1.0, 10, 0) == pytest.approx(10, rel=0.01)
    assert throughput(costs, 1.0, 1000, 0) == pytest.approx(100, rel=0.02)


@pytest.mark.slow
def test_the_table_and_the_chart_have_a_line_for_each_length_and_size() -> None:
    rows = list(curves(evolve(FREE, sender=0.004), (0.05, 1.0), (100, 10_000)))
    assert [(row["message_bytes"], row["task_seconds"]) for row in rows] == [
        (size, length) for size in (100, 10_000) for length in (0.05, 1.0)
    ]
    assert all([*row["throughput"]] == [*SCALES] for row in rows)
    lines = table(rows).splitlines()
    assert len(lines) == 6 and lines[2].startswith("| 0.05 s | 100 B | 2") and lines[3].endswith("| 200 |")
    pytest.importorskip("matplotlib")
    drawn = chart(rows, "Dask", {1: 1.0, 2: 1.8})
    assert drawn.startswith(b"\x89PNG") and lines[2].encode() in drawn
