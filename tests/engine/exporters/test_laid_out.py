"""First fit for chunks without addresses, against a search of every byte."""

from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st

from engine import Event, Trace
from engine.exporters.laid_out import laid_out
from engine.trace.trace import ALLOC, FREE, NOTHING, NOWHERE, OVERWRITE, RunInfo

_STEPS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=60)


def _event(kind: str, chunk: int, size: int = 0, over: int = NOTHING) -> Event:
    return Event(0, kind, "", "", "", "", "", "", chunk, NOWHERE, size, 0, over, 0, 0, 1, -1.0, -1)


def _trace(*events: Event) -> Trace:
    return Trace(RunInfo("", "dynamic"), lambda: iter(events))


def _events(steps: list[tuple[int, int]]) -> Iterator[Event]:
    """Yields the events of steps: each brings a chunk, or takes it away if it is there."""
    here = set[int]()
    for chunk, size in steps:
        yield _event(FREE, chunk) if chunk in here else _event(ALLOC, chunk, size)
        here ^= {chunk}


@given(_STEPS)
@example([(0, 3), (1, 4), (0, 0), (2, 2), (2, 0), (3, 3), (1, 0), (4, 9)])
def test_a_chunk_lies_at_the_lowest_free_bytes_that_are_enough(steps: list[tuple[int, int]]) -> None:
    events = list(_events(steps))
    layout, bytes_of, top, came = laid_out(_trace(*events)), dict[int, range](), 0, 0
    for event in events:
        if event.kind == FREE:
            bytes_of.pop(event.chunk, None)
        elif event.bytes:
            used = {byte for taken in bytes_of.values() for byte in taken}
            wanted = range(event.bytes)
            lowest = next(at for at in range(1000) if used.isdisjoint(at + byte for byte in wanted))
            assert layout.offset[came] == lowest
            bytes_of[event.chunk], came = range(lowest, lowest + event.bytes), came + 1
            top = max(top, lowest + event.bytes)
    assert len(layout.offset) == came and layout.bytes == top


def test_first_fit_layout_reuses_overwritten_bytes() -> None:
    layout = laid_out(
        _trace(_event(ALLOC, 1, 8), _event(FREE, 2), _event(OVERWRITE, 3, 8, over=1), _event(ALLOC, 4, 8))
    )
    assert layout.offset.tolist() == [0, 0, 8] and layout.bytes == 16


def test_an_overwriter_lies_where_the_overwritten_chunk_does() -> None:
    """Not in the lower bytes that are free by then: the run moves nothing."""
    events = (_event(ALLOC, 0, 8), _event(ALLOC, 1, 8), _event(FREE, 0), _event(OVERWRITE, 2, 8, over=1))
    assert laid_out(_trace(*events)).offset.tolist() == [0, 8, 8]


def test_first_fit_layout_of_many_gaps_is_quick() -> None:
    """A search of all of them for each chunk would look at a billion."""
    small = [_event(ALLOC, i, 1) for i in range(60_000)]
    gaps = [_event(FREE, i) for i in range(0, 60_000, 2)]
    large = [_event(ALLOC, i, 2) for i in range(60_000, 90_000)]
    assert laid_out(_trace(*small, *gaps, *large)).bytes == 120_000
