"""Primitives of the library, and calls of them as steps of compiled programs."""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from ops.onednn.declarations import (
    IMPLEMENTATION,
    SCRATCHPAD,
    SCRATCHPAD_LAYOUT,
    SOURCE,
    TARGET,
    WEIGHTS_LAYOUT,
)
from ops.onednn.descriptors import Post, attributes
from ops.onednn.library import Library, LibraryError, check, library, objection
from ops.onednn.openmp import with_live_threads
from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import Array

LINE = CACHE_LINE
_UNPLANNED = frozenset({"ref", "simple", "gemm"})
"""Implementations for every case, one element after the other; and those that take packing buffers from the system."""
KEPT = 1024
"""Descriptions of primitives that are kept for the next graph."""


class Case(Hashable, Protocol):
    """What a primitive computes, as plain data that can be hashed."""

    @property
    def posts(self) -> tuple[Post, ...]:
        """What follows on its sums."""

    def describe(self, at: Library, attributes: Any) -> Any:
        """The library's description. Raises RefusedError or LibraryError."""


@define(eq=False, slots=False)
class Primitive:
    """A description; its code is made on first use. `threads` is for how many it was made."""

    at: Library
    description: Any
    threads: int
    _made: list[Any] = field(factory=list)

    @property
    def code(self) -> Any:
        """What can be executed."""
        if not self._made:
            self.at.lib.omp_set_num_threads(self.threads)  # the library's own cache knows code by it
            self._made.append(self.at.new("primitive", "primitive_create", self.description))
        return self._made[0]

    def layout(self, what: int) -> Any:
        """The descriptor of a tensor as the library wants it; owned by the description."""
        return self.at.lib.dnnl_primitive_desc_query_md(self.description, what, 0)

    @property
    def implementation(self) -> str:
        """The library's name for how it computes."""
        name = self.at.ffi.new("const char **")
        self.at.lib.dnnl_primitive_desc_query(self.description, IMPLEMENTATION, 0, name)
        return str(self.at.ffi.string(name[0]).decode())

    @property
    def planned(self) -> bool:
        """Whether it is fast and all its memory is the scratchpad: not so where it calls the library's own GEMM."""
        return _UNPLANNED.isdisjoint(self.implementation.split(":"))

    @property
    def weights(self) -> Any:
        """How the weights must lie."""
        return self.layout(WEIGHTS_LAYOUT)

    def size(self, descriptor: Any) -> int:
        """Bytes of a tensor."""
        return int(self.at.lib.dnnl_memory_desc_get_size(descriptor))

    @property
    def scratchpad(self) -> int:
        """Bytes of workspace, which may begin anywhere."""
        needed = self.size(self.layout(SCRATCHPAD_LAYOUT))
        return needed + LINE if needed else 0


def primitives(case: Case, threads: int) -> tuple[Primitive, ...]:
    """The primitive of a case, to run on so many threads; none where the library cannot do it."""
    return () if objection() else _primitives(case, threads)


@lru_cache(maxsize=KEPT)
def _primitives(case: Case, count: int) -> tuple[Primitive, ...]:
    at = library()
    at.lib.omp_set_num_threads(count)
    try:
        return (Primitive(at, case.describe(at, attributes(at, case.posts)), count),)
    except LibraryError:
        return ()


@frozen(eq=False)
class Operand:
    """An array that a primitive reads or writes: which one it is to the library, and how it lies."""

    role: int
    descriptor: Any
    array: Array


def address(array: Array) -> int:
    """Of the first element."""
    return int(array.__array_interface__["data"][0])


@frozen(eq=False)
class Prepared:
    """The first fields of a call (`ops.onednn.args.CALL`), and the objects that must live as long as it."""

    fields: Mapping[str, int]
    keep: tuple[Any, ...]


def prepare(primitive: Primitive, operands: Sequence[Operand], workspace: Array) -> Prepared:
    """What a call of a primitive needs. Raises LibraryError where the workspace is too small for it."""
    at, code = primitive.at, primitive.code
    if workspace.nbytes < primitive.scratchpad:
        raise LibraryError(f"oneDNN wants a workspace of {primitive.scratchpad} bytes, and has {workspace.nbytes}")
    memories = [(o.role, _memory(at, o.descriptor, address(o.array))) for o in operands]
    if primitive.scratchpad:
        start = -(-address(workspace) // LINE) * LINE
        memories.append((SCRATCHPAD, _memory(at, primitive.layout(SCRATCHPAD_LAYOUT), start)))
    arguments = at.ffi.new("dnnl_exec_arg_t[]", memories)
    threads_function, execute = (
        at.address(at.ffi.addressof(at.lib, name)) for name in ("omp_set_num_threads", "dnnl_primitive_execute")
    )
    fields = {
        "set_threads": threads_function,
        "threads": primitive.threads,
        "execute": execute,
        "primitive": at.address(code),
        "stream": at.address(at.stream),
        "count": len(memories),
        "arguments": at.address(arguments),
    }
    return Prepared(fields, (primitive, code, memories, arguments, workspace, *(o.array for o in operands)))


def _memory(at: Library, descriptor: Any, first: int) -> Any:
    return at.new("memory", "memory_create", descriptor, at.engine, at.ffi.cast("void *", first))


def reordered(source: Array, lies: Any, wanted: Any, threads: int) -> Array:
    """The elements of an array in another layout; both as the library describes them. Bytes at a line of the cache."""
    at = library()
    at.lib.omp_set_num_threads(threads)
    description = at.new(
        "primitive_desc", "reorder_primitive_desc_create", lies, at.engine, wanted, at.engine, attributes(at, ())
    )
    primitive = Primitive(at, description, threads)
    target = _lines(primitive.size(wanted))
    operands = Operand(SOURCE, lies, source), Operand(TARGET, wanted, target)
    prepared = prepare(primitive, operands, _lines(primitive.scratchpad))
    fields = prepared.fields
    at.lib.omp_set_num_threads(fields["threads"])
    kinds = {"primitive": "dnnl_primitive_t", "stream": "dnnl_stream_t", "arguments": "dnnl_exec_arg_t *"}
    code, stream, arguments = (at.ffi.cast(kind, fields[name]) for name, kind in kinds.items())
    status = with_live_threads(lambda: at.lib.dnnl_primitive_execute(code, stream, fields["count"], arguments))
    check(status, "primitive_execute")
    return target


def _lines(size: int) -> Array:
    """Zeros that begin at a line of the cache."""
    buffer = np.zeros(size + LINE, np.uint8)
    start = -address(buffer) % LINE
    return buffer[start : start + size]
