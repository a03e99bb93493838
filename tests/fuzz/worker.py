"""`python -m tests.fuzz.worker`: a process that judges one input after the other, until it is told no more.

A line on stdin has a kind, the first seed, a number of inputs and seconds; for each input a line goes to stdout, as
JSON. An input that takes too long ends the process, with the stack on stderr; so does a segmentation fault.
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import time
from typing import TextIO

from tests.fuzz.judging import judge
from tests.fuzz.kinds import KINDS

SECONDS = 20
"""One input may take so much time of processors."""
CLOCK_SECONDS = 120
"""So long may it take by the clock: more than that is not a busy machine, but an input that waits for ever."""
MOST_BYTES = 8 << 30
"""The address space of a worker, so that no input takes the machine's memory."""


def main() -> None:
    """Serves the tasks of stdin."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what an input prints goes elsewhere
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)  # shows the stack, then ends the process
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    for line in sys.stdin:
        serve(answers, **json.loads(line))


def serve(answers: TextIO, kind: str, first: int, count: int, seconds: float) -> None:
    """Judges inputs of one kind, at most `count` and none that begins after `seconds`."""
    end = time.monotonic() + seconds
    for seed in range(first, first + count):
        if time.monotonic() > end:
            break
        data, begin = KINDS[kind].input_of(seed), time.process_time()
        faulthandler.dump_traceback_later(CLOCK_SECONDS, exit=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        verdict = judge(KINDS[kind], data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        taken = time.process_time() - begin
        answer = {"seed": seed, "outcome": verdict.outcome, "failure": verdict.failure, "fault": verdict.is_fault}
        print(json.dumps(answer | {"seconds": round(taken, 4)}), file=answers)
    print(json.dumps({"seed": None}), file=answers)


if __name__ == "__main__":
    main()
