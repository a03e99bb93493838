"""Each relocation that the linker knows puts the right bits into the right place, for both processors."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.machine_code.elf import ALLOCATED, EXECUTABLE, WRITABLE, ElfObject, Relocation, Section, Symbol
from allocator.machine_code.errors import ObjectFormatError, RelocationError, SectionError, SymbolError
from allocator.machine_code.image import Image, Word
from allocator.machine_code.link import link
from allocator.machine_code.relocations import PROCESSORS

X86, ARM = 62, 183
_CODE, _CONSTANTS, _TABLE = 1, 2, 3
INSIDE, FAR, NOWHERE, MISSING, START = 1, 2, 3, 4, 5
"""Symbols: in the constants; of the C library; a number; of nobody; the function."""


def _object(machine: int, relocation: Relocation, code: bytes = bytes(64), at: int = 0x40) -> ElfObject:
    sections = (
        Section("", 0, b"", 1),
        Section(".text", ALLOCATED | EXECUTABLE, code, 16),
        Section(".rodata", ALLOCATED, bytes(range(256)) * 20, 64),
        Section(".data.rel.ro", ALLOCATED | WRITABLE, bytes(32), 8),
    )
    symbols = (
        Symbol("", 0, 0),
        Symbol("inside", _CONSTANTS, at),
        Symbol("exp", 0, 0),
        Symbol("number", 0xFFF1, 5),
        Symbol("PyErr_Clear", 0, 0),
        Symbol("start", _CODE, 4),
    )
    return ElfObject(machine, sections, symbols, (relocation,))


def _linked(machine: int, kind: int, symbol: int, *, offset: int = 8, addend: int = 0, at: int = 0x40) -> Image:
    image = link(_object(machine, Relocation(_CODE, offset, kind, symbol, addend), at=at), "start")
    assert image.entry == 4
    assert all(len(part) % image.page == 0 for part in (image.code, image.constants, image.table))
    return image


def _int(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 4], "little", signed=True)


def _bits(word: int, low: int, count: int) -> int:
    return word >> low & (1 << count) - 1


def _signed(number: int, bits: int) -> int:
    return number - (number >> bits - 1 << bits)


OFFSETS = st.integers(0, 40)


@given(OFFSETS, st.integers(-1000, 1000), st.integers(0, 4000))
def test_a_relative_address_of_x86_is_s_plus_a_minus_p(offset: int, addend: int, at: int) -> None:
    image = _linked(X86, 2, INSIDE, offset=offset, addend=addend, at=at)
    assert _int(image.code, offset) == len(image.code) + at + addend - offset


def test_a_call_inside_goes_to_the_function_itself() -> None:
    image = _linked(X86, 4, START, addend=-4)
    assert _int(image.code, 8) == 4 - 4 - 8
    assert not image.words


@given(OFFSETS)
def test_a_far_call_of_x86_goes_to_a_stub_that_jumps_by_a_slot(offset: int) -> None:
    image = _linked(X86, 4, FAR, offset=offset, addend=-4)
    stub = offset + 4 + _int(image.code, offset)
    assert image.code[stub : stub + 2] == b"\xff\x25"
    slot = stub + 6 + _int(image.code, stub + 2)
    (word,) = image.words
    assert word == Word(slot - len(image.code) - len(image.constants), "exp", 0)


@pytest.mark.parametrize("kind", [9, 41, 42])
def test_a_slot_of_x86_has_the_address_of_a_function(kind: int) -> None:
    image = _linked(X86, kind, FAR, addend=-4)
    assert image.words == (Word(8 + 4 + _int(image.code, 8) - len(image.code) - len(image.constants), "exp", 0),)


def test_a_slot_may_have_an_address_of_the_image() -> None:
    image = _linked(X86, 42, INSIDE, addend=-4)
    assert [(word.name, word.addend) for word in image.words] == [("", len(image.code) + 0x40)]


@pytest.mark.parametrize(("machine", "kind"), [(X86, 1), (ARM, 257)])
def test_an_address_in_data_is_written_by_the_loader(machine: int, kind: int) -> None:
    image = link(_object(machine, Relocation(_TABLE, 16, kind, INSIDE, 3)), "start")
    assert image.words == (Word(16, "", len(image.code) + 0x40 + 3),)
    image = link(_object(machine, Relocation(_TABLE, 8, kind, FAR, 0)), "start")
    assert image.words == (Word(8, "exp", 0),)


@given(OFFSETS, st.integers(-1000, 1000))
def test_a_relative_address_of_arm_is_s_plus_a_minus_p(offset: int, addend: int) -> None:
    image = _linked(ARM, 261, INSIDE, offset=offset, addend=addend)
    assert _int(image.code, offset) == len(image.code) + 0x40 + addend - offset


@pytest.mark.parametrize("kind", [282, 283])
@given(st.sampled_from(range(0, 40, 4)))
def test_a_branch_of_arm_counts_in_words(kind: int, offset: int) -> None:
    image = _linked(ARM, kind, START, offset=offset)
    assert _signed(_bits(_int(image.code, offset), 0, 26), 26) * 4 == 4 - offset


@pytest.mark.parametrize("kind", [282, 283])
def test_a_far_call_of_arm_goes_to_a_stub_of_three_instructions(kind: int) -> None:
    image = _linked(ARM, kind, FAR)
    stub = 8 + _signed(_bits(_int(image.code, 8), 0, 26), 26) * 4
    page, load, jump = struct.unpack_from("<III", image.code, stub)
    assert page & 0x9F00001F == 0x90000010 and load & 0xFFC003FF == 0xF9400210 and jump == 0xD61F0200
    slot = _page_of(page, stub) + _bits(load, 10, 12) * 8
    assert image.words == (Word(slot - len(image.code) - len(image.constants), "exp", 0),)


def _page_of(word: int, place: int) -> int:
    """Returns the page that an ADRP at a place finds."""
    return (place >> 12) + _signed(_bits(word, 5, 19) << 2 | _bits(word, 29, 2), 21) << 12


@given(st.integers(0, 5000))
def test_a_page_and_an_offset_in_it_are_an_address_of_arm(at: int) -> None:
    page = _page_of(_int(_linked(ARM, 275, INSIDE, at=at).code, 8), 8)
    image = _linked(ARM, 277, INSIDE, at=at)
    assert page + _bits(_int(image.code, 8), 10, 12) == len(image.code) + at


@pytest.mark.parametrize(("kind", "item"), [(278, 1), (284, 2), (285, 4), (286, 8), (299, 16)])
@given(at=st.integers(0, 300))
def test_loads_of_arm_count_in_items(kind: int, item: int, at: int) -> None:
    image = _linked(ARM, kind, INSIDE, at=at * item)
    assert _bits(_int(image.code, 8), 10, 12) * item == (len(image.code) + at * item) % 4096
    if item > 1:
        with pytest.raises(RelocationError, match="no multiple"):
            _linked(ARM, kind, INSIDE, at=at * item + 1)


def test_a_slot_of_arm_is_found_by_page_and_offset() -> None:
    pages, offsets = _linked(ARM, 311, FAR), _linked(ARM, 312, FAR)
    slot = _page_of(_int(pages.code, 8), 8) + _bits(_int(offsets.code, 8), 10, 12) * 8
    assert pages.words == (Word(slot - len(pages.code) - len(pages.constants), "exp", 0),) == offsets.words


@pytest.mark.parametrize(("machine", "kind"), [(m, k) for m, p in PROCESSORS.items() for k in p.rules])
def test_every_relocation_has_a_test_here(machine: int, kind: int) -> None:
    tested = {X86: {1, 2, 4, 9, 41, 42}, ARM: {257, 261, 275, 277, 278, 282, 283, 284, 285, 286, 299, 311, 312}}
    assert kind in tested[machine]


def test_an_unknown_relocation_is_refused() -> None:
    with pytest.raises(RelocationError, match="kind 10 "):
        _linked(X86, 10, INSIDE)


def test_a_target_too_far_away_is_refused() -> None:
    with pytest.raises(RelocationError, match="does not fit"):
        _linked(X86, 2, INSIDE, addend=1 << 31)
    with pytest.raises(RelocationError, match="does not fit"):
        _linked(ARM, 283, START, addend=1 << 28)


@pytest.mark.parametrize(("kind", "last"), [(2, 60), (4, 60), (42, 60)])
def test_a_place_outside_of_its_section_is_refused(kind: int, last: int) -> None:
    assert _linked(X86, kind, START, offset=last)
    for offset in (last + 1, last + 4, 1 << 40, (1 << 64) - 4):
        with pytest.raises(ObjectFormatError, match="behind its end"):
            _linked(X86, kind, START, offset=offset)
    with pytest.raises(ObjectFormatError, match="behind its end"):
        link(_object(X86, Relocation(_TABLE, 28, 1, INSIDE, 0)), "start")


@pytest.mark.parametrize(("machine", "page"), [(X86, 1 << 12), (ARM, 1 << 16)])
def test_an_alignment_beyond_a_page_is_refused(machine: int, page: int) -> None:
    linked = _object(machine, Relocation(_CODE, 8, 2 if machine == X86 else 261, INSIDE, 0))
    for alignment, is_taken in ((page, True), (2 * page, False), (1 << 62, False)):
        sections = (*linked.sections, Section(".rodata.wide", ALLOCATED, b"wide", alignment))
        wide = ElfObject(machine, sections, linked.symbols, linked.relocations)
        if is_taken:
            image = link(wide, "start")
            assert (len(image.code) + image.constants.index(b"wide")) % page == 0
        else:
            with pytest.raises(SectionError, match="wide"):
                link(wide, "start")


def test_an_address_in_code_is_refused() -> None:
    with pytest.raises(RelocationError, match="only read"):
        _linked(X86, 1, INSIDE)


@pytest.mark.parametrize("kind", [4, 42])
def test_a_function_that_is_not_of_the_c_library_is_refused(kind: int) -> None:
    with pytest.raises(SymbolError, match="PyErr_Clear"):
        _linked(X86, kind, MISSING)


@pytest.mark.parametrize("symbol", [FAR, NOWHERE])
def test_a_relative_address_of_what_is_not_in_the_image_is_refused(symbol: int) -> None:
    with pytest.raises(SymbolError):
        _linked(X86, 2, symbol)


def test_data_that_is_written_is_refused() -> None:
    sections = (Section("", 0, b"", 1), Section(".data", ALLOCATED | WRITABLE, bytes(8), 8))
    with pytest.raises(SectionError, match="written"):
        link(ElfObject(X86, sections, (Symbol("", 0, 0),), ()), "start")
    with pytest.raises(SectionError, match="written"):
        threads = Section(".tdata", ALLOCATED | 0x400, bytes(8), 8)
        link(ElfObject(X86, (sections[0], threads), (Symbol("", 0, 0),), ()), "start")


def test_another_processor_or_a_missing_function_is_refused() -> None:
    linked = _object(X86, Relocation(_CODE, 0, 2, INSIDE, 0))
    with pytest.raises(SymbolError, match="other"):
        link(linked, "other")
    with pytest.raises(ObjectFormatError, match="machine 40"):
        link(_object(40, Relocation(_CODE, 0, 2, INSIDE, 0)), "start")


def test_sections_for_exceptions_are_left_out() -> None:
    linked = _object(X86, Relocation(4, 0, 99, INSIDE, 0))
    frames = Section(".eh_frame", ALLOCATED, b"frames" * 10, 8)
    image = link(ElfObject(X86, (*linked.sections, frames), linked.symbols, linked.relocations), "start")
    assert b"frames" not in image.code + image.constants + image.table
