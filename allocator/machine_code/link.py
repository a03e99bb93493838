"""Links an object into an image: code and read-only data that run wherever they lie, and a table of addresses.

    code        sections of instructions, then stubs that jump to functions of the C library
    constants   sections that are only read
    table       data that has addresses in it, then a slot for each symbol whose address code reads

Each part starts at a page.
"""

from collections.abc import Iterable, Sequence

from attrs import define, field

from allocator.machine_code.elf import (
    ABSOLUTE,
    ALLOCATED,
    EXECUTABLE,
    THREAD_LOCAL,
    UNDEFINED,
    WRITABLE,
    ElfObject,
    Relocation,
    Symbol,
)
from allocator.machine_code.errors import ObjectFormatError, RelocationError, SectionError, SymbolError
from allocator.machine_code.image import Image, Word
from allocator.machine_code.library import FUNCTIONS
from allocator.machine_code.relocations import PROCESSORS, Processor, Rule, Target

_WORD, _INSTRUCTION = 8, 4
"""Bytes that a relocation fills: an address, or a part of an instruction."""
_UNWINDING = ".eh_frame"
"""A section for exceptions of C++, which compiled code does not throw."""
_CONSTANT = ".data.rel.ro"
"""Data that is only written by the loader."""


def link(linked: ElfObject, entry: str) -> Image:
    """Returns the image of an object, whose function `entry` is called.

    Raises a MachineCodeError: ObjectFormatError, SectionError, SymbolError, RelocationError.
    """
    processor = PROCESSORS.get(linked.machine)
    if processor is None:
        raise ObjectFormatError(f"objects for machine {linked.machine} cannot be linked: {[*PROCESSORS]} can")
    return _Linking(linked, processor).image(entry)


@define(eq=False)
class _Part:
    """One of the image's parts while it grows; `start` is its offset in the image."""

    content: bytearray = field(factory=bytearray)
    start: int = 0

    def add(self, content: bytes, alignment: int) -> int:
        """Appends bytes at a multiple of an alignment; returns their offset in the part."""
        self.content += bytes(-len(self.content) % alignment)
        self.content += content
        return len(self.content) - len(content)


class _Linking:
    def __init__(self, linked: ElfObject, processor: Processor) -> None:
        self._object, self._processor = linked, processor
        self._code, self._constants, self._table = self._parts = _Part(), _Part(), _Part()
        self._sections: dict[int, tuple[_Part, int]] = {}
        self._slots: dict[int, int] = {}
        self._stubs: dict[int, int] = {}
        self._words: list[Word] = []

    def image(self, entry: str) -> Image:
        relocations = self._place_sections()
        self._reserve(relocations)
        self._round_parts()
        for number, offset in self._stubs.items():
            stub = self._processor.stub(offset, self._table.start + self._slots[number])
            self._code.content[offset : offset + len(stub)] = stub
        for relocation in relocations:
            self._relocate(relocation)
        self._words += [self._word(offset, self._symbol(number), 0) for number, offset in self._slots.items()]
        code, constants, table = (bytes(part.content) for part in self._parts)
        return Image(code, constants, table, self._entry(entry), tuple(self._words), self._processor.page)

    def _entry(self, name: str) -> int:
        for symbol in self._object.symbols:
            if symbol.name == name and self._part_of(symbol) is self._code:
                return self._place(symbol)
        raise SymbolError(f"the object has no function {name!r}")

    def _place_sections(self) -> tuple[Relocation, ...]:
        """Puts each section into its part; returns the relocations of those that are in one."""
        for number, section in enumerate(self._object.sections):
            if not section.flags & ALLOCATED or not section.content or section.name == _UNWINDING:
                continue
            if section.flags & THREAD_LOCAL or (section.flags & WRITABLE and not section.name.startswith(_CONSTANT)):
                raise SectionError(f"section {section.name!r} has data that is written, which code here may not have")
            if section.alignment > self._processor.page:
                raise SectionError(
                    f"section {section.name!r} wants a multiple of {section.alignment} bytes, not a page"
                )
            part = self._constants
            if section.flags & (EXECUTABLE | WRITABLE):
                part = self._code if section.flags & EXECUTABLE else self._table
            self._sections[number] = part, part.add(section.content, section.alignment)
        return tuple(r for r in self._object.relocations if r.section in self._sections)

    def _reserve(self, relocations: Iterable[Relocation]) -> None:
        """Reserves slots and stubs for the symbols that want one."""
        for relocation in relocations:
            target, number = self._rule(relocation).target, relocation.symbol
            is_far_call = target is Target.CALL and self._symbol(number).section == UNDEFINED
            if (target is Target.SLOT or is_far_call) and number not in self._slots:
                self._slots[number] = self._table.add(bytes(_WORD), _WORD)
            if is_far_call and number not in self._stubs:
                self._stubs[number] = self._code.add(bytes(self._processor.stub_bytes), 4)

    def _round_parts(self) -> None:
        start = 0
        for part in self._parts:
            part.content += bytes(-len(part.content) % self._processor.page)
            part.start, start = start, start + len(part.content)

    def _relocate(self, relocation: Relocation) -> None:
        rule, symbol = self._rule(relocation), self._symbol(relocation.symbol)
        part, start = self._sections[relocation.section]
        offset = start + relocation.offset
        wanted = _WORD if rule.target is Target.ADDRESS else _INSTRUCTION
        if relocation.offset + wanted > len(self._object.sections[relocation.section].content):
            raise ObjectFormatError(f"a relocation wants byte {relocation.offset} of a section, behind its end")
        if rule.target is Target.ADDRESS:
            if part is not self._table or offset % _WORD:
                raise RelocationError(f"the address of {symbol.name!r} is wanted in data that is only read")
            self._words.append(self._word(offset, symbol, relocation.addend))
            return
        if rule.target is Target.SLOT:
            goal = self._table.start + self._slots[relocation.symbol]
        else:
            goal = self._stubs.get(relocation.symbol, -1) if rule.target is Target.CALL else -1
            goal = goal if goal >= 0 else self._place(symbol)
        rule.fill(part.content, offset, part.start + offset, goal + relocation.addend)

    def _word(self, offset: int, symbol: Symbol, addend: int) -> Word:
        if symbol.section == UNDEFINED:
            if symbol.name not in FUNCTIONS:
                raise SymbolError(f"compiled code wants {symbol.name!r}, which is no function of the C library")
            return Word(offset, symbol.name, addend)
        return Word(offset, "", self._place(symbol) + addend)

    def _symbol(self, number: int) -> Symbol:
        symbols: Sequence[Symbol] = self._object.symbols
        if number >= len(symbols):
            raise ObjectFormatError(f"a relocation names symbol {number} of {len(symbols)}")
        return symbols[number]

    def _part_of(self, symbol: Symbol) -> _Part | None:
        return self._sections[symbol.section][0] if symbol.section in self._sections else None

    def _place(self, symbol: Symbol) -> int:
        """Returns the offset of a symbol in the image."""
        if symbol.section not in self._sections:
            reason = "is defined nowhere" if symbol.section == UNDEFINED else f"lies in section {symbol.section:#x}"
            kind = SymbolError if symbol.section in (UNDEFINED, ABSOLUTE) else SectionError
            raise kind(f"symbol {symbol.name!r} {reason}, which cannot be linked")
        part, start = self._sections[symbol.section]
        return part.start + start + symbol.value

    def _rule(self, relocation: Relocation) -> Rule:
        rule = self._processor.rules.get(relocation.kind)
        if rule is None:
            raise RelocationError(f"relocations of kind {relocation.kind} are not known")
        return rule
