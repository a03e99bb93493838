"""The loops that run tables of compiled calls, as functions of Python, and the records that they read.

Python handles signals only between calls of compiled code. So a runner returns after the step in which its time is up,
and is called again to go on from there. The loops themselves are in `ops.native.program_code`.
"""

from collections.abc import Callable
from ctypes import addressof, c_char, c_int64
from functools import cache

import numpy as np

from allocator.machine_code.door import function
from ops.native.records import record
from ops.tensor.spec import Array

Outcome = tuple[int, int]
"""The step that failed, or -1, and its status. Where time was up, the first step that is left, and 0."""
COMPILED, FOREIGN, CHECK = 0, 1, 2
"""Kinds of steps: all threads run its parts; a library's function of four words, on the caller's thread; a compiled
function of our own that is called like it, and returns 0 where the other steps may run."""


ROW = record("function args kind: int64")
"""A row of the table that runners read: a step's function, the address of its arguments, its kind."""
OPENMP = record("parallel thread_number thread_count region threads: int64")
"""The words of OpenMP that `run_forked` reads: the addresses of GOMP_parallel, omp_get_thread_num,
omp_get_num_threads and of `ops.native.program_code.region`, and the number of threads."""
PART = record("function args thread_number thread_count: int64")
"""The words that `region` reads: the function of a step, the address of its arguments, OpenMP's functions as above."""
RUN = record("table rows status: int64")
"""What `run_alone` reads: the address of the table and its rows. It writes the status of the step that failed."""
FORKED_RUN = record("table rows status openmp part: int64")
"""What `run_forked` reads beside: the addresses of an OPENMP and of a PART, which it writes."""
SHARED_RUN = record("table rows state threads: int64")
"""What `run_part` reads: the table, the words of `ops.native.barrier`, and the number of threads; 0 for a helper."""
LINGER = record("place seen: int64")
"""What `run_linger` reads: the address of a word, and its value."""
LOCATE = record("words pointee count spans rows: int64")
"""What `locate` reads: the addresses and numbers of words and of rows."""
_CODE = "ops.native.program_code"
_RunWords, _ForkedRunWords, _SharedRunWords, _LingerWords = (c_int64 * count for count in (3, 5, 4, 2))
_PartWords = c_int64 * (PART.itemsize // 8)
"""The records, faster than as arrays: each run makes them."""


def _address_of(array: Array) -> int:
    """Returns the address of an array that can be written, faster than numpy does; 0 where it is empty."""
    return addressof(c_char.from_buffer(array.data)) if len(array) else 0


def run_alone(table: Array) -> Outcome:
    """Runs all steps of a table on this thread."""
    words = _RunWords(_address_of(table), len(table), 0)
    return function(_CODE, "run_alone")(addressof(words)), words[2]


def run_forked(table: Array, openmp: Array) -> Outcome:
    """Does the same, with compiled steps in parts on threads of OpenMP, like those of libraries."""
    part = _PartWords()
    words = _ForkedRunWords(_address_of(table), len(table), 0, _address_of(openmp), addressof(part))
    return function(_CODE, "run_forked")(addressof(words)), words[2]


def run_part(table: Array, state: Array, threads: int) -> None:
    """Runs one thread's part of all steps; see `ops.native.program_code`."""
    words = _SharedRunWords(_address_of(table), len(table), _address_of(state), threads)
    function(_CODE, "run_part")(addressof(words))


def run_linger(place: int, seen: int) -> bool:
    """Returns whether the word at an address changes from `seen` within a millisecond or so."""
    words = _LingerWords(place, seen)
    return function(_CODE, "run_linger")(addressof(words)) != 0


@cache
def load_for_threads() -> None:
    """Loads all code that runs on several threads may call, also the code for runs whose helpers are all late."""
    for name in ("run_alone", "run_part", "run_linger"):
        function(_CODE, name)


def locate(words: Array, spans: Array, pointee: Array) -> None:
    """Makes words that point to the spans that rows tell count from their origins.

    A row has the first byte, the end and the origin. `pointee` takes the row of each word; -1 for a number. All three
    are dense int64.
    """
    args = np.array((words.ctypes.data, pointee.ctypes.data, len(words), spans.ctypes.data, len(spans)), np.int64)
    function("ops.native.words_code", "locate")(args.ctypes.data)


def run_slices(run: Callable[[Array], Outcome], table: Array) -> Outcome:
    """Runs a table to its end, with a function that may leave steps for later. In between Python handles signals."""
    done, rest = 0, table
    while True:
        row, status = run(rest)
        if row < 0:
            return row, status
        if status:
            return done + row, status
        done += row
        rest = table[done:]
