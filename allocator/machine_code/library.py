"""The functions of the C library that compiled code may call, and their addresses in this process."""

import ctypes
from functools import cache
from typing import Any

from allocator.machine_code.errors import SymbolError

_MATHS = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fma fmax fmin
    fmod frexp hypot ldexp lgamma log log10 log1p log2 nearbyint pow remainder rint round roundeven sin sincos sinh sqrt
    tan tanh tgamma trunc
"""
_OTHERS = "memcpy memmove memset memcmp bcmp abort sched_yield clock_gettime"
FUNCTIONS = frozenset((*_MATHS.split(), *(f"{name}f" for name in _MATHS.split()), *_OTHERS.split()))
_MATHS_LIBRARIES = ("libm.so.6", "libm.so")


@cache
def address_of(name: str) -> int:
    """Returns the address of a function of the C library. Raises SymbolError where there is none."""
    if name in FUNCTIONS:
        for library in (None, *_MATHS_LIBRARIES):
            place = _find(library, name)
            if place:
                return place
    raise SymbolError(f"the C library of this system has no function {name!r}")


def _find(library: str | None, name: str) -> int:
    try:
        function: Any = getattr(ctypes.CDLL(library), name)
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0
