"""The workers of a Dask scheduler (https://distributed.dask.org), on this machine or on many.

The scheduler sends a task whose worker died to another one by itself, as often as its configuration says
(`distributed.scheduler.allowed-failures`, 3 by default).
"""

import logging
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from uuid import uuid4

from attrs import define, field, frozen

from engine.text.errors import EngineError
from engine.workers.board import Board, BoardClosedError
from engine.workers.place import WorkerError
from engine.workers.serve import own_version

CONNECT = 10.0
"""Seconds in which a scheduler must answer."""
FIRST_WORKER = 60.0
"""Seconds in which a scheduler must have a worker."""
_ANSWER = 2.0
"""Seconds in which the scheduler must answer a task that reads a board."""
_AGE = 2.0
"""Seconds after which workers are counted again: they come and go."""


@define(eq=False)
class Dask:
    """A scheduler with its workers. `address` is HOST:PORT."""

    address: str
    _client: Any
    _preferred: str = ""
    _executor: Any = field(init=False)
    _counted: tuple[float, int] = field(default=(-_AGE, 1), init=False)

    def __attrs_post_init__(self) -> None:
        where = {"workers": [self._preferred], "allow_other_workers": True} if self._preferred else {}
        self._executor = self._client.get_executor(pure=False, **where)

    @property
    def workers(self) -> int:
        """Returns how many threads all workers have together."""
        when, number = self._counted
        if time.monotonic() - when > _AGE and self._client.status == "running":
            number = max(1, sum(self._client.nthreads().values()))
            self._counted = time.monotonic(), number
        return number

    @property
    def room(self) -> int:
        """Returns twice the workers: each has a task waiting, as messages take their time."""
        return 2 * self.workers

    def seats(self, number: int) -> tuple["Dask", ...]:
        """Returns so many places that each send their tasks to one worker as long as it lives, and then to others."""
        addresses = sorted(self._client.nthreads())
        return tuple(Dask(self.address, self._client, addresses[i % len(addresses)]) for i in range(number))

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Sends a task. Raises WorkerError where the scheduler is lost."""
        self._check()
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def verdict(self, future: "Future[Any]", tries: int) -> BaseException | None:  # noqa: ARG002
        """Returns the task's error; None for a task that was cancelled. Raises WorkerError for a lost scheduler."""
        if future.cancelled():
            self._check()
            return None
        error = future.exception()
        if isinstance(error, _distributed().KilledWorker):
            return WorkerError("all workers that were given it ended: killed, or out of memory")
        return error

    def is_blameless(self, future: "Future[Any]") -> bool:  # noqa: ARG002
        """Returns False: the scheduler counts by itself."""
        return False

    @contextmanager
    def board(self) -> Iterator[Board]:
        """Makes a board of a Variable of the scheduler."""
        name = f"arenaplan-{uuid4().hex}"
        variable = _distributed().Variable(name, self._client)
        variable.set(b"")
        board = VariableBoard(name, self._client)
        try:
            yield board
        finally:
            board.close()

    def close(self, *, now: bool = False) -> None:
        """Takes back what has not run, and leaves the scheduler and its workers as they are."""
        if self._client.status == "running":
            self._executor.shutdown(wait=not now)
        self._client.close()

    def _check(self) -> None:
        if self._client.status != "running":
            raise WorkerError(f"the Dask scheduler at {self.address} is gone")


@frozen(eq=False)
class VariableBoard:
    """A Variable of the scheduler, which all workers reach. A worker has no `client`: it asks for that of its task."""

    name: str
    client: Any = None

    def __reduce__(self) -> Any:
        """Returns how it is pickled: without the client."""
        return VariableBoard, (self.name,)

    def read(self) -> Any:
        """Returns the value; None before there is one. Raises BoardClosedError where the scheduler has none."""
        try:
            value = self._variable().get(timeout=_ANSWER)
        except (TimeoutError, OSError) as error:
            raise BoardClosedError("the search was ended") from error
        return pickle.loads(value) if value else None

    def write(self, value: Any) -> None:
        """Replaces the value."""
        self._variable().set(pickle.dumps(value))

    def close(self) -> None:
        """Removes the variable."""
        if self.client.status == "running":
            self._variable().delete()

    def _variable(self) -> Any:
        package = _distributed()
        return package.Variable(self.name, self.client or package.get_client())


def connect(address: str, patience: float = CONNECT) -> Dask:
    """Returns the place of a scheduler at HOST:PORT.

    Raises EngineError where the package is not installed, nobody answers within `patience` seconds, there is no worker,
    or workers have another version of this project.
    """
    package = _distributed()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is lost is told in one line, by us
    try:
        client = package.Client(f"tcp://{address}", timeout=patience, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise WorkerError(
            f"no Dask scheduler answers at {address!r}; `dask scheduler` starts one, and prints its address"
        ) from error
    place = Dask(address, client)
    try:
        _check_workers(place, client)
    except BaseException:
        place.close(now=True)
        raise
    return place


def _check_workers(place: Dask, client: Any) -> None:
    """Raises WorkerError where no worker comes, or one cannot run our tasks."""
    try:
        client.wait_for_workers(1, timeout=FIRST_WORKER)
    except TimeoutError as error:
        raise WorkerError(
            f"the Dask scheduler at {place.address} has no worker; `dask worker {place.address}` starts one"
        ) from error
    try:
        theirs = place.submit(own_version).result()
    except ImportError as error:
        raise WorkerError(f"workers of {place.address} cannot import arenaplan: {error}") from error
    if theirs != own_version():
        raise WorkerError(
            f"workers of {place.address} have arenaplan {theirs or '(unknown)'}, and this is {own_version()}: install "
            "the same"
        )


def _distributed() -> Any:
    """Returns the package, which takes half a second to load."""
    try:
        return import_module("distributed")
    except ImportError as error:
        raise EngineError("Dask is not installed: pip install 'arenaplan[dask]'") from error
