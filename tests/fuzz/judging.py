"""What counts as a failure of one input: an error that is not documented, a wrong result, too much memory.

Too much time is seen from outside: the worker is ended by a watchdog, see `worker`.
"""

import atexit
import shutil
import tempfile
import traceback
import warnings
from functools import cache
from pathlib import Path

from attrs import frozen

from engine.text.errors import InternalError, JudgeError, KernelError
from engine.text.faults import DOCUMENTED
from tests.fuzz.base import Kind

BASE_BYTES = 256 << 20
"""Memory that every input may take: compiled kernels, caches, what Python does not give back."""
TIMES = 10
"""Every input may take this many times the bytes of its file and of what its plan states, besides."""
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FAULTS = (TypeError, AttributeError, KeyError, NameError, AssertionError)
"""What no kernel may fail with: nothing that its inputs hold is the reason."""


@frozen
class Verdict:
    """What became of an input: its outcome; where it is a failure, what is wrong and where, else "".

    `is_fault` says that the door of `engine.text.faults` was needed.
    """

    outcome: str
    failure: str = ""
    is_fault: bool = False


def judge(kind: Kind, data: bytes) -> Verdict:
    """Tries one input in this process, in an empty folder."""
    for left in _folder().iterdir():
        left.unlink()  # a file that is written anew might still be mapped
    path = _folder() / kind.file
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # those that are meant for users
        before = _begin_memory()
        try:
            tried = kind.attempt(path)
        except Exception as error:
            return _of_error(error, _too_much(before, len(data)))
        return Verdict(tried.outcome, _too_much(before, len(data) + tried.stated_bytes))


@cache
def _folder() -> Path:
    """Returns a folder of this process, which goes when the process ends as it should."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _of_error(error: Exception, too_much: str) -> Verdict:
    name = type(error).__name__
    if is_documented(error):
        return Verdict(name, too_much)
    return Verdict("failed", _told(error), isinstance(error, InternalError))


def is_documented(error: Exception) -> bool:
    """Returns whether a caller may expect an error. A fault, a judge's refusal or a warning of numpy's is not meant."""
    if isinstance(error, (InternalError, JudgeError, RuntimeWarning)):
        return False
    is_broken_kernel = isinstance(error, KernelError) and isinstance(error.__cause__, _FAULTS)
    return isinstance(error, DOCUMENTED) and not is_broken_kernel


def _told(error: BaseException) -> str:
    """Returns the error and where the innermost cause was raised."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    frames = traceback.extract_tb(cause.__traceback__)
    where = " < ".join(f"{'/'.join(Path(f.filename).parts[-3:])}:{f.lineno}" for f in reversed(frames[-3:]))
    return f"{type(cause).__name__}: {' '.join(str(error).split())[:300]} [{where}]"


def _begin_memory() -> int:
    """Returns the resident bytes, and lets the peak begin here; 0 where the system does not tell."""
    try:
        _RESET.write_text("5")
        return _status("VmRSS:")
    except OSError:
        return 0


def _too_much(before: int, stated: int) -> str:
    if not before:
        return ""
    taken, allowed = _status("VmHWM:") - before, BASE_BYTES + TIMES * stated
    return f"memory: took {taken:,} bytes, {allowed:,} are allowed" if taken > allowed else ""


def _status(field: str) -> int:
    text = _STATUS.read_text()
    return int(text[text.index(field) + len(field) :].split(None, 1)[0]) << 10
