"""Workers that share the searches of planning, for the length of a block."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from engine.searches.in_use import used
from engine.workers.names import AS_MANY_AS_PROCESSORS, PROCESSES
from engine.workers.places import opened


@contextmanager
def shared_search(on: str | Executor = PROCESSES, workers: int = AS_MANY_AS_PROCESSORS) -> Iterator[None]:
    """Makes workers share what is searched in the block, in this thread: memory orders, and addresses by "best".

    `on` is "processes", "here", "dask://HOST:PORT", or an Executor, which stays open. Raises OptionError, EngineError.
    """
    with opened(on, workers) as place, used(place):
        yield
