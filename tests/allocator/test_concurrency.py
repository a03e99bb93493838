"""Steps that may run at once, against tables of all pairs; compiled kernels against plain ones."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator import concurrency
from allocator.concurrency import (
    NO_COLOUR,
    Dependences,
    colours,
    happens_before,
    heaviest_paths,
    levels,
    path_clock,
)
from allocator.errors import ProblemError, TooManyError
from allocator.kernels.mode import KernelMode
from tests.helpers.allocator.step_accesses import closure

Matrix = npt.NDArray[np.bool_]


def random_dependences(seed: int, count: int) -> Dependences:
    """Draws any number of edges; some stand there twice."""
    rng = np.random.default_rng(seed)
    rows = np.argwhere(np.triu(rng.random((count, count)) < rng.random() ** 2, 1))
    rows = np.concatenate((rows, rows[rng.random(len(rows)) < 0.2]))
    rng.shuffle(rows)
    return Dependences(count, rows[:, 0], rows[:, 1])


@st.composite
def dependences(draw: st.DrawFn, least: int = 0, most: int = 24) -> Dependences:
    return random_dependences(draw(st.integers(0, 2**31)), draw(st.integers(least, most)))


def order_of(dependences: Dependences) -> Matrix:
    """Returns [a, b]: step a is done before step b begins."""
    return closure(dependences.count, list(zip(dependences.before.tolist(), dependences.after.tolist(), strict=True)))


def heaviest_chain(order: Matrix, weight: list[int]) -> list[int]:
    """Returns, by step, the weight of the heaviest chain that ends there."""
    heaviest = list[int]()
    for step, own in enumerate(weight):
        heaviest.append(own + max((heaviest[b] for b in range(step) if order[b, step]), default=0))
    return heaviest


@given(dependences(most=130), st.integers(0, 2**31))
def test_happens_before_is_the_closure_of_the_dependences(deps: Dependences, seed: int) -> None:
    wanted, order = order_of(deps), happens_before(deps)
    ids = np.arange(deps.count)
    one, other = (c.reshape(-1) for c in np.meshgrid(ids, ids, indexing="ij"))
    assert (order.pairs(one, other).reshape(wanted.shape) == wanted).all()
    some = ids[np.random.default_rng(seed).random(deps.count) < 0.1]
    assert (order.after_all(some) == wanted[some].all(axis=0)).all()
    for step in ids.tolist():
        assert order.holds(some, step) == wanted[some, step].all()


@given(dependences())
def test_the_reverse_of_the_dependences_is_the_reverse_of_the_order(deps: Dependences) -> None:
    assert (order_of(deps.reversed()) == order_of(deps).T[::-1, ::-1]).all()


@given(dependences())
def test_the_level_of_a_step_is_the_longest_chain_in_front_of_it(deps: Dependences) -> None:
    wanted = heaviest_chain(order_of(deps), [1] * deps.count)
    assert (levels(deps) + 1).tolist() == wanted


@given(dependences(), st.data())
def test_the_heaviest_path_to_each_step_can_be_walked_back(deps: Dependences, data: st.DataObject) -> None:
    weight = data.draw(st.lists(st.integers(0, 2**50), min_size=deps.count, max_size=deps.count))
    reach, via = (c.tolist() for c in heaviest_paths(deps, np.array(weight, np.int64)))
    assert reach == heaviest_chain(order_of(deps), weight)
    edges = set(zip(deps.before.tolist(), deps.after.tolist(), strict=True))
    for step, source in enumerate(via):
        assert source == -1 or (source, step) in edges
        assert reach[step] == weight[step] + (reach[source] if source >= 0 else 0)


@given(dependences(), st.integers(1, 6), st.data())
def test_colours_are_chains_the_heaviest_first(deps: Dependences, most: int, data: st.DataObject) -> None:
    weight = data.draw(st.lists(st.integers(0, 9), min_size=deps.count, max_size=deps.count))
    colour, order = colours(deps, np.array(weight, np.int64), most), order_of(deps)
    left, used = list(weight), int(colour.max(initial=NO_COLOUR)) + 1
    for number in range(used):
        chain = np.flatnonzero(colour == number)
        assert order[chain[:-1], chain[1:]].all()
        assert sum(left[i] for i in chain) == max(heaviest_chain(order, left))
        for i in chain.tolist():
            left[i] = 0
    assert used == most or (used < most and not any(left))
    assert all(weight[i] for i in np.flatnonzero(colour != NO_COLOUR))


def test_two_paths_that_cross_have_the_colours_of_the_longest_and_the_rest() -> None:
    """0 -> 2 -> 3 -> 4 is the longest; of 1 -> 3 -> 5 there remain the ends, which still wait for each other."""
    dependences = Dependences(6, [0, 2, 3, 1, 3], [2, 3, 4, 3, 5])
    assert colours(dependences, np.ones(6, np.int64), 1).tolist() == [0, -1, 0, 0, 0, -1]
    assert colours(dependences, np.ones(6, np.int64), 9).tolist() == [0, 1, 0, 0, 0, 1]


@given(dependences(least=1), st.integers(1, 4), st.data())
def test_a_path_clock_is_sound_and_complete_on_its_own_path(deps: Dependences, most: int, data: st.DataObject) -> None:
    colour, order = (
        colours(deps, np.ones(deps.count, np.int64), most),
        order_of(deps),
    )
    number = data.draw(st.integers(-1, int(colour.max())))
    path = np.flatnonzero(colour == number) if number >= 0 else np.zeros(0, np.int64)
    clock = path_clock(deps, path)
    assert (clock.begin >= 1).all() and (clock.begin < clock.end).all()
    known_by_clock = clock.end[:, np.newaxis] <= clock.begin[np.newaxis]
    assert not (known_by_clock & ~order).any()
    assert (known_by_clock[path] == order[path]).all() and (known_by_clock[:, path] == order[:, path]).all()
    through = order[:, path].astype(int) @ order[path].astype(int) > 0
    assert (known_by_clock == order)[through].all()
    for step in range(deps.count):
        assert clock.holds(path, step) == known_by_clock[path, step].all()


@pytest.fixture(params=[True, False], ids=["plain", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes all sizes use plain kernels, or compiled ones."""
    monkeypatch.setattr(KernelMode, "of", lambda *_: KernelMode(request.param))
    yield


