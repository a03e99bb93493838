"""What a program needs that counts references, in place of planning."""

from allocator.breadths import breadths_of
from allocator.derive.chunks import derive
from allocator.steps import Program


def refcount_peak(program: Program) -> int:
    """Returns the peak in bytes of reference counting without overwrites.

    Views share bytes; a chunk lives from its write to its last reader.

    Bytes that live at once; what a heap loses to fragmentation is not in it. Overwrites that are required take place.
    """
    chunks = derive(program, overwrite=False)
    begin = chunks.begin.copy()
    begin[chunks.src] += 1  # in the bytes of what it overwrites, which are counted already
    return int(breadths_of(begin, chunks.end, chunks.size).value.max(initial=0))
