"""A heap whose requests are not known beforehand: it serves one, and then the next."""

from collections.abc import Iterator
from typing import Protocol

NOBODY = -1
"""The request that has the bytes of a free block."""


class Server(Protocol):
    """A heap that serves one request after the other. A request has a number, and may come again once it is freed."""

    @property
    def in_use(self) -> int:
        """Returns the bytes that are handed out."""

    @property
    def reserved(self) -> int:
        """Returns the bytes that the heap holds."""

    @property
    def knows_addresses(self) -> bool:
        """Returns whether blocks have addresses, so that `runs` yields something."""

    def alloc(self, request: int, /) -> bool:
        """Serves a request; returns False, and changes nothing that is in use, where there is no room for it."""

    def free(self, request: int, /) -> None:
        """Takes the bytes of a request back."""

    def address(self, request: int, /) -> int:
        """Returns the first byte of a request that is served; 0 in a heap that knows no addresses."""

    def needed(self, request: int, /) -> int:
        """Returns the bytes that a request takes, as the heap rounds them."""

    def runs(self, request: int, /) -> Iterator[list[tuple[int, int]]]:
        """Yields the blocks that lie side by side where the request could be served: who has each (NOBODY), bytes."""
