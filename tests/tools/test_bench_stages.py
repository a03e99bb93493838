"""The benchmark of new lengths: it measures what it says, on networks that are quickly made."""

import pytest
from attrs import asdict

import engine
from engine import Graph, zoo
from engine.zoo.encoder import EncoderSize, encoder
from tools.bench_stages import BENCHES, Bench, bound_rows, measure, narrow_encoder, show, staged_rows
from tools.length_rows import decoding_rows, length_rows
from tools.open_networks import TransformerSize


def small() -> Graph:
    return encoder(EncoderSize(layers=1, width=24, heads=3, batch="batch", sequence="sequence"))


def test_bench_stages_has_a_time_for_each_phase_and_a_line_in_the_table() -> None:
    row = measure(Bench("small", small, ({"batch": 2, "sequence": 3}, {"batch": 1, "sequence": 5})), runs=2)
    assert row.operators == len(small().operators)
    assert min(row.bind, row.plan) > 0
    head, line = show([row]).splitlines()
    assert head.split() == list(asdict(row)) and line.split()[0] == "small"


def test_bounds_are_told_beside_exact_plans() -> None:
    rows = bound_rows(Bench("small", small, (), {"batch": (1, 2), "sequence": (4, 4)}))
    assert [(r.lengths, r.factor) for r in rows][-1] == ("batch=2, sequence=4", 1.0)
    assert rows[0].exact_bytes < rows[0].bounded_bytes == rows[1].exact_bytes


@pytest.mark.slow
def test_examples_run_in_stages_and_lose_little() -> None:
    rows = staged_rows()
    assert all(row.stages > 2 and row.loss < 0.1 for row in rows) and len(show(rows).splitlines()) == len(rows) + 1


def test_the_networks_have_names_and_the_encoder_is_as_large_as_is_said() -> None:
    assert [set(b.bounds) for b in BENCHES] == [set(b.lengths[0]) for b in BENCHES]
    graph = narrow_encoder()
    assert set(graph.symbols) == {"batch", "sequence"} and len(graph.operators) >= 300
    assert engine.bind(graph, BENCHES[0].lengths[0]).inputs["x"].shape == (1, 61, 48)
    assert set(zoo.NETWORKS) >= {b.name for b in BENCHES[1:]}


TINY = TransformerSize(2, 24, 3, words=40)


@pytest.mark.slow
def test_rows_of_lengths_have_both_ways_and_what_a_length_leaves_behind() -> None:
    rows = [row for row in length_rows({"tiny": TINY}) if row.engine.startswith("arenaplan")]
    assert [row.engine for row in rows] == ["arenaplan", "arenaplan, length_ranges"]
    assert all(row.network == "tiny" and min(row.first, row.again, row.kept_bytes) > 0 for row in rows)
    assert len(show(rows).splitlines()) == len(rows) + 1


def test_rows_of_decoding_give_the_same_tokens_in_each_way() -> None:
    rows = decoding_rows(TINY)  # compares the tokens
    assert len(rows) >= 2 and all(0 < row.token <= row.slowest for row in rows)
