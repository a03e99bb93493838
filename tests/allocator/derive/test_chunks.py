import numpy as np
import pytest
from hypothesis import given

from allocator.derive.chunks import Chunks, derive, to_problem
from allocator.errors import ProblemError
from allocator.problem import FREE
from allocator.steps import OverwriteForward, Program, Step, ViewForward
from tests.helpers.allocator.brute_force import life_of, owner_of
from tests.helpers.allocator.strategies import programs

FEED = Step(writes=(0,))


def unary(out: int, src: int, offset: int = 0) -> Step:
    return Step(reads=(src,), writes=(out,), overwrites=(OverwriteForward(out, src, offset),))


def pairs(chunks: Chunks) -> list[tuple[int, int, int]]:
    columns = (chunks.src.tolist(), chunks.dest.tolist(), chunks.overwrite_offset.tolist())
    return list(zip(*columns, strict=True))


@given(programs())
def test_chunks_agree_with_their_derivation_by_hand(program: Program) -> None:
    chunks = derive(program)
    for value in range(len(program.sizes)):
        owner, at = owner_of(program, value)
        chunk = chunks.chunk_of[value]
        assert chunk == chunks.chunk_of[owner]
        assert chunks.offset_in_chunk[value] == at
        assert (chunks.begin[chunk], chunks.end[chunk]) == life_of(program, owner)
        assert chunks.size[chunk] == program.sizes[owner]
    assert len(chunks) == len({owner_of(program, v)[0] for v in range(len(program.sizes))})


@given(programs())
def test_an_overwrite_is_taken_only_where_the_bytes_are_needed_no_more(program: Program) -> None:
    chunks = derive(program)
    owners = {owner_of(program, v)[0]: int(chunks.chunk_of[v]) for v in range(len(program.sizes))}
    value_of = {chunk: owner for owner, chunk in owners.items()}
    assert len(set(chunks.src.tolist())) == len(chunks.src)
    assert len(set(chunks.dest.tolist())) == len(chunks.dest)
    for src, dest, offset in pairs(chunks):
        taker, giver = value_of[src], value_of[dest]
        (tick,) = [t for t, s in enumerate(program.steps) if taker in s.writes]
        step = program.steps[tick]
        assert life_of(program, giver)[1] == tick + 1
        assert 0 <= offset <= program.sizes[giver] - program.sizes[taker]
        names = {r for r in step.reads if owner_of(program, r)[0] == giver}
        assert len(names) == 1
        allowed = [o.offset for o in step.overwrites if o.out == taker and o.src in names]
        assert offset - owner_of(program, names.pop())[1] in allowed


@given(programs())
def test_an_overwrite_is_left_out_only_for_a_reason(program: Program) -> None:
    chunks = derive(program)
    busy = set(chunks.src.tolist()), set(chunks.dest.tolist())
    for tick, step in enumerate(program.steps):
        for o in step.overwrites:
            (giver, at), size = owner_of(program, o.src), program.sizes[o.out]
            src, dest = chunks.chunk_of[o.out], chunks.chunk_of[o.src]
            named = {v for v in step.reads if owner_of(program, v)[0] == giver}
            named |= {v.out for v in step.views if owner_of(program, v.out)[0] == giver}
            fits = 0 < size <= program.sizes[giver] - at - o.offset and at + o.offset >= 0
            if fits and named == {o.src} and life_of(program, giver)[1] == tick + 1:
                assert src in busy[0] or dest in busy[1]


@given(programs())
def test_without_overwrites_nothing_but_the_overwrites_changes(program: Program) -> None:
    with_them, without = derive(program), derive(program, overwrite=False)
    assert not len(without.src)
    for name in ("chunk_of", "offset_in_chunk", "begin", "end", "size"):
        assert np.array_equal(getattr(with_them, name), getattr(without, name))


@given(programs())
def test_without_reuse_every_chain_lives_from_the_first_tick_to_the_last(program: Program) -> None:
    chunks = derive(program, reuse=False)
    is_root, is_tail = np.ones(len(chunks), bool), np.ones(len(chunks), bool)
    is_root[chunks.src], is_tail[chunks.dest] = False, False
    assert (chunks.begin[is_root] == 0).all()
    assert (chunks.end[is_tail] == len(program.steps)).all()
    assert pairs(chunks) == pairs(derive(program))
    to_problem(chunks)


@given(programs())
def test_protected_values_are_never_overwritten(program: Program) -> None:
    chunks = derive(program, protected=range(len(program.sizes)))
    assert pairs(chunks) == []


def test_in_place_is_taken_at_the_last_reader() -> None:
    program = Program((FEED, unary(1, 0), unary(2, 1), Step(reads=(2,))), (8, 8, 8))
    assert pairs(derive(program)) == [(1, 0, 0), (2, 1, 0)]


