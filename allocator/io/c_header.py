"""A C header: bytes and alignment of the arena, and the offset of each buffer, as macros."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from allocator.io.instance import Instance, check_holds, check_placed

_TITLE = "a C header"
_PREFIX = "ARENA_OFFSET_"
_FOREIGN = re.compile(r"[^A-Za-z0-9_]")
_INT = 2**32


def render(instance: Instance) -> bytes:
    """Returns the text of the header. Ids become identifiers of C; those that would be the same get a number behind.

    Raises UnsupportedProblemError where a buffer has no offset.
    """
    check_holds(instance, _TITLE, ("overwrites", "alignments", "gaps"))
    check_placed(instance, _TITLE)
    alignment = math.lcm(*set(instance.problem.alignment.tolist()))
    names = identifiers(instance.ids)
    offsets = (_define(_PREFIX + name, at) for name, at in zip(names, instance.offset.tolist(), strict=True))
    lines = (
        "#ifndef ARENA_PLAN_H",
        "#define ARENA_PLAN_H",
        "",
        _define("ARENA_BYTES", instance.arena_bytes),
        _define("ARENA_ALIGNMENT", alignment),
        "",
        *(
            f"{line}{_comment(name, original)}"
            for line, name, original in zip(offsets, names, instance.ids, strict=True)
        ),
        "",
        "#endif",
        "",
    )
    return "\n".join(lines).encode()


def identifiers(ids: Sequence[str]) -> list[str]:
    """Returns texts as parts of identifiers, all different. What is one already stays as it is."""
    taken = {i for i in ids if i and not _FOREIGN.search(i)}
    times = Counter[str]()
    unique = []
    for name in ids:
        identifier = name
        if name not in taken:
            identifier = stem = _FOREIGN.sub("_", name) or "_"
            while identifier in taken:
                times[stem] += 1
                identifier = f"{stem}_{times[stem] + 1}"
            taken.add(identifier)
        unique.append(identifier)
    return unique


def _define(name: str, value: int) -> str:
    return f"#define {name} {max(value, 0)}{'u' if value < _INT else 'ull'}"


def _comment(name: str, original: str) -> str:
    """Returns a comment with the original name, where the macro has another; it cannot end the comment or the line."""
    printable = "".join(c if c.isprintable() else "?" for c in original).replace("*/", "* /")
    return "" if name == original else f" /* {printable} */"
