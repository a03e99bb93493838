"""Linked code, and the file that keeps it: a header with a checksum of all that follows, then the parts, as in memory.

magic, checksum          the checksum is also that of the file's own name, so that no file stands in for another one
sizes, JSON              sizes of the parts; the words of the table; checksums of the sources of the code
code, constants, table   from the next page on; the loader fills the words of the table, and nothing else
"""

import json
import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from attrs import frozen

from allocator.machine_code.checksum import SIZE, checksum
from allocator.machine_code.errors import ImageError

_MAGIC = b"arenaMC1"
_SIZES = struct.Struct("<IIIIII")
_HEAD = len(_MAGIC) + SIZE + _SIZES.size
MOST_BYTES = 1 << 26
"""A file of more was not written here."""


@frozen
class Word:
    """A word of the table at an offset in it: a number more than the address of a function of the C library, or than
    that of the image if the name is empty.
    """

    offset: int
    name: str
    addend: int


@frozen
class Image:
    """Linked code; `entry` is the offset of its function; sizes of parts are multiples of `page`."""

    code: bytes
    constants: bytes
    table: bytes
    entry: int
    words: tuple[Word, ...]
    page: int


@frozen
class Stored:
    """A stored image: where its parts lie in the file, and the checksums of the sources that it was made from."""

    code: range
    constants: range
    table: range
    entry: int
    words: tuple[Word, ...]
    sources: Mapping[str, str]


def write_image(image: Image, sources: Mapping[str, str], name: str) -> bytes:
    """Returns the content of a file of that name."""
    words = [[word.offset, word.name, word.addend] for word in image.words]
    text = json.dumps({"words": words, "sources": dict(sources)}).encode()
    parts = image.code, image.constants, image.table
    sizes = _SIZES.pack(len(text), image.page, image.entry, *map(len, parts))
    padding = bytes(-(_HEAD + len(text)) % image.page)
    rest = sizes + text + padding + b"".join(parts)
    return _MAGIC + _checksum(rest, name) + rest


def read_image(content: bytes, name: str) -> Stored:
    """Returns what a file of that name holds. Raises ImageError where it is not as it was written."""
    rest = content[len(_MAGIC) + SIZE :]
    if content[: -len(rest) or None] != _MAGIC + _checksum(rest, name) or len(rest) < _SIZES.size:
        raise ImageError(f"{name} is not as it was written")
    text, page, entry, *sizes = _SIZES.unpack_from(rest)
    at = _HEAD + text
    facts: dict[str, Any] = json.loads(content[_HEAD:at])
    starts = [at + -at % page]
    for size in sizes:
        starts.append(starts[-1] + size)
    code, constants, table = (range(first, last) for first, last in pairwise(starts))
    words = tuple(Word(offset, symbol, addend) for offset, symbol, addend in facts["words"])
    return Stored(code, constants, table, entry, words, facts["sources"])


def _checksum(rest: bytes, name: str) -> bytes:
    return checksum(name.encode(), b"\n", rest)
