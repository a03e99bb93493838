"""A report in which every number is another one, so that a number in the wrong place shows in what is printed."""

from attrs import evolve

import engine
import ops
from engine import Graph, Report
from engine.lower.order import Ordering
from engine.planning.placed import Evicted, Recomputed
from engine.report.kernels import BackendShare
from engine.report.layers import Layer
from engine.report.layout_copies import Conversion
from engine.report.peak import PeakTensor
from engine.report.savings import Saving, Savings


def sample_report() -> Report:
    """Returns a report of made-up numbers."""
    graph = Graph("sample")
    graph.output(ops.relu(graph.input("x", (4,))), "y")
    return evolve(
        engine.make_plan(graph, optimise=0).report(),
        operators=11,
        flops=13_700_000,
        arena_bytes=6000,
        lower_bound=4800,
        gap=0.25,
        naive_bytes=24_000,
        dynamic_peak_bytes=7168,
        weights_bytes=3 << 20,
        prepacked_bytes=5 << 19,
        resident_weights_bytes=7 << 19,
        workspace_bytes=1536,
        arena_without_workspace=5120,
        alignment=32,
        alignment_loss=48,
        fragmentation=96,
        strategy="first",
        status="feasible",
        peak_tick=17,
        peak_operator="conv_3",
        peak_kind="conv",
        peak_bytes=5856,
        peak_tensors=(
            PeakTensor("a", "op_1", "relu", (2, 3), "float32", "activation", 4392, 0.75, 15, 19, 128),
            PeakTensor("b", "op_2", "add", (), "float32", "activation", 1464, 0.25, 16, 18, 4544),
        ),
        orderings=(Ordering("memory", 9216, 8192, 8064),),
        savings=Savings(Saving(2, 2048), Saving(3, 3072), Saving(4, 4096), Saving(5, 5120)),
        conversions=(Conversion("c", 640, "reader"),),
        recomputed=(Recomputed(("r",), 29, 0.125, 12_288, graph, ("r",)),),
        evicted=(Evicted("dtr", 6144, 3, 5, 1.25, 6080, 5888, 1.5),),
        backends=(BackendShare("numba", 7, 0.875), BackendShare("numpy", 4, 0.125)),
        layers=(Layer("block.0", 6, 12_330_000, 0.9, 5124, 0.875), Layer("", 5, 1_370_000, 0.1, 732, 0.125)),
    )
