"""A board where tasks that are under way show each other the best that they have found.

Who looks and then writes may overwrite what another one wrote in between: a value is there to be better than nothing,
and whoever has a better one writes again.
"""

import os
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen

from engine.text.errors import EngineError


class BoardClosedError(EngineError):
    """A board that its maker has closed: tasks are to end with what they have."""


class Board(Protocol):
    """One value that tasks read and write. It can be pickled."""

    def read(self) -> Any:
        """Returns the value; None before there is one. Raises BoardClosedError."""

    def write(self, value: Any) -> None:
        """Replaces the value."""

    def close(self) -> None:
        """Removes the board: all who read it afterwards are told."""


@frozen
class NoBoard:
    """A board that keeps nothing, where workers cannot see each other."""

    def read(self) -> Any:
        """Returns None."""

    def write(self, value: Any) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


@frozen
class FolderBoard:
    """A file in a folder of its own, for processes of one machine. It is replaced as a whole, so no death spoils it."""

    folder: Path

    def read(self) -> Any:
        """Returns the value; None before there is one. Raises BoardClosedError where the folder is gone."""
        try:
            return pickle.loads(self._file.read_bytes())
        except FileNotFoundError as error:
            if not self.folder.exists():
                raise BoardClosedError("the search was ended") from error
            return None

    def write(self, value: Any) -> None:
        """Replaces the value, unless the folder is gone."""
        new = self.folder / str(os.getpid())
        try:
            new.write_bytes(pickle.dumps(value))
            new.replace(self._file)
        except FileNotFoundError:
            return

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _file(self) -> Path:
        return self.folder / "value"


@contextmanager
def folder_board() -> Iterator[Board]:
    """Makes a board for processes of this machine."""
    board = FolderBoard(Path(tempfile.mkdtemp(prefix="arenaplan-")))
    try:
        yield board
    finally:
        board.close()
