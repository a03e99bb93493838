"""Mutations of bytes and of texts, for files of any format."""

import re

import numpy as np

NUMBERS = (0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 65535, 2**31 - 1, -(2**31), 2**31, 2**32, 2**53, 2**62, 2**63 - 1)
"""Integers at which something ends."""
MORE_NUMBERS = (2**63, -(2**63), 2**64, 10**30)
"""Integers that no field of 64 bits holds."""
TEXTS = ("", " ", "x", "NaN", "inf", "-inf", "1e400", "null", "true", "\0", "é", "🙂", "a" * 3000, '"', ",", "\n", "\r")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Returns the bytes after one change or some."""
    for _ in range(rng.geometric(0.6)):
        data = _BYTES[rng.integers(len(_BYTES))](data, rng)
    return data


def mutated_text(data: bytes, rng: np.random.Generator) -> bytes:
    """Returns a text after one change or some, most of which keep its form."""
    for _ in range(rng.geometric(0.6)):
        data = _TEXT[rng.integers(len(_TEXT))](data, rng)
    return data


def number(rng: np.random.Generator) -> int:
    """Draws an integer at which something ends, or any."""
    return NUMBERS[rng.integers(len(NUMBERS))] if rng.random() < 0.8 else int(rng.integers(-(2**62), 2**62))


def text(rng: np.random.Generator) -> str:
    """Draws a text that breaks formats."""
    return TEXTS[rng.integers(len(TEXTS))]


def _span(data: bytes, rng: np.random.Generator, longest: int = 64) -> slice:
    begin = int(rng.integers(len(data) + 1))
    return slice(begin, begin + int(rng.integers(longest)))


def _replaced(data: bytes, where: slice, by: bytes) -> bytes:
    return data[: where.start] + by + data[where.stop :]


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for at in rng.integers(max(1, len(data)), size=1 + rng.integers(3)) if data else ():
        changed[at] ^= 1 << rng.integers(8)
    return bytes(changed)


def _garbage(data: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(data, _span(data, rng, 8), rng.bytes(int(rng.integers(8))))


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(data, _span(data, rng), b"")


def _short(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(len(data) + 1)]


def _copy(data: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(data, _span(data, rng, 2), data[_span(data, rng)])


def _other_number(data: bytes, rng: np.random.Generator) -> bytes:
    matches = list(_NUMBER.finditer(data))
    if not matches:
        return _garbage(data, rng)
    match = matches[rng.integers(len(matches))]
    choices = (*NUMBERS, *MORE_NUMBERS, 0.5, 1e300)
    return _replaced(data, slice(*match.span()), str(choices[rng.integers(len(choices))]).encode())


def _other_text(data: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(data, _span(data, rng, 8), text(rng).encode())


def _line(data: bytes, rng: np.random.Generator) -> bytes:
    """Drops a line, doubles it or puts it elsewhere."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    line = lines.pop(rng.integers(len(lines)))
    for _ in range(rng.integers(3)):
        lines.insert(rng.integers(len(lines) + 1), line)
    return b"".join(lines)


_BYTES = (_flip, _garbage, _cut, _short, _copy)
_TEXT = (_other_number, _other_number, _other_number, _other_text, _line, _line, _copy, _cut, _flip, _short)
