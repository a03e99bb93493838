"""The largest lengths that fit a budget: against plans of all lengths."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arenaplan as ap
from arenaplan import ops
from engine.budgets.fit import Axis, _Search, search_fit
from engine.budgets.fitted import Point, fit_chart
from engine.planning.options import Options
from engine.text.errors import GraphError, OptionError


def _graph() -> ap.Graph:
    graph = ap.Graph("two")
    x = graph.input("x", ("batch", "seq", 8))
    x = ops.tanh(x @ np.ones((8, 32), np.float32)) @ np.ones((32, 8), np.float32)
    graph.output(ops.softmax(x), "y")
    return graph


def _arena(**lengths: int) -> int:
    return ap.make_plan(ap.bind(_graph(), lengths)).arena_bytes


def test_the_largest_length_fits_and_the_next_one_does_not() -> None:
    budget = 100_000
    result = ap.fit(_graph(), budget, {"batch": (1, 500), "seq": 4})
    (point,) = result.largest
    best = point.lengths["batch"]
    assert point.arena_bytes == _arena(batch=best, seq=4) <= budget < _arena(batch=best + 1, seq=4)
    assert {best - 2, best - 1, best + 1, best + 4} <= {p.lengths["batch"] for p in result.planned}
    assert not result.uneven and "grows evenly" in str(result)


def test_a_list_of_lengths_is_searched_for_its_largest() -> None:
    result = ap.fit(_graph(), 100_000, {"batch": [64, 1, 32, 16, 8], "seq": 4})
    (point,) = result.largest
    assert point.lengths["batch"] == max(n for n in (1, 8, 16, 32, 64) if _arena(batch=n, seq=4) <= 100_000)


def test_two_names_give_a_frontier() -> None:
    result = ap.fit(_graph(), 100_000, {"batch": (1, 64), "seq": (1, 300)})
    assert [p.lengths["batch"] for p in result.largest] == [1, 2, 4, 8, 16, 32, 64]
    for point in result.largest:
        batch, seq = point.lengths.values()
        assert _arena(batch=batch, seq=seq) == point.arena_bytes <= 100_000
        assert seq == 300 or _arena(batch=batch, seq=seq + 1) > 100_000


def test_where_nothing_fits_the_least_length_is_told() -> None:
    result = ap.fit(_graph(), 64, {"batch": (1, 9), "seq": 4})
    assert not result.largest and result.to_json()["fits"] is False
    assert "does not fit in 64 B: the arena of batch=1 has " in str(result)


def test_all_lengths_that_fit_are_said_to() -> None:
    result = ap.fit(_graph(), "1 GiB", {"batch": (1, 9), "seq": 4})
    assert result.largest[0].lengths == {"batch": 9} and "the largest that was asked for" in str(result)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 40))
def test_the_answer_fits_whatever_arenas_do(arenas: list[int], budget: int) -> None:
    """With arenas that may rise and fall, what is found fits, and no neighbour above it does."""
    search = _Search(lambda _: ap.Graph(), budget, Options())
    axis = Axis("n", range(len(arenas)))
    search.points = {(n,): Point({"n": n}, size) for n, size in enumerate(arenas)}
    result = search.largest(axis, {})
    assert bool(result) == (arenas[0] <= budget)
    if result:
        n = result[0].lengths["n"]
        assert arenas[n] <= budget and all(size > budget for size in arenas[n + 1 : n + 5])
    if result and arenas == sorted(arenas):
        assert n == max(i for i, size in enumerate(arenas) if size <= budget)


def test_an_arena_that_falls_is_said_to_be_uneven(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(_: object, lengths: Mapping[str, int]) -> Point:
        n = lengths["n"]
        return Point(lengths, 50 if n == 9 else 10 * n)

    monkeypatch.setattr(_Search, "_planned", planned)
    result = search_fit("m", lambda _: ap.Graph(), 72, [Axis("n", range(1, 40))], Options())
    assert [p.lengths["n"] for p in result.largest] == [9]
    assert [(a.lengths["n"], b.lengths["n"]) for a, b in result.uneven] == [(8, 9)]
    assert "does not grow evenly: n=9 needs 50 B, n=8 needs 80 B" in str(result)


def test_lengths_that_a_model_refuses_do_not_fit() -> None:
    def load(lengths: Mapping[str, int]) -> ap.Graph:
        if lengths["batch"] > 5:
            raise GraphError("six are too many")
        return ap.bind(_graph(), {"seq": 4, **lengths})

    result = search_fit("m", load, 2**30, [Axis("batch", range(1, 100))], Options())
    assert result.largest[0].lengths == {"batch": 5} and "six are too many" in str(result)
    with pytest.raises(GraphError, match="six are too many"):
        search_fit("m", load, 2**30, [Axis("batch", range(6, 100))], Options())


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(GraphError, match=r"open dimensions of 'two' \(batch, seq\); see 'seq'"):
        ap.fit(_graph(), 64, {"batch": (1, 4)})
    with pytest.raises(OptionError, match="one length or two can be varied at once, and not 0"):
        ap.fit(_graph(), 64, {"batch": 1, "seq": 2})
    with pytest.raises(OptionError, match="batch has no length to try"):
        ap.fit(_graph(), 64, {"batch": (4, 1), "seq": 2})


@pytest.mark.parametrize("lengths", [{"batch": (1, 20), "seq": 4}, {"batch": (1, 4), "seq": (1, 40)}])
def test_the_picture_has_each_point(lengths: dict[str, tuple[int, int] | int]) -> None:
    pytest.importorskip("matplotlib")
    result = ap.fit(_graph(), 20_000, lengths)
    (axes,) = fit_chart(result).axes
    shown = result.planned if len(result.names) == 1 else result.largest
    assert len(axes.lines[0].get_xdata()) == len(shown)
