"""The other end of `worker`: sends it tasks, reads what it answers, and starts another one when it dies."""

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

from attrs import define, field

from tests.fuzz.worker import SECONDS
from tests.helpers.paths import ROOT

_FRAME = re.compile(r'File "(?:.*/)?((?:engine|allocator|ops|tests)/[^"]+)", line (\d+)')
_SHOWN = 3
"""Frames of a dead worker's stack that are told."""
_RETRY_SECONDS = 60.0


@define
class WorkerProcess:
    """A worker process, which is another one after each death."""

    command: Sequence[str] = (sys.executable, "-m", "tests.fuzz.worker")
    _errors: IO[bytes] = field(factory=tempfile.TemporaryFile)
    _process: "subprocess.Popen[str]" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._process = self._started()

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._errors.close()

    def answers(self, kind: str, first: int, count: int, seconds: float) -> Iterator[dict[str, Any]]:
        """Yields what became of each input. The last one may have ended the worker.

        One that took too long is tried again alone: to compile a kernel for the first time is no fault of an input.
        """
        for answer in self._asked(kind, first, count, seconds):
            again = self._asked(kind, answer["seed"], 1, _RETRY_SECONDS) if answer.get("slow") else (answer,)
            yield from again

    def _asked(self, kind: str, first: int, count: int, seconds: float) -> Iterator[dict[str, Any]]:
        assert self._process.stdin and self._process.stdout
        task = {"kind": kind, "first": first, "count": count, "seconds": seconds}
        print(json.dumps(task), file=self._process.stdin, flush=True)
        seed = first
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer["seed"] is None:
                return
            yield answer
            seed = answer["seed"] + 1
        yield {"seed": seed, "outcome": "failed", "fault": False, "seconds": 0.0, **self._death()}

    def _death(self) -> dict[str, Any]:
        """Returns why the worker has ended, and starts another one."""
        self._end()
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace")
        stack = " < ".join(f"{path}:{line}" for path, line in _FRAME.findall(_dump(text))[:_SHOWN])
        is_slow = self._process.returncode == -signal.SIGPROF or "Timeout (" in text
        last = (text.splitlines() or [""])[-1][:200]
        why = f"took more than {SECONDS} s" if is_slow else f"the worker ended with {self._process.returncode}: {last}"
        self._process = self._started()
        return {"failure": f"{why} [{stack}]", "slow": is_slow}

    def _started(self) -> "subprocess.Popen[str]":
        self._errors.seek(0)
        self._errors.truncate()
        return subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, cwd=ROOT
        )

    def _end(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _dump(text: str) -> str:
    """Returns the stack of the thread that worked, which stands last; frames begin with the innermost one."""
    return text[text.rfind(" (most recent call first)") :]
