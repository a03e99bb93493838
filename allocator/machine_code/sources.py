"""The files that a module of compiled code is made from, wherever they lie, and checksums of their contents.

A compiled function contains what it calls and the layouts that it reads, which stand in other files. So an image names
all files of this project that its module imports, and is made anew when one of them has changed.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from allocator.machine_code.checksum import checksum
from allocator.machine_code.errors import ImageError

ROOT = Path(__file__).parents[2]
"""The folder that the packages lie in. Files there are named relative to it, so that an image serves any checkout."""
_IMPORTS = re.compile(r"^\s*from\s+((?:ops|allocator|tests)\b[\w.]*)\s+import\s+(\([^)]*\)|[^\n(]*)", re.MULTILINE)
_NAME = re.compile(r"\w+")
MAKERS = ("allocator.machine_code.make", "allocator.machine_code.arrays_code")
"""The modules that decide how every function is compiled."""


def checksums(module: str) -> dict[str, str]:
    """Returns the checksums of all files that a module is compiled of."""
    return {_told(path): _checksum_of(path) for path in sorted(set().union(*map(sources, (module, *MAKERS))))}


def are_current(made_from: Mapping[str, str]) -> bool:
    """Returns whether the files have these checksums."""
    try:
        return all(_checksum_of(ROOT / name) == checksum for name, checksum in made_from.items())
    except OSError:
        return False


def sources(module: str) -> set[Path]:
    """Returns the files of a module and of all modules of ours that it imports, those imported by them, and so on."""
    files: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _file(waiting.pop())
        if path is not None and path not in files:
            files.add(path)
            waiting += _imported(path)
    return files


def _told(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def _checksum_of(path: Path) -> str:
    stat = path.stat()
    return _content(path, stat.st_size, stat.st_mtime_ns)


@cache
def _content(path: Path, _: int, __: int) -> str:
    """Returns the checksum of a file; its size and time are those of the cached value."""
    return checksum(path.read_bytes()).hex()


@cache
def _imported(path: Path) -> tuple[str, ...]:
    """Returns modules that a file imports, and names that may be modules. Raises ImageError for compiled Python."""
    if path.suffix != ".py":
        raise ImageError(f"the source of {path} is not there, so that nobody could tell when its code is old")
    imports = _IMPORTS.findall(path.read_text(encoding="utf-8"))
    return tuple(name for home, names in imports for name in (home, *(f"{home}.{n}" for n in _NAME.findall(names))))


@cache
def _file(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name inside a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None
