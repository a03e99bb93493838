"""The text and the data of a report have each number in its place."""

from attrs import asdict, evolve, fields

import engine
from engine import Report, zoo
from tests.helpers.graphs.sample_report import sample_report

TEXT = """\
sample: 11 operators, 13.7 million operations a run
  computed by numba (7 calls, 87.5% of the work), numpy (4 calls, 12.5% of the work)
  arena                       6000 B     5.86 KiB   strategy first, feasible
  lower bound                 4800 B     4.69 KiB   arena is 25.00% above; the bound may be unattainable
  dynamic peak                7168 B     7.00 KiB   reference counting, nothing overwritten
  naive                      24000 B    23.44 KiB   every tensor except views has bytes of its own
  weights                  3145728 B     3.00 MiB   of the model, outside of the arena
  prepacked                2621440 B     2.50 MiB   copies of weights that kernels make when they are bound
  resident weights         3670016 B     3.50 MiB   what stays in memory of both and of their sources
  largest workspace           1536 B     1.50 KiB   without workspaces the arena is 5.00 KiB
  alignment loss                48 B         48 B   at the peak, alignment 32
  fragmentation                 96 B         96 B   other bytes that are idle at the peak
  order given                 9216 B     9.00 KiB   most bytes alive at once, before anything is nested
  order chosen                8192 B     8.00 KiB   the same in the order 'memory'
  any order                   8064 B     7.88 KiB   no order has fewer bytes alive: it may be unattainable
  joined in place             2048 B     2.00 KiB   2 inputs of concatenations are written directly into their outputs
  views                       3072 B     3.00 KiB   3 outputs are views and are not copied
  overwritten                 4096 B     4.00 KiB   4 outputs are computed in place
  copied                      5120 B     5.00 KiB   5 inputs are copied into place
  layout conversions           640 B        640 B   1 tensor is copied into another order of axes: c for reader
  without the budget         12288 B    12.00 KiB   1 operator runs again, 12.5% more operations
  with eviction               6080 B     5.94 KiB   dtr: 3 evictions, 5 operators run again, 25.0% more work
  smallest budget             5888 B     5.75 KiB   that bisection finds for dtr: 50.0% more work
peak in tick 17 (conv_3 conv): 5856 B alive
  tensor  operator   shape   bytes  share  lifetime  offset
  a       op_1 relu  2x3     4392   75.0%  [15, 19)  128
  b       op_2 add   scalar  1464   25.0%  [16, 18)  4544
by layer:
  layer       operators   work  at the peak  share
  block.0             6  90.0%     5.00 KiB  87.5%
  (no layer)          5  10.0%        732 B  12.5%
"""


def test_the_text_of_a_report_has_every_number_in_its_line() -> None:
    assert sample_report().text() == TEXT


def test_the_text_of_a_report_of_concurrent_calls_has_its_numbers() -> None:
    report = evolve(sample_report(), parallel="exact", parallelism_by_count=2.25, parallelism_by_cost=1.5)
    lines = report.text().splitlines()
    assert lines[1] == "  at once (exact): 2.25 calls on average, 1.50 by cost"
    peak = "peak: 5856 B may be alive at once, the last of them written in tick 17 (conv_3 conv)"
    assert lines[-8] == peak


def test_tensors_that_the_text_of_a_report_leaves_out_are_counted_with_their_bytes() -> None:
    assert sample_report().text(1).splitlines()[-6:] == [
        "  a       op_1 relu  2x3    4392   75.0%  [15, 19)  128",
        "  ... and 1 smaller ones, 1.43 KiB",
        "by layer:",
        "  layer    operators   work  at the peak  share",
        "  block.0          6  90.0%     5.00 KiB  87.5%",
        "  ... and 1 other layer, 732 B and 10.0% of the work",
    ]


def test_the_data_of_a_report_has_every_field_under_its_name() -> None:
    report = sample_report()
    data = report.to_json()
    assert list(data) == [field.name for field in fields(Report)]
    for name, value in data.items():
        whole = asdict(report)[name]
        if name == "recomputed":
            assert value == ({"operators": ("r",), "flops": 29, "share": 0.125, "plain_bytes": 12_288},)
        else:
            assert value == whole, name


def test_a_report_has_the_numbers_of_its_plan() -> None:
    plan = engine.make_plan(zoo.squeezenet(image=64), nest=False)
    report = plan.report()
    assert (report.arena_bytes, report.lower_bound) == (plan.plan.arena_bytes, plan.plan.lower_bound)
    assert report.operators == len(plan.lowered.graph.operators)
    own = [v for v in plan.lowered.values if v.id in plan.ids and not v.is_view]
    assert report.naive_bytes == sum(v.spec.nbytes for v in own)
    workspaces = [v.spec.nbytes for v in plan.lowered.values if v.role.value == "workspace"]
    assert report.workspace_bytes == max(workspaces)
    assert sum(use.workspace_bytes for use in report.kernels) == sum(workspaces)
    assert sum(share.calls for share in report.backends) == len(plan.lowered.calls) == len(report.kernels)
    alive = (plan.problem.begin <= report.peak_tick) & (report.peak_tick < plan.problem.end)
    assert report.peak_bytes <= int(plan.problem.size[alive].sum())
    by_offset = {t.offset: t for t in report.peak_tensors}
    for offset, begin, end, size in zip(
        plan.plan.offset.tolist(),
        plan.problem.begin.tolist(),
        plan.problem.end.tolist(),
        plan.problem.size.tolist(),
        strict=True,
    ):
        if begin < report.peak_tick < end - 1:
            tensor = by_offset[offset]
            assert (tensor.begin, tensor.end, tensor.bytes) == (begin, end, size)
            assert tensor.share == size / report.peak_bytes
