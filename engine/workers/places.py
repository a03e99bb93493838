"""Places by their names: what `--on` and `on=` take."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager

from engine.system.threads import check_threads, cpus
from engine.text.errors import OptionError
from engine.workers.dask import connect
from engine.workers.names import AS_MANY_AS_PROCESSORS, HERE, ON, PREFIX, PROCESSES
from engine.workers.place import Borrowed, Here, Place
from engine.workers.processes import Processes


def check_place(on: str | Executor, workers: int) -> None:
    """Raises OptionError for what is no place."""
    check_threads(workers, AS_MANY_AS_PROCESSORS, "as many as processors")
    if isinstance(on, Executor) or on in (HERE, PROCESSES):
        return
    if not isinstance(on, str) or not on.startswith(PREFIX):
        raise OptionError(f"{on!r} is no place to run tasks; there are {ON}, and any Executor")
    host, colon, port = on.removeprefix(PREFIX).rpartition(":")
    if not host or not colon or not port.isdecimal():
        raise OptionError(f"{on!r} is no address of a Dask scheduler, such as {PREFIX}127.0.0.1:8786")
    if workers:
        raise OptionError(f"a Dask scheduler knows how many workers it has; leave out the number {workers}")


@contextmanager
def opened(on: str | Executor, workers: int = AS_MANY_AS_PROCESSORS) -> Iterator[Place]:
    """Opens a place for the block. Its own workers end with it; at once where the block raises.

    `on` is "processes", "here" (this process), "dask://HOST:PORT", or an Executor, which stays open. `workers` are as
    many as there are processors where the number is 0. Raises OptionError, EngineError.
    """
    check_place(on, workers)
    place = _place(on, workers)
    try:
        yield place
    except BaseException:
        place.close(now=True)
        raise
    place.close()


@contextmanager
def opened_seats(on: str | Executor, number: int) -> Iterator[tuple[Place, ...]]:
    """Opens so many places of one worker each for the block: what a task leaves in its process, the next one finds.

    A worker that died is replaced, by one that has nothing. `on` is that of `opened`, but no Executor, which does not
    say who runs a task. Raises OptionError, EngineError.
    """
    check_place(on, 0)
    if isinstance(on, Executor):
        raise OptionError(f"tasks that must meet again in one process cannot go to an Executor; there are {ON}")
    with ExitStack() as stack:
        if on.startswith(PREFIX):
            whole = connect(on.removeprefix(PREFIX))
            stack.push(_closing(whole))
            yield whole.seats(number)
            return
        seats = tuple(_place(on, 1) for _ in range(number))
        for seat in seats:
            stack.push(_closing(seat))
        yield seats


def _closing(place: Place) -> Callable[[object, object, object], None]:
    """Returns what closes a place when a block ends; at once where the block raises."""
    return lambda kind, _, __: place.close(now=kind is not None)


def _place(on: str | Executor, workers: int) -> Place:
    if isinstance(on, Executor):
        return Borrowed(on, workers or cpus())
    if on == HERE:
        return Here()
    return Processes(workers or cpus()) if on == PROCESSES else connect(on.removeprefix(PREFIX))
