"""Primitives of the library, and calls of them as steps of compiled programs."""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from ops.native.aligned import aligned_zeros
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
from ops.tensor.layout import CACHE_LINE, address_of
from ops.tensor.spec import Array, TensorSpec

LINE = CACHE_LINE
_UNPLANNED = frozenset({"ref", "simple", "gemm"})
"""Implementations that are slow, one element after the other, or that allocate memory for packing."""
KEPT = 1024
"""Most descriptions of primitives that are kept for the next graph."""


class Case(Hashable, Protocol):
    """The operation of a primitive, as plain data that can be hashed."""

    @property
    def posts(self) -> tuple[Post, ...]:
        """Returns the post-operations."""

    def describe(self, at: Library, attributes: Any) -> Any:
        """Returns the library's description. Raises RefusedError or LibraryError."""


@define(eq=False, slots=False)
class Primitive:
    """A description for a number of threads; the library compiles its code on first use."""

    at: Library
    description: Any
    threads: int
    _code: list[Any] = field(factory=list)

    @property
    def code(self) -> Any:
        """Returns the compiled primitive."""
        if not self._code:
            self.at.lib.omp_set_num_threads(self.threads)  # the library's own cache knows code by it
            self._code.append(self.at.new("primitive", "primitive_create", self.description))
        return self._code[0]

    def layout(self, what: int) -> Any:
        """Returns the descriptor of a tensor in the layout that the library needs; the description owns it."""
        return self.at.lib.dnnl_primitive_desc_query_md(self.description, what, 0)

    @property
    def implementation(self) -> str:
        """Returns the library's name of the implementation."""
        name = self.at.ffi.new("const char **")
        self.at.lib.dnnl_primitive_desc_query(self.description, IMPLEMENTATION, 0, name)
        return str(self.at.ffi.string(name[0]).decode())

    @property
    def planned(self) -> bool:
        """Returns whether it is fast and allocates nothing; it allocates if it calls the library's own GEMM."""
        return _UNPLANNED.isdisjoint(self.implementation.split(":"))

    @property
    def weights(self) -> Any:
        """Returns the descriptor of the weights."""
        return self.layout(WEIGHTS_LAYOUT)

    def size(self, descriptor: Any) -> int:
        """Returns the bytes of a tensor."""
        return int(self.at.lib.dnnl_memory_desc_get_size(descriptor))

    @property
    def packed_spec(self) -> TensorSpec:
        """Returns the spec of what `reordered` returns for the weights: bytes."""
        return TensorSpec((self.size(self.weights),), np.dtype(np.uint8))

    @property
    def scratchpad(self) -> int:
        """Returns the bytes of workspace, which may have any address."""
        needed = self.size(self.layout(SCRATCHPAD_LAYOUT))
        return needed + LINE if needed else 0


def primitives(case: Case, threads: int) -> tuple[Primitive, ...]:
    """Returns the primitive of a case, to run on so many threads; none if the library has no implementation."""
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
    """An array that a primitive reads or writes: its role, and its layout as the library's descriptor."""

    role: int
    descriptor: Any
    array: Array


@frozen(eq=False)
class Prepared:
    """The first fields of a call (`ops.onednn.args.CALL`), and the objects that must live as long as it."""

    fields: Mapping[str, int]
    keep: tuple[Any, ...]


def prepare(primitive: Primitive, operands: Sequence[Operand], workspace: Array) -> Prepared:
    """Returns the arguments of a call of a primitive. Raises LibraryError if the workspace is too small for it."""
    at, code = primitive.at, primitive.code
    if workspace.nbytes < primitive.scratchpad:
        raise LibraryError(f"oneDNN needs a workspace of {primitive.scratchpad} bytes, and has {workspace.nbytes}")
    memories = [(o.role, _memory(at, o.descriptor, address_of(o.array))) for o in operands]
    if primitive.scratchpad:
        start = -(-address_of(workspace) // LINE) * LINE
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


def reordered(source: Array, before: Any, after: Any, threads: int) -> Array:
    """Returns the bytes of an array in another layout, at a cache line; layouts are the library's descriptors."""
    at = library()
    at.lib.omp_set_num_threads(threads)
    description = at.new(
        "primitive_desc", "reorder_primitive_desc_create", before, at.engine, after, at.engine, attributes(at, ())
    )
    primitive = Primitive(at, description, threads)
    target = aligned_zeros((primitive.size(after),), np.uint8)
    operands = Operand(SOURCE, before, source), Operand(TARGET, after, target)
    prepared = prepare(primitive, operands, aligned_zeros((primitive.scratchpad,), np.uint8))
    fields = prepared.fields
    at.lib.omp_set_num_threads(fields["threads"])
    kinds = {"primitive": "dnnl_primitive_t", "stream": "dnnl_stream_t", "arguments": "dnnl_exec_arg_t *"}
    code, stream, arguments = (at.ffi.cast(kind, fields[name]) for name, kind in kinds.items())
    status = with_live_threads(lambda: at.lib.dnnl_primitive_execute(code, stream, fields["count"], arguments))
    check(status, "primitive_execute")
    return target
