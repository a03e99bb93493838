"""Settings and fixtures that all tests share: how long one example takes is up to the machine."""

import os
import signal
from collections.abc import Iterator
from weakref import WeakValueDictionary

import numpy as np
import pytest
from hypothesis import settings

os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")  # coloured texts replace sys.stdout for a moment

from engine.zoo import weights
from ops.tensor.spec import Array
from tests.helpers.browser.browser_session import Session, session
from tests.helpers.skips import skipped

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a script: commands would not hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("arenaplan", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("fresh", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("arenaplan")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says in one line what was skipped."""
    if line := skipped(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)


def _blank(_: object, shape: tuple[int, ...], *__: float) -> Array:
    array = np.empty(shape, np.float32)
    array.flags.writeable = False
    return array


@pytest.fixture
def without_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the zoo weights of which no byte is touched, where only shapes matter."""
    monkeypatch.setattr(weights, "_LIVING", WeakValueDictionary())
    monkeypatch.setattr(weights, "_draw", _blank)


@pytest.fixture(scope="module")
def browser() -> Iterator[Session]:
    """Yields one for a module's tests, as asyncio runs nothing else in this thread while a browser runs."""
    with session() as running:
        yield running