@pytest.mark.usefixtures("way")
def test_compiled_concurrency_kernels_equal_plain_ones() -> None:
    for seed in range(20):
        dependences = random_dependences(seed, 5 * seed)
        order, rng = order_of(dependences), np.random.default_rng(seed)
        weight = rng.integers(0, 2**50, dependences.count)
        assert heaviest_paths(dependences, weight)[0].tolist() == heaviest_chain(order, weight.tolist())
        chain = np.flatnonzero(colours(dependences, np.ones(dependences.count, np.int64), 1) == 0)
        place = {step: p for p, step in enumerate(chain.tolist())}
        clock = path_clock(dependences, chain)
        for step in set(range(dependences.count)) - set(place):
            before = [place[b] for b in np.flatnonzero(order[:, step]).tolist() if b in place]
            after = [place[a] for a in np.flatnonzero(order[step]).tolist() if a in place]
            assert clock.begin[step] == 2 * max(before, default=-1) + 3
            assert clock.end[step] == 2 * min(after, default=len(chain)) + 2


@pytest.mark.parametrize(
    ("before", "after"), [([1], [1]), ([2], [1]), ([-1], [1]), ([0], [3]), ([0, 2], [1, 0])], ids=str
)
def test_a_step_waits_for_earlier_ones_only(before: list[int], after: list[int]) -> None:
    with pytest.raises(ProblemError, match=rf"step {after[-1]} cannot wait for step {before[-1]} of 3"):
        Dependences(3, before, after)


def test_dependences_with_half_a_pair_are_refused() -> None:
    with pytest.raises(ProblemError, match="differ in length"):
        Dependences(3, [0, 1], [1])


def test_a_table_that_would_be_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "MOST_STEPS", 9)
    happens_before(Dependences(9, [], []))
    with pytest.raises(TooManyError, match="10 steps are too many"):
        happens_before(Dependences(10, [], []))
