"""Why overwrites are refused: each reason is a fact that these tests derive again from the program alone."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.derive.chunks import derive, judge
from allocator.derive.overwrites import Judged, Refusal
from allocator.steps import OverwriteForward, Program, Step, ViewForward
from tests.helpers.allocator.brute_force import life_of, owner_of
from tests.helpers.allocator.strategies import programs


def of_chunk(program: Program, value: int) -> list[int]:
    """Returns all values in the bytes of the owner of a value."""
    owner = owner_of(program, value)[0]
    return [v for v in range(len(program.sizes)) if owner_of(program, v)[0] == owner]


def read_later(program: Program, judged: Judged) -> bool:
    """Returns whether a later step reads the bytes, or shows them by a view that is read."""
    return life_of(program, owner_of(program, judged.src)[0])[1] > judged.step + 1


def too_large(program: Program, judged: Judged) -> bool:
    owner, at = owner_of(program, judged.src)
    declared = [o.offset for o in program.steps[judged.step].overwrites if (o.out, o.src) == (judged.out, judged.src)]
    return any(at + offset + program.sizes[judged.out] > program.sizes[owner] for offset in declared)


def named_twice(program: Program, judged: Judged) -> bool:
    step, members = program.steps[judged.step], of_chunk(program, judged.src)
    return any(v in members and v != judged.src for v in step.reads) or any(view.out in members for view in step.views)


FACTS: dict[Refusal, Callable[[Program, Judged], bool]] = {
    Refusal.EMPTY: lambda program, judged: program.sizes[judged.out] == 0,
    Refusal.LATER: read_later,
    Refusal.OUTSIDE: too_large,
    Refusal.BESIDE: named_twice,
}


@given(programs(max_steps=10))
def test_every_overwrite_refusal_states_a_fact_and_all_others_are_taken(program: Program) -> None:
    chunks = derive(program)
    taken = set(zip(chunks.src.tolist(), chunks.dest.tolist(), chunks.overwrite_offset.tolist(), strict=True))
    judged = judge(program)
    assert len(judged) == sum(len(step.overwrites) for step in program.steps)
    for each in judged:
        pair = (each.candidate.src, each.candidate.dest, each.candidate.offset)
        assert (pair in taken) == (each.refusal is Refusal.NONE)
        if each.refusal in FACTS:
            assert FACTS[each.refusal](program, each)
        elif each.refusal is Refusal.ELSEWHERE:
            assert any(src == each.candidate.src for src, _, _ in taken - {pair})
        elif each.refusal is Refusal.GIVEN:
            assert any(dest == each.candidate.dest for _, dest, _ in taken - {pair})
    assert taken == {(j.candidate.src, j.candidate.dest, j.candidate.offset) for j in judged if not j.refusal}


@given(programs(), st.data())
def test_overwrite_refusals_distinguish_protected_unsafe_and_needed_values(
    program: Program, data: st.DataObject
) -> None:
    values = st.lists(st.integers(0, len(program.sizes) - 1), max_size=2)
    protected, banned = data.draw(values), data.draw(st.sets(st.integers(0, len(program.steps)), max_size=3))
    plain = judge(program)
    safe = {v for p in protected for v in of_chunk(program, p)}
    for before, each in zip(
        plain, judge(program, protected=protected, permit=lambda _, t: t not in banned), strict=True
    ):
        if each.refusal is Refusal.PROTECTED:
            assert each.src in safe
        elif each.refusal is Refusal.UNSAFE:
            assert each.step in banned and each.src not in safe
        if before.refusal in FACTS:
            assert each.refusal is before.refusal
        elif each.src in safe:
            assert each.refusal is Refusal.PROTECTED


FEED, OVER = Step(writes=(0,)), (OverwriteForward(1, 0),)
EXAMPLES = {
    Refusal.LATER: ((FEED, Step((0,), (1,), overwrites=OVER), Step(reads=(0, 1))), (4, 4)),
    Refusal.OUTSIDE: ((FEED, Step((0,), (1,), overwrites=OVER), Step(reads=(1,))), (4, 5)),
    Refusal.EMPTY: ((FEED, Step((0,), (1,), overwrites=OVER), Step(reads=(1,))), (4, 0)),
    Refusal.BESIDE: (
        (FEED, Step(views=(ViewForward(2, 0),)), Step((0, 2), (1,), overwrites=OVER), Step(reads=(1,))),
        (4, 4, 4),
    ),
    Refusal.ELSEWHERE: (
        (
            Step(writes=(0, 2)),
            Step((0, 2), (1,), overwrites=(OverwriteForward(1, 0), OverwriteForward(1, 2))),
            Step(reads=(1,)),
        ),
        (4, 4, 4),
    ),
    Refusal.GIVEN: (
        (FEED, Step((0,), (1, 2), overwrites=(OverwriteForward(1, 0), OverwriteForward(2, 0))), Step(reads=(1, 2))),
        (4, 3, 2),
    ),
}


@pytest.mark.parametrize("refusal", EXAMPLES)
def test_each_overwrite_refusal_has_an_example(refusal: Refusal) -> None:
    steps, sizes = EXAMPLES[refusal]
    assert refusal in [j.refusal for j in judge(Program(steps, sizes))]
