"""The relocations that the linker knows, for each processor, and the stubs by which code calls far functions.

S is the address of the symbol, A the addend, P the place that is filled. A relocation points to the symbol itself; for
a call, to the symbol or, where another library has it, to a stub that jumps there; or to the symbol's slot, a word of
the table that holds its address.
"""

import struct
from collections.abc import Callable, Mapping
from enum import Enum, auto

from attrs import frozen

from allocator.machine_code.errors import RelocationError

Bytes = bytearray
_INT, _WORD = struct.Struct("<i"), struct.Struct("<I")
_PAGE = 1 << 12
"""Bytes of what ADRP counts in, whatever the pages of the system are."""


class Target(Enum):
    """What a relocation points to."""

    SYMBOL = auto()
    CALL = auto()
    SLOT = auto()
    ADDRESS = auto()
    """The symbol, whose address is only known when the code is loaded: a word of the table."""


@frozen
class Rule:
    """A relocation: what it points to, and fill(content, offset of the place in it, P, S + A)."""

    target: Target
    fill: Callable[[Bytes, int, int, int], None]


@frozen
class Processor:
    """How a processor's code is linked: its relocations by number, stub(P, slot), and the bytes of its largest page."""

    rules: Mapping[int, Rule]
    stub: Callable[[int, int], bytes]
    stub_bytes: int
    page: int


def _relative(content: Bytes, at: int, place: int, goal: int) -> None:
    distance = goal - place
    _check(distance, 31, "a relative address")
    _INT.pack_into(content, at, distance)


def _later(*_: object) -> None:
    """Fills nothing: the loader does."""


def _check(distance: int, bits: int, what: str) -> None:
    if not -(1 << bits) <= distance < 1 << bits:
        raise RelocationError(f"{what} of {distance} bytes does not fit into {bits + 1} bits")


def _insert(content: Bytes, at: int, bits: int) -> None:
    _WORD.pack_into(content, at, _WORD.unpack_from(content, at)[0] | bits)


def _branch(content: Bytes, at: int, place: int, goal: int) -> None:
    _check(goal - place, 27, "a branch")
    _insert(content, at, (goal - place) >> 2 & 0x3FFFFFF)


def _pages(place: int, goal: int) -> int:
    """Returns the bits of ADRP: by how many pages the goal's page is away."""
    distance = goal // _PAGE - place // _PAGE
    _check(distance, 20, "an address in pages")
    return (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5


def _page_of(content: Bytes, at: int, place: int, goal: int) -> None:
    _insert(content, at, _pages(place, goal))


def _in_page(item: int) -> Callable[[Bytes, int, int, int], None]:
    """Returns the filling of an offset in a page, which an instruction counts in items of so many bytes."""

    def fill(content: Bytes, at: int, _: int, goal: int) -> None:
        if goal % item:
            raise RelocationError(f"address {goal} is no multiple of {item} bytes")
        _insert(content, at, goal % _PAGE // item << 10)

    return fill


def _jump_x86(place: int, slot: int) -> bytes:
    return b"\xff\x25" + _INT.pack(slot - place - 6)


def _jump_arm(place: int, slot: int) -> bytes:
    """Returns adrp x16, slot; ldr x16, [x16, slot]; br x16."""
    load = 0xF9400210 | slot % _PAGE // 8 << 10
    return b"".join(map(_WORD.pack, (0x90000010 | _pages(place, slot), load, 0xD61F0200)))


_X86 = Processor(
    {
        1: Rule(Target.ADDRESS, _later),  # R_X86_64_64
        2: Rule(Target.SYMBOL, _relative),  # R_X86_64_PC32
        4: Rule(Target.CALL, _relative),  # R_X86_64_PLT32
        9: Rule(Target.SLOT, _relative),  # R_X86_64_GOTPCREL
        41: Rule(Target.SLOT, _relative),  # R_X86_64_GOTPCRELX
        42: Rule(Target.SLOT, _relative),  # R_X86_64_REX_GOTPCRELX
    },
    _jump_x86,
    6,
    1 << 12,
)
_ARM = Processor(
    {
        257: Rule(Target.ADDRESS, _later),  # R_AARCH64_ABS64
        261: Rule(Target.SYMBOL, _relative),  # R_AARCH64_PREL32
        275: Rule(Target.SYMBOL, _page_of),  # R_AARCH64_ADR_PREL_PG_HI21
        277: Rule(Target.SYMBOL, _in_page(1)),  # R_AARCH64_ADD_ABS_LO12_NC
        278: Rule(Target.SYMBOL, _in_page(1)),  # R_AARCH64_LDST8_ABS_LO12_NC
        282: Rule(Target.CALL, _branch),  # R_AARCH64_JUMP26
        283: Rule(Target.CALL, _branch),  # R_AARCH64_CALL26
        284: Rule(Target.SYMBOL, _in_page(2)),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: Rule(Target.SYMBOL, _in_page(4)),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: Rule(Target.SYMBOL, _in_page(8)),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: Rule(Target.SYMBOL, _in_page(16)),  # R_AARCH64_LDST128_ABS_LO12_NC
        311: Rule(Target.SLOT, _page_of),  # R_AARCH64_ADR_GOT_PAGE
        312: Rule(Target.SLOT, _in_page(8)),  # R_AARCH64_LD64_GOT_LO12_NC
    },
    _jump_arm,
    12,
    1 << 16,
)
PROCESSORS: Mapping[int, Processor] = {62: _X86, 183: _ARM}
"""By the number that an ELF object has for its machine."""
