"""Where the process of the command begins; Ctrl-C while it loads modules ends it at once.

An exception would not do: what is being imported may drop it, or raise another one in its place, as numpy does.
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that was stopped by the user."""


def main() -> int:
    """Runs the command with the arguments of the process; returns its exit code."""
    with modules_loaded():
        command = import_module("engine.cli.main")
    code: int = command.main()
    return code


@contextmanager
def modules_loaded() -> Iterator[None]:
    """Returns a context for imports of a process of our own, which Ctrl-C ends before there is anything to write.

    The garbage collector never looks through what is loaded: it would do so several times, which takes a fifth of the
    time of a short command.
    """
    gc.disable()
    try:
        with interrupts_handled(_end_process):
            yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def interrupts_handled(handle: Callable[[int, FrameType | None], object]) -> Iterator[bool]:
    """Makes Ctrl-C in the block call a function where it would raise KeyboardInterrupt else; yields whether it does."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield False
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_process(_number: int, _frame: FrameType | None) -> None:
    try:
        if sys.stderr is not None:
            print("arenaplan: error: interrupted", file=sys.stderr, flush=True)
    finally:
        os._exit(INTERRUPTED)
