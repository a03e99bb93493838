"""What holds for all tests: how long one example takes is up to the machine. What many of them use."""

from collections.abc import Iterator
from weakref import WeakValueDictionary

import numpy as np
import pytest
from hypothesis import settings

from engine.zoo import weights
from ops.tensor.spec import Array
from tests.helpers.browser.browser_session import Session, session

settings.register_profile("arenaplan", deadline=None)
settings.load_profile("arenaplan")


def _blank(_: object, shape: tuple[int, ...], *__: float) -> Array:
    array = np.empty(shape, np.float32)
    array.flags.writeable = False
    return array


@pytest.fixture
def without_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of the zoo of which no byte is touched, where only shapes matter."""
    monkeypatch.setattr(weights, "_LIVING", WeakValueDictionary())
    monkeypatch.setattr(weights, "_draw", _blank)


@pytest.fixture(scope="module")
def browser() -> Iterator[Session]:
    """One for a module's tests. While it runs, asyncio runs nothing else in this thread, so it ends with the module."""
    with session() as running:
        yield running
