"""idealloc's PLC (github.com/cappadokes/idealloc), read and written: 64 bytes a buffer, 8 big-endian 64-bit words.

id, birth, death, size, heap, offset, alignment (0: none), requested size. Lifetimes are open: (birth, death).
"""

import numpy as np

from allocator.errors import FormatError
from allocator.io.idealloc_csv import numeric_ids, open_lifetimes
from allocator.io.instance import LARGEST, Instance, check_holds, check_placed, named_problem
from allocator.problem import FREE

_FIELDS = ("id", "birth", "death", "size", "heap", "offset", "alignment", "requested size")
_ID, _BIRTH, _DEATH, _SIZE, _HEAP, _OFFSET, _ALIGNMENT, _REQUESTED = range(8)
_WORD = np.dtype(">u8")
_RECORD = len(_FIELDS) * _WORD.itemsize
_TITLE = "idealloc's PLC"


def parse(content: bytes) -> Instance:
    """Parses buffers and their offsets. Raises FormatError, which names record and field, and ProblemError."""
    if len(content) % _RECORD:
        raise FormatError(f"has {len(content)} bytes, which is no whole number of records of {_RECORD} bytes")
    words = np.frombuffer(content, _WORD).reshape(-1, len(_FIELDS))
    wrong = np.argwhere(words >= LARGEST)
    if len(wrong):
        row, field = wrong[0].tolist()
        raise FormatError(f"record {row}, field {_FIELDS[field]}: {words[row, field]} is not below {LARGEST}")
    values = words.astype(np.int64)
    birth, death = values[:, _BIRTH], values[:, _DEATH]
    empty = np.flatnonzero(death < birth + 2)
    if len(empty):
        row = int(empty[0])
        raise FormatError(f"record {row}, field death: the open lifetime ({birth[row]}, {death[row]}) has no tick")
    ids = list(map(str, values[:, _ID].tolist()))
    problem = named_problem(
        ids,
        begin=birth,
        end=death,
        size=values[:, _SIZE],
        alignment=np.maximum(values[:, _ALIGNMENT], 1),
        pinned=[FREE] * len(ids),
    )
    return Instance(problem, ids, values[:, _OFFSET])


def render(instance: Instance) -> bytes:
    """Returns the plan as records, lifetimes doubled; ids that are no numbers become positions.

    Raises UnsupportedProblemError for overwrites, gaps, and buffers without an offset.
    """
    check_holds(instance, _TITLE, ("alignments",))
    check_placed(instance, _TITLE)
    problem = instance.problem
    words = np.zeros((len(problem), len(_FIELDS)), np.int64)
    words[:, _ID] = numeric_ids(instance.ids)
    words[:, _BIRTH], words[:, _DEATH] = open_lifetimes(problem.begin, problem.end)
    words[:, _SIZE] = words[:, _REQUESTED] = problem.size
    words[:, _OFFSET] = np.maximum(instance.offset, 0)
    words[:, _ALIGNMENT] = np.where(problem.alignment == 1, 0, problem.alignment)
    return words.astype(_WORD).tobytes()
