"""Tasks that workers carry out in tests: they square numbers, fail, or end their worker."""

import os
import signal
from pathlib import Path


def square(number: int) -> int:
    """Returns the square."""
    return number * number


def fail_on_odd(number: int) -> int:
    """Returns the number. Raises ValueError for an odd one."""
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def die_on_seven(number: int) -> int:
    """Returns the square; ends the process at 7."""
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def die_once(marks: Path) -> str:
    """Ends the process where the file is not there, and makes the file before that; returns its name."""
    try:
        marks.open("x").close()
    except FileExistsError:
        return marks.name
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def count_calls(marks: Path) -> int:
    """Adds a byte to a file; returns the worker's process id."""
    with marks.open("ab") as file:
        file.write(b".")
    return os.getpid()


def wait_for(path: Path) -> str:
    """Returns when a file is there."""
    while not path.exists():
        pass
    return path.name
