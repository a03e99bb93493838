"""Reads what a linker needs of a relocatable ELF object of 64 bits: sections, symbols, relocations."""

import struct

from attrs import frozen

from allocator.machine_code.errors import ObjectFormatError

_FILE = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_IDENT = b"\x7fELF\x02\x01\x01"
"""Of 64 bits, the lowest byte first, version 1."""
_RELOCATABLE = 1
_SYMBOLS, _WITH_ADDENDS, _ZEROS, _WITHOUT_ADDENDS = 2, 4, 8, 9
"""Types of sections."""
UNDEFINED, ABSOLUTE = 0, 0xFFF1
"""Sections of symbols that another object has, and of those that are numbers."""
WRITABLE, ALLOCATED, EXECUTABLE, THREAD_LOCAL = 1, 2, 4, 0x400
"""Flags of sections."""


@frozen
class Section:
    """Bytes that lie in memory at a multiple of `alignment`, if `flags` has ALLOCATED."""

    name: str
    flags: int
    content: bytes
    alignment: int


@frozen
class Symbol:
    """A place in a section; UNDEFINED is the section of one that is looked up by its name."""

    name: str
    section: int
    value: int


@frozen
class Relocation:
    """A place in a section that is filled when the address of a symbol is known; `kind` is a number of the ELF ABI."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@frozen
class ElfObject:
    """An object; `machine` is the processor's number. Sections and symbols are referred to by their positions."""

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def read_object(content: bytes) -> ElfObject:
    """Returns the parts of an object. Raises ObjectFormatError where it is none."""
    try:
        return _read(content)
    except (struct.error, IndexError, ValueError, OverflowError, MemoryError) as error:
        raise ObjectFormatError(f"this is no ELF object that can be linked: {error}") from error


def _read(content: bytes) -> ElfObject:
    ident, kind, machine, _, _, _, start, _, _, _, _, size, count, names_at = _FILE.unpack_from(content)
    if not ident.startswith(_IDENT) or kind != _RELOCATABLE or size != _SECTION.size:
        raise ValueError("it is not relocatable, of 64 bits, with the lowest byte first")
    headers = [_SECTION.unpack_from(content, start + i * size) for i in range(count)]
    contents = [_content(content, header) for header in headers]
    names = contents[names_at]
    sections = tuple(
        Section(_text(names, h[0]), h[2], inside, max(h[8], 1)) for h, inside in zip(headers, contents, strict=True)
    )
    symbols: tuple[Symbol, ...] = ()
    relocations: list[Relocation] = []
    for header, inside in zip(headers, contents, strict=True):
        if header[1] == _SYMBOLS:
            symbols = _symbols(inside, contents[header[6]])
        elif header[1] == _WITH_ADDENDS:
            relocations += _relocations(inside, header[7])
        elif header[1] == _WITHOUT_ADDENDS:
            raise ValueError("its relocations have no addends")
    return ElfObject(machine, sections, symbols, tuple(relocations))


def _content(content: bytes, header: tuple[int, ...]) -> bytes:
    kind, offset, size = header[1], header[4], header[5]
    if kind == _ZEROS:
        return bytes(size)
    if kind and offset + size > len(content):
        raise ValueError("a section ends behind the file")
    return content[offset : offset + size] if kind else b""


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()


def _symbols(content: bytes, names: bytes) -> tuple[Symbol, ...]:
    return tuple(
        Symbol(_text(names, name), section, value) for name, _, _, section, value, _ in _SYMBOL.iter_unpack(content)
    )


def _relocations(content: bytes, section: int) -> list[Relocation]:
    return [
        Relocation(section, offset, info & 0xFFFFFFFF, info >> 32, addend)
        for offset, info, addend in _RELOCATION.iter_unpack(content)
    ]
