"""Prices of ticks in strip packing by covers."""

import pytest

from allocator.kernels.strip_packing import Cover, lose


def prices(prospects: list[int], lost: int, peak: int) -> list[int]:
    """Returns the prices of ticks that lose so many bytes each."""
    prospect, price, unused = prospects.copy(), [0] * len(prospects), [0] * len(prospects)
    lose(Cover(prospect, price, unused, unused, unused), 0, len(prospects), lost, peak)
    assert prospect == [bytes_before + lost for bytes_before in prospects]
    return price


@pytest.mark.parametrize("scale", [1, 2**30, 2**50])
def test_a_tick_that_is_two_percent_lower_has_half_of_the_price(scale: int) -> None:
    peak, lower, empty = prices([10_000 * scale, 9_800 * scale, 0], 0, 10_000 * scale)
    assert 1.8 < peak / lower < 2.2
    assert empty == 1


def test_lost_bytes_raise_the_price_up_to_a_limit() -> None:
    before, after, far, farther = (prices([1_000], lost, 1_000)[0] for lost in (0, 100, 600, 10**12))
    assert before < after < far == farther
