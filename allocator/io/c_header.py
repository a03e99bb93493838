"""A C header: bytes and alignment of the arena, and for each tensor its offset and size, as macros, and an enum."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import frozen

from allocator.errors import FormatError, shown
from allocator.io.instance import Instance, check_holds, check_placed

PREFIX = "ARENA"
"""The first word of all names in a header, where no other is asked for."""
_TITLE = "a C header"
_FOREIGN = re.compile(r"[^A-Za-z0-9_]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_INT = 2**32


@frozen
class Tensor:
    """One tensor of a header: where it lies, and what the comment about it says."""

    name: str
    offset: int
    size: int
    about: str


@frozen
class Part:
    """Bytes [begin, end) of the arena that lie in a memory of that name."""

    name: str
    begin: int
    end: int


def render(instance: Instance, prefix: str = PREFIX) -> bytes:
    """Returns the text of the header of buffers.

    Raises UnsupportedProblemError where a buffer has no offset, FormatError for a prefix that begins no identifier.
    """
    check_holds(instance, _TITLE, ("overwrites", "alignments", "gaps"))
    check_placed(instance, _TITLE)
    problem = instance.problem
    columns = (instance.offset.tolist(), problem.size.tolist(), problem.begin.tolist(), problem.end.tolist())
    rows = zip(instance.ids, *columns, strict=True)
    tensors = [Tensor(name, offset, size, lifetime(begin, end)) for name, offset, size, begin, end in rows]
    alignment = math.lcm(*set(problem.alignment.tolist()))
    return render_tensors(tensors, instance.arena_bytes, alignment, prefix)


def lifetime(begin: int, end: int) -> str:
    """Returns the ticks of a tensor, in words."""
    return f"ticks [{begin}, {end})"


def render_tensors(
    tensors: Sequence[Tensor],
    arena_bytes: int,
    alignment: int,
    prefix: str = PREFIX,
    title: str = "",
    *,
    parts: Sequence[Part] = (),
) -> bytes:
    """Returns the text of a header, whose names begin with `prefix`. Sizes are bytes.

    `parts` are those of several memories; each becomes two names, of its first byte and of its end.
    Names become identifiers of C; those that would be the same get a number behind. Raises FormatError for a prefix
    that begins no identifier.
    """
    if not _NAME.fullmatch(prefix):
        raise FormatError(f"the prefix {shown(prefix)} is no identifier of C, such as {PREFIX}")
    names = identifiers([t.name for t in tensors])
    pairs = list(zip(names, tensors, strict=True))
    lines = (
        f"/* {_printable(title)} Sizes and offsets are bytes, lifetimes are ticks [first, end). */".replace("  ", " "),
        f"#ifndef {prefix}_PLAN_H",
        f"#define {prefix}_PLAN_H",
        "",
        _define(f"{prefix}_BYTES", arena_bytes),
        _define(f"{prefix}_ALIGNMENT", alignment),
        *(line for part in parts for line in _part(prefix, part)),
        "",
        f"enum {prefix.lower()}_tensor {{",
        *(f"  {prefix}_TENSOR_{name},{_comment(name, tensor)}" for name, tensor in pairs),
        f"  {prefix}_TENSORS",
        "};",
        "",
        *(line for name, tensor in pairs for line in _place(prefix, name, tensor)),
        "",
        *_each(prefix, pairs),
        "",
        "#endif",
        "",
    )
    return "\n".join(lines).encode()


def _part(prefix: str, part: Part) -> Iterator[str]:
    yield _define(f"{prefix}_BEGIN_{part.name}", part.begin)
    yield _define(f"{prefix}_END_{part.name}", part.end)


def _place(prefix: str, name: str, tensor: Tensor) -> Iterator[str]:
    yield _define(f"{prefix}_OFFSET_{name}", tensor.offset)
    yield _define(f"{prefix}_SIZE_{name}", tensor.size)


def _each(prefix: str, pairs: Sequence[tuple[str, Tensor]]) -> Iterator[str]:
    """Yields a macro that applies another one to name, offset and size of each tensor."""
    rows = [f"  X({name}, {_number(tensor.offset)}, {_number(tensor.size)})" for name, tensor in pairs]
    lines = [f"#define {prefix}_EACH_TENSOR(X)", *rows]
    yield "/* X(name, offset, size) of each tensor, in the order of the enum. */"
    yield from (f"{line} \\" for line in lines[:-1])
    yield lines[-1]


def identifiers(ids: Sequence[str]) -> list[str]:
    """Returns texts as parts of identifiers, all different. What is one already stays as it is."""
    taken = {i for i in ids if i and not _FOREIGN.search(i)}
    times, kept = Counter[str](), set[str]()
    unique = []
    for name in ids:
        identifier = name
        if name not in taken or name in kept:
            identifier = stem = _FOREIGN.sub("_", name) or "_"
            while identifier in taken:
                times[stem] += 1
                identifier = f"{stem}_{times[stem] + 1}"
            taken.add(identifier)
        kept.add(identifier)
        unique.append(identifier)
    return unique


def _define(name: str, value: int) -> str:
    return f"#define {name} {_number(value)}"


def _number(value: int) -> str:
    return f"{max(value, 0)}{'u' if value < _INT else 'ull'}"


def _comment(name: str, tensor: Tensor) -> str:
    """Returns a comment about a tensor, with its original name where the identifier is another."""
    original = "" if name == tensor.name else f"{_printable(tensor.name)}: "
    return f" /* {original}{_printable(tensor.about)} */"


def _printable(text: str) -> str:
    """Returns a text that can neither end a comment nor its line."""
    return "".join(c if c.isprintable() else "?" for c in text).replace("*/", "* /").replace("/*", "/ *")
