"""The measurement of cascades, on networks of codes, with images outside of the arena, and of what calls take."""

from pathlib import Path

import numpy as np
import pytest

import engine
from engine.lower.costs import graph_cost
from tools import bench_cascades, run_networks
from tools.bench_cascade_costs import KINDS, LAYERS, Costs, chain, run_ns, show
from tools.run_networks import loaded, network_file


@pytest.mark.slow
def test_a_network_of_codes_computes_what_the_network_does_that_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(run_networks, "FOLDER", tmp_path)
    graph, feeds = loaded(network_file("person_detector_int8"))
    codes = bench_cascades.network("person_detector_codes")
    (name,) = codes.inputs
    (first,) = (o for o in graph.operators if o.outputs[0].name == name)
    scale, zero = (graph.constants[v] for v in first.inputs[1:])
    quantised = np.clip(np.rint(feeds["x"] / scale) + zero, 0, 255).astype(np.uint8)
    (wanted,), (scores,) = (
        tuple(engine.compile(g).run(f).values()) for g, f in ((graph, feeds), (codes, {name: quantised}))
    )
    np.testing.assert_array_equal(scores, wanted)
    inside, outside = (
        row
        for end in ("", bench_cascades.OUTSIDE)
        for row in bench_cascades.measure(f"person_detector_codes{end}", [25], 1, 1)
    )
    assert outside.arena_bytes < inside.arena_bytes < inside.plain_bytes
    assert 0 < outside.share <= 0.25 and outside.more_calls > 0 and outside.run_ms > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_has_fused_layers_and_a_call_each(kind: str) -> None:
    graph = chain(kind, 8, 6, 5)
    assert sum("conv" in o.schema.name for o in graph.operators) == LAYERS
    ((seconds, calls),) = run_ns([graph], 1)
    assert seconds > 0 and calls >= LAYERS
    assert graph_cost(graph).flops >= 2 * LAYERS * 8 * 8 * 6 * 5


def test_costs_are_shown_in_operations() -> None:
    (_, row) = show([Costs("codes", 100.0, 60.0, 0.02, 0.001)]).splitlines()
    assert row.split() == ["codes", "100", "60", "0.020", "0.001", "6,000", "2.0", "0.1"]
