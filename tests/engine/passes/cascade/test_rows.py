"""The rows that windows read."""

from hypothesis import given
from hypothesis import strategies as st

import engine
from engine.graph.operator import Operator
from engine.passes.cascade.rows import Stripe, part_of, spans
from ops.pool.nhwc import NHWC_MAX_POOL


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


def test_stripes_cover_all_rows() -> None:
    assert list(spans(10, 4)) == [(0, 4), (4, 8), (8, 10)]
