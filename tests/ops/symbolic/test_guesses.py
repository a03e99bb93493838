from math import prod

from hypothesis import given
from hypothesis import strategies as st

from ops.symbolic.guesses import choices, factors, numbers_to, parts, repeats, small_numbers
from ops.tensor.dims import ROUND, SAMPLES, Samples, leaf

LENGTHS = st.integers(0, 5000)
SHAPES = st.lists(st.one_of(st.integers(0, 12), st.just("n")), max_size=4)
TABLE = Samples()
NAME = leaf("n", TABLE.invent(), TABLE, "n")


@given(LENGTHS, st.integers(0, 1), st.integers(0, 20))
def test_numbers_lie_between_the_least_and_the_most(most: int, least: int, turn: int) -> None:
    numbers = numbers_to(most, least, turn)
    assert len(numbers) == SAMPLES
    assert all(min(least, most) <= n <= most for n in numbers)
    assert numbers[-1] == min(least, most)
    assert most < 2 or numbers[0] < most
    assert most <= least or len(set(numbers)) > 1 or least


def test_numbers_get_smaller_and_are_round_at_first() -> None:
    assert numbers_to(1000) == (896, 768, 640, 576, 448, 384, 300, 200, 100, 0)
    assert numbers_to(NAME)[:ROUND] == (172, 256, 256, 1792, 40960, 183488)


@given(LENGTHS, st.integers(1, 5))
def test_guessed_parts_add_up(whole: int, count: int) -> None:
    for shares in zip(*parts(whole, count), strict=True):
        assert sum(shares) == whole
        assert min(shares) >= 0


@given(SHAPES, st.integers(0, 4))
def test_guessed_factors_have_as_many_elements(shape: list[int | str], count: int) -> None:
    dims = [NAME if d == "n" else int(d) for d in shape]
    for j, lengths in enumerate(zip(*factors(dims, count), strict=True)):
        wanted = prod(d if isinstance(d, int) else d.samples[j] for d in dims)
        assert prod(lengths) == wanted or not count


def test_guessed_factors_leave_room_for_known_lengths() -> None:
    (rows,) = factors((6, 4), 1, (8,))
    assert set(rows) == {3}
    (rows,) = factors((NAME, 4), 1, (NAME, 2))
    assert set(rows) == {2}


def test_guessed_factors_of_a_product_of_large_primes_come_at_once() -> None:
    large = 2**61 - 1, 2**89 - 1
    for row in zip(*factors((*large, 12), 3, (4,)), strict=True):
        assert prod(row) == prod(large) * 3


@given(st.integers(0, 4), st.integers(4, 6))
def test_guessed_choices_differ(count: int, of: int) -> None:
    guesses = choices(count, of)
    for row in zip(*guesses, strict=True):
        assert len(set(row)) == count
        assert all(0 <= n < of for n in row)


@given(st.integers(0, 30))
def test_guessed_small_numbers_vary(turn: int) -> None:
    assert set(small_numbers(turn)) == {0, 1, 2, 3}
    assert len(set(repeats(turn))) > 2
    assert repeats(turn)[-1] == 1
