"""The rows that windows read."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.graph.operator import Operator
from engine.passes.cascade.rows import Part, Stripe, in_stripes, part_of, spans
from ops.convolution.nhwc_transpose import NHWC_CONV_TRANSPOSE
from ops.convolution.transpose_shapes import nhwc_case_of
from ops.pool.nhwc import NHWC_MAX_POOL
from tests.engine.passes.cascade.random_chains import longest_cascade, random_chain


@st.composite
def _pools(draw: st.DrawFn) -> Operator:
    rows, kernel, stride, dilation = (draw(st.integers(low, high)) for low, high in ((5, 20), (1, 3), (1, 3), (1, 2)))
    begin, end = draw(st.integers(0, kernel - 1)), draw(st.integers(0, kernel - 1))
    graph = engine.Graph()
    x = graph.input("x", (1, rows, 7, 2))
    attrs = {
        "kernel_shape": (kernel, 2),
        "strides": (stride, 1),
        "dilations": (dilation, 1),
        "pads": (begin, 0, end, 0),
        "ceil_mode": draw(st.booleans()),
    }
    graph.add(NHWC_MAX_POOL, [x], attrs)
    return graph.operators[0]


@given(_pools(), st.data())
def test_windows_read_the_rows_under_their_taps(operator: Operator, data: st.DataObject) -> None:
    (x,), (y,), attrs = operator.inputs, operator.outputs, operator.attrs
    first = data.draw(st.integers(0, y.shape[1] - 1))
    last = data.draw(st.integers(first + 1, y.shape[1]))
    taps = [
        row * attrs["strides"][0] - attrs["pads"][0] + tap * attrs["dilations"][0]
        for row in range(first, last)
        for tap in range(attrs["kernel_shape"][0])
    ]
    inside = [tap for tap in taps if 0 <= tap < x.shape[1]]
    part = part_of(operator, first, last)
    if part is None:
        assert not inside or y.shape[1] < 2
        return
    low, high = max(*taps[:1], 0), min(taps[-1] + 1, x.shape[1])
    assert part.read == ((low, high),)
    rows = x.spec.with_shape((1, high - low, *x.shape[2:]))
    assert operator.schema.sign([rows], part.attrs).y.shape == (1, last - first, *y.shape[2:])


def test_a_stripe_needs_the_hull_of_what_all_its_readers_need() -> None:
    graph = engine.Graph()
    x = graph.input("x", (1, 12, 8, 4))
    attrs = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    (pooled,) = graph.add(NHWC_MAX_POOL, [x], attrs)
    (again,) = graph.add(NHWC_MAX_POOL, [pooled], attrs)
    total = again + pooled + x
    stripe = Stripe({total: (4, 6)})
    assert all(stripe.take(operator) for operator in reversed(graph.operators))
    assert [stripe.needed[v] for v in (total, again, pooled, x)] == [(4, 6), (4, 6), (3, 7), (2, 8)]
    assert not Stripe({}).take(graph.operators[0])


def _writes_blocks(part: Part) -> bool:
    """Returns whether an operator writes several rows at once."""
    alone = part_of(part.operator, part.written[0], part.written[0] + 1)
    return alone is None or alone.written[1] > alone.written[0] + 1


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_where_all_rows_are_kept_none_is_computed_twice(seed: int, height: int) -> None:
    """Each row of a tensor is new in one stripe; what a stripe reads is new, or kept from the stripe in front."""
    graph = engine.optimise(random_chain(seed, layers=3))
    operators = graph.operators[slice(*longest_cascade(graph))]
    assume(len(operators) > 1)
    (result,) = operators[-1].outputs
    rolling = [operator.outputs[0] for operator in operators[:-1]]
    stripes = in_stripes(operators, height, rolling)
    assume(stripes is not None)  # a stripe may read nothing but pads
    assert stripes is not None
    rows = dict.fromkeys(rolling, 0)
    for number, stripe in enumerate(stripes.stripes):
        for part in stripe.parts[::-1]:
            (output,) = part.operator.outputs
            for var, span in zip(part.operator.inputs, part.read, strict=True):
                if span and var in rows:
                    assert stripes.first[var][number] <= span[0] and span[1] <= rows[var]
            if output is not result:
                assert part.written[0] <= rows[output] < part.written[1]
                assert part.written[0] == rows[output] or _writes_blocks(part)
                rows[output] = part.written[1]


def test_a_stripe_may_compute_nothing_of_an_operator_whose_last_row_reads_nothing_but_pads() -> None:
    graph = engine.Graph()
    x = graph.input("x", (1, 9, 7, 2))
    (same,) = graph.add(NHWC_MAX_POOL, [x], {"kernel_shape": (1, 1)})
    graph.add(NHWC_MAX_POOL, [same], {"kernel_shape": (1, 1), "strides": (2, 1), "pads": (0, 0, 2, 0)})
    stripes = in_stripes(graph.operators, 1, [same])
    assert stripes is not None
    assert stripes.wanted == [(0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 4), (4, 4), (4, 6)]
    assert [len(stripe.parts) for stripe in stripes.stripes] == [2, 1] * 4 + [2]


def test_stripes_cover_all_rows() -> None:
    assert list(spans(10, 4)) == [(0, 4), (4, 8), (8, 10)]


@st.composite
def _transposed_convs(draw: st.DrawFn) -> Operator:
    rows, kernel, stride, dilation = (draw(st.integers(low, high)) for low, high in ((4, 12), (1, 4), (1, 3), (1, 2)))
    begin, end = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    graph = engine.Graph()
    x, w = graph.input("x", (1, rows, 5, 4)), graph.constant(np.ones((4, 3, kernel, 2), np.float32))
    attrs = {
        "strides": (stride, 2),
        "dilations": (dilation, 1),
        "pads": (begin, 0, end, 1),
        "output_padding": (draw(st.integers(0, stride - 1)), 1),
        "auto_pad": "NOTSET",
    }
    if draw(st.booleans()):
        attrs |= {"pads": (), "auto_pad": draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER"]))}
    graph.add(NHWC_CONV_TRANSPOSE, [x, w], attrs)
    return graph.operators[0]


@given(_transposed_convs(), st.data())
def test_rows_of_transposed_convolutions_come_from_all_windows_that_reach_them(
    operator: Operator, data: st.DataObject
) -> None:
    (x, w), (y,) = operator.inputs, operator.outputs
    first = data.draw(st.integers(0, y.shape[1] - 1))
    last = data.draw(st.integers(first + 1, y.shape[1]))
    windows = nhwc_case_of(operator.signature).windows
    reached = {
        row: {row * windows.strides[0] - windows.begins[0] + tap * windows.dilations[0] for tap in range(w.shape[2])}
        for row in range(x.shape[1])
    }
    wanted = [row for row, outputs in reached.items() if outputs & set(range(first, last))]
    part = part_of(operator, first, last)
    if part is None:
        residues = {tap * windows.dilations[0] % windows.strides[0] for tap in range(w.shape[2])}
        assert not wanted or len(residues) < windows.strides[0] or y.shape[1] < 2
        return
    assert part.read[0] is not None
    assert part.read[1] is None
    low, high = part.read[0]
    assert set(wanted) <= set(range(low, high))
    signature = operator.schema.sign([x.spec.with_shape((1, high - low, *x.shape[2:])), w.spec], part.attrs)
    assert signature.y.shape == (1, last - first, *y.shape[2:])
    assert nhwc_case_of(signature).windows.begins[0] == windows.begins[0] + first - low * windows.strides[0]


def test_operators_that_write_several_rows_at_once_write_all_that_are_wanted() -> None:
    graph = engine.Graph()
    x = graph.input("x", (1, 6, 4, 12))
    larger = ops.resize(x, (1, 18, 4, 12))
    deeper = ops.reshape(x, (1, 3, 2, 4, 12))
    for result, wanted, written, read in (
        (larger, (4, 5), (3, 6), (1, 2)),
        (larger, (2, 7), (0, 9), (0, 3)),
        (deeper, (1, 2), (1, 2), (2, 4)),
        (ops.reshape(deeper, (1, 6, 48, 1)), (3, 4), (2, 4), (1, 2)),
        (ops.reshape(x, (1, 9, 32)), (1, 2), (0, 3), (0, 2)),
    ):
        operator = {each.outputs[0].name: each for each in graph.operators}[result.name]
        part = part_of(operator, *wanted)
        assert part is not None
        assert (part.written, part.read) == (written, (read,))


def test_rows_of_a_transposed_image_lie_along_another_axis() -> None:
    graph = engine.Graph()
    x = graph.input("x", (1, 3, 8, 6))
    y = ops.transpose(x, (0, 2, 3, 1))
    stripe = Stripe({y: (2, 4)})
    assert stripe.take(graph.operators[0])
    (part,) = stripe.parts
    assert (part.read, part.axes) == (((2, 4),), (2,))
    assert stripe.whole == {x}
