import pytest
from hypothesis import given

from allocator.derive.lifetimes import lifetimes
from allocator.errors import ProblemError
from allocator.steps import OverwriteForward, Program, Step, ViewForward
from tests.helpers.allocator.strategies import programs


@given(programs())
def test_a_value_lives_from_its_writer_to_one_past_its_last_reader(program: Program) -> None:
    lives = lifetimes(program)
    for value in range(len(program.sizes)):
        (writer,) = [t for t, s in enumerate(program.steps) if value in (*s.writes, *(v.out for v in s.views))]
        readers = [t for t, s in enumerate(program.steps) if value in s.reads]
        assert lives.begin[value] == writer
        assert lives.end[value] == max([writer, *readers]) + 1


def test_an_unread_value_lives_one_tick() -> None:
    lives = lifetimes(Program((Step(), Step(writes=(0,)), Step()), (4,)))
    assert (lives.begin.tolist(), lives.end.tolist()) == ([1], [2])


FEED = Step(writes=(0,))


@pytest.mark.parametrize(
    ("steps", "sizes", "message"),
    [
        ((Step(reads=(0,)), FEED), (4,), "step 0 reads value 0 before it is written"),
        ((Step(reads=(0,), writes=(0,)),), (4,), "step 0 reads value 0 before it is written"),
        ((FEED, FEED), (4,), "step 1 writes value 0, which step 0 has written"),
        ((FEED, Step(writes=(1,))), (4,), "step 1 names value 1, but there are 1 values"),
        ((FEED, Step(reads=(-1,))), (4,), "step 1 names value -1"),
        ((Step(views=(ViewForward(0, 1),)), Step(writes=(1,))), (4, 4), "step 0 views value 1 before it is written"),
        ((FEED, Step(views=(ViewForward(0, 0),))), (4,), "step 1 writes value 0, which step 0 has written"),
        (
            (FEED, Step(writes=(1,), overwrites=(OverwriteForward(1, 0),))),
            (4, 4),
            "does not write the one and read the other",
        ),
        (
            (FEED, Step(reads=(0,), overwrites=(OverwriteForward(1, 0),))),
            (4, 4),
            "does not write the one and read the other",
        ),
        ((FEED,), (4, 4), "value 1 is never written"),
        ((FEED,), (-4,), "negative size: -4 bytes"),
    ],
)
def test_lifetimes_refuse_a_malformed_program(steps: tuple[Step, ...], sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        lifetimes(Program(steps, sizes))
