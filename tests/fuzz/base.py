"""What a kind of fuzzing is: how an input is made from a seed, and how it is tried."""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from attrs import frozen

MUTANTS, GRAPHS, GUARDED = "mutants", "random graphs", "runs between guarded pages"
STOPPED = "runs and writers that are stopped"


class WrongError(AssertionError):
    """A result that is wrong: another bit, another number, a result where an error is due."""


@frozen
class Tried:
    """What became of an input: "accepted", or in one word why not; and the bytes that it says it needs."""

    outcome: str = "accepted"
    stated_bytes: int = 0


@frozen
class Kind:
    """A kind of inputs. `make` draws one as the bytes of a small file, called `file`; `attempt` gets its path.

    `attempt` raises the project's documented errors where the input is refused; any other exception is a failure.
    """

    name: str
    unit: str
    file: str
    make: Callable[[np.random.Generator], bytes]
    attempt: Callable[[Path], Tried]

    def input_of(self, seed: int) -> bytes:
        """Returns the input that belongs to a seed, the same one in every process."""
        return self.make(np.random.default_rng([zlib.crc32(self.name.encode()), seed]))


def seed_text(rng: np.random.Generator) -> bytes:
    """Makes an input that is a number: the seed of a random graph."""
    return str(rng.integers(2**62)).encode()
