"""Signals that come while something runs, and what comes of them."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NOT_SENT = -1.0


@contextmanager
def python_handles_interrupts() -> Iterator[None]:
    """Sets Python's own handler of SIGINT, which a process that a shell starts in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def delay_of_interrupt(run: Callable[[], object], moment: float) -> float:
    """Runs until an interrupt ends it, which is sent after so many seconds of the process's CPU time.

    Returns the seconds of CPU time from the signal to the KeyboardInterrupt; NOT_SENT where the run ended before.
    CPU time, because other processes make a machine slow. Lists tell the thread what happens: an interrupt inside a
    method of an Event leaves its lock held for ever.
    """
    sent, over = list[float](), list[bool]()

    def send() -> None:
        until = time.process_time() + moment
        while time.process_time() < until:
            time.sleep(0.0005)
            if over:
                return
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    try:
        sender.start()
        run()
        over.append(True)
        sender.join()
        time.sleep(0)  # a signal that was sent at the end is handled here
    except KeyboardInterrupt:
        return time.process_time() - sent[0]
    finally:
        over.append(True)
        sender.join()
    return NOT_SENT
