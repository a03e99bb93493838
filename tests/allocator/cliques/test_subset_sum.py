from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from allocator.cliques.subset_sum import largest_sum, smallest_sum

weights = st.lists(st.integers(0, 12), max_size=8)


def totals(some: list[int]) -> set[int]:
    return {sum(c) for k in range(len(some) + 1) for c in combinations(some, k)}


@given(weights, st.integers(0, 60))
def test_the_largest_sum_is_the_largest_that_fits(some: list[int], room: int) -> None:
    assert largest_sum(some, room) == max(t for t in totals(some) if t <= room)


@given(weights, st.data())
def test_the_smallest_sum_is_the_smallest_that_is_enough(some: list[int], data: st.DataObject) -> None:
    least = data.draw(st.integers(-3, sum(some)))
    assert smallest_sum(some, least) == min(t for t in totals(some) if t >= least)


@given(weights, st.integers(0, 100), st.data())
def test_subset_sums_with_too_much_work_are_loose_and_never_wrong(
    some: list[int], work: int, data: st.DataObject
) -> None:
    room = data.draw(st.integers(0, sum(some)))
    assert max(t for t in totals(some) if t <= room) <= largest_sum(some, room, work) <= room
    assert room <= smallest_sum(some, room, work) <= min(t for t in totals(some) if t >= room)


def test_subset_sums_of_many_equal_weights_take_few_steps() -> None:
    assert largest_sum([3 << 20] * 100_000 + [5 << 20], 7 << 20) == 6 << 20