def test_an_input_with_another_pending_reader_is_never_overwritten() -> None:
    program = Program((FEED, unary(1, 0), Step(reads=(0, 1))), (8, 8))
    assert pairs(derive(program)) == []


def test_an_input_that_is_read_later_through_a_view_is_never_overwritten() -> None:
    steps = (FEED, Step(views=(ViewForward(1, 0, 4),)), unary(2, 0), Step(reads=(1, 2)))
    assert pairs(derive(Program(steps, (8, 4, 8)))) == []


def test_a_step_that_reads_a_second_value_of_the_chunk_does_not_overwrite_it() -> None:
    step = Step(reads=(0, 1), writes=(2,), overwrites=(OverwriteForward(2, 0),))
    assert pairs(derive(Program((FEED, Step(views=(ViewForward(1, 0),)), step), (8, 8, 8)))) == []


def test_a_step_that_shows_a_view_of_the_chunk_does_not_overwrite_it() -> None:
    step = Step((0,), (1,), (ViewForward(2, 0),), (OverwriteForward(1, 0),))
    assert pairs(derive(Program((FEED, step), (8, 8, 4)))) == []


def test_a_step_that_reads_one_value_twice_overwrites_it() -> None:
    step = Step(reads=(0, 0), writes=(1,), overwrites=(OverwriteForward(1, 0),))
    assert pairs(derive(Program((FEED, step), (8, 8)))) == [(1, 0, 0)]


def test_the_last_reader_may_overwrite_through_a_view_at_its_place() -> None:
    program = Program((FEED, Step(views=(ViewForward(1, 0, 4),)), unary(2, 1, 1)), (8, 4, 3))
    chunks = derive(program)
    assert pairs(chunks) == [(1, 0, 5)]
    assert chunks.chunk_of.tolist() == [0, 0, 1]


def test_the_largest_candidate_wins() -> None:
    step = Step(reads=(0,), writes=(1, 2), overwrites=(OverwriteForward(1, 0), OverwriteForward(2, 0)))
    assert pairs(derive(Program((FEED, step), (8, 4, 6)))) == [(2, 0, 0)]


def test_one_overwriter_takes_the_tightest_of_two_inputs() -> None:
    step = Step(reads=(0, 1), writes=(2,), overwrites=(OverwriteForward(2, 0), OverwriteForward(2, 1)))
    assert pairs(derive(Program((Step(writes=(0, 1)), step), (8, 6, 6)))) == [(2, 1, 0)]


def test_an_overwriter_that_does_not_fit_its_chunk_is_not_taken() -> None:
    assert pairs(derive(Program((FEED, unary(1, 0, 1)), (8, 8)))) == []
    assert pairs(derive(Program((FEED, unary(1, 0)), (8, 9)))) == []


def test_an_overwriter_in_front_of_its_view_must_stay_in_the_chunk() -> None:
    view = Step(views=(ViewForward(1, 0, 2),))
    assert pairs(derive(Program((FEED, view, unary(2, 1, -2)), (8, 2, 4)))) == [(1, 0, 0)]
    assert pairs(derive(Program((FEED, view, unary(2, 1, -3)), (8, 2, 4)))) == []


@pytest.mark.parametrize(("offset", "size"), [(5, 4), (-1, 4)])
def test_a_view_that_leaves_its_chunk_is_refused(offset: int, size: int) -> None:
    with pytest.raises(ProblemError, match="of value 0, which has 8 bytes"):
        derive(Program((FEED, Step(views=(ViewForward(1, 0, offset),))), (8, size)))


def test_padding_and_alignment_are_for_roots_with_bytes() -> None:
    program = Program((Step(writes=(0, 1)), unary(2, 0)), (8, 0, 4))
    problem = to_problem(derive(program), alignment=64, padding=16, pinned={1: 128})
    assert problem.size.tolist() == [24, 0, 4]
    assert problem.alignment.tolist() == [64, 64, 1]
    assert problem.pinned.tolist() == [FREE, 128, FREE]


def test_chunks_that_cannot_be_padded_or_pinned_are_refused() -> None:
    chunks = derive(Program((FEED, unary(1, 0)), (8, 4)))
    with pytest.raises(ProblemError, match="padding of -1 bytes"):
        to_problem(chunks, padding=-1)
    with pytest.raises(ProblemError, match="chunk 2 is pinned to 64, but there are 2 chunks"):
        to_problem(chunks, pinned={2: 64})
    with pytest.raises(ProblemError, match="chunk 1 overwrites another"):
        to_problem(chunks, pinned={1: 64})


def test_an_empty_program_has_no_chunks() -> None:
    assert len(derive(Program((), ()))) == 0
    assert len(to_problem(derive(Program((), ()), reuse=False))) == 0
