"""First fit for chunks without addresses, against a search of every byte."""

from hypothesis import given
from hypothesis import strategies as st

from engine.exporters.shelf import Shelf

_STEPS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=60)


@given(_STEPS)
def test_a_chunk_lies_at_the_lowest_free_bytes_that_are_enough(steps: list[tuple[int, int]]) -> None:
    """A step brings a chunk, or takes it away if it is there."""
    shelf, bytes_of = Shelf(), dict[int, range]()
    for chunk, size in steps:
        if chunk in bytes_of:
            shelf.free(chunk)
            del bytes_of[chunk]
        else:
            used = {byte for taken in bytes_of.values() for byte in taken}
            lowest = next(at for at in range(1000) if used.isdisjoint(range(at, at + max(size, 1))))
            at = shelf.put(chunk, size)
            assert at == lowest or not size
            if size:
                bytes_of[chunk] = range(at, at + size)
        assert shelf.top == max((taken.stop for taken in bytes_of.values()), default=0)


def test_what_is_not_there_can_go() -> None:
    shelf = Shelf()
    shelf.put(1, 8)
    shelf.free(2)
    assert shelf.put(3, 8) == 8
