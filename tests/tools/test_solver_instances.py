import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.bounds import lower_bound, profile
from allocator.check.offsets import check
from allocator.problem import Problem
from tools.solver_instances import COMPILER_LIVES, GENERATORS, HEIGHT, KINDS, RANDOM, compiler_lives_placed, draw

COLUMNS = ("begin", "end", "size", "alignment", "pinned")
buffers, seeds = st.integers(20, 400), st.integers(0, 1_000)


def are_equal(one: Problem, other: Problem) -> bool:
    return all(np.array_equal(getattr(one, c), getattr(other, c)) for c in COLUMNS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", GENERATORS)
@given(buffers, seeds)
def test_an_instance_has_as_many_buffers_as_asked_for(kind: str, count: int, seed: int) -> None:
    problem = draw(kind, count, seed)
    assert len(problem) == count and problem.size.min() >= 1
    assert are_equal(problem, draw(kind, count, seed))
    assert not are_equal(problem, draw(kind, count, seed + 1))


@given(buffers, seeds)
def test_cut_rectangles_fill_every_tick(count: int, seed: int) -> None:
    problem = draw("cut_rectangles", count, seed)
    assert set(profile(problem).tolist()) == {HEIGHT} and lower_bound(problem) == HEIGHT


@given(buffers, seeds)
def test_lives_of_a_compiler_fit_where_they_were_drawn(count: int, seed: int) -> None:
    problem, offset = compiler_lives_placed(count, np.random.default_rng(seed))
    assert check(problem, offset, HEIGHT) is None
    assert are_equal(problem, draw(COMPILER_LIVES, count, seed))


@pytest.mark.parametrize("kind", GENERATORS)
def test_many_buffers_are_drawn(kind: str) -> None:
    assert len(draw(kind, 20_000, 0)) == 20_000


@pytest.mark.slow
@given(seeds)
def test_kinds_are_what_their_names_say(seed: int) -> None:
    drawn = {kind: draw(kind, 400, seed) for kind in KINDS}
    assert len(set(drawn["equal_sizes"].size.tolist())) == 1
    assert len(set(drawn["mixed_alignment"].alignment.tolist())) > 2
    size = np.sort(drawn["giants"].size)
    assert size[-400 // 25] >= 100 and size[: -400 // 25].max() <= 4096 < size[-1]
    length = np.sort(drawn["power_law_lifetimes"].end - drawn["power_law_lifetimes"].begin)
    assert length[-1] > 20 * length[len(length) // 2]
    decades = np.log10(drawn["log_uniform"].size).astype(int)
    assert set(decades.tolist()) >= {1, 2, 3, 4, 5}


@given(buffers, seeds)
def test_what_waits_in_a_u_is_nested(count: int, seed: int) -> None:
    problem = draw("nested_u", count, seed)
    begin, end = problem.begin[: count // 4], problem.end[: count // 4]
    assert (np.diff(begin) > 0).all() and (np.diff(end) < 0).all()


@given(buffers, seeds)
def test_what_is_kept_for_the_backward_pass_mirrors_the_forward_one(count: int, seed: int) -> None:
    problem, layers = draw("training_mirror", count, seed), count // 3
    assert (problem.begin[:layers] + problem.end[:layers] == 2 * layers).all()


@given(seeds)
def test_random_lifetimes_have_as_many_alive_as_the_module_says(seed: int) -> None:
    problem = draw(RANDOM, 1_000, seed)
    alive = profile(problem)[200:900]
    assert 50 < (alive / problem.size.mean()).mean() < 150
    assert problem.size.min() >= 1 and problem.size.max() <= 4096
