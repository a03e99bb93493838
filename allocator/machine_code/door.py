"""The door to machine code: addresses of functions by the names of their modules, loaded from disk or made.

A process that finds all its code on disk loads neither numba nor LLVM.
"""

import ctypes
import logging
import os
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from allocator.machine_code import load
from allocator.machine_code.entry import find_entry
from allocator.machine_code.errors import ImageError, MachineCodeError
from allocator.machine_code.image import Image, read_image, write_image
from allocator.machine_code.instructions import Instructions, instructions
from allocator.machine_code.mutex import Mutex
from allocator.machine_code.sources import are_current, checksums
from allocator.machine_code.store import PACKAGED, file_name, kept_folder, open_file, write_file
from allocator.progress import aside

_MUTEX = Mutex(threading.RLock)
_LOG = logging.getLogger("allocator")
_TOLD: set[str] = set()
"""Subjects of which the log has said something in this process."""
_MADE: list[str] = []
"""Files of the functions that this process has made, loaded ones not counted."""
_COMPILING = "compiling functions for this kind of processor; this takes some seconds, once"


@cache
def address(module: str, name: str) -> int:
    """Returns the address of an entry of a module of compiled code, which stays valid until the process ends.

    The code is loaded from disk if it was made from the sources of today, else made and kept there.
    """
    with _MUTEX.lock:
        chosen = instructions()
        file = file_name(module, name, chosen.name)
        return (
            stored_address(PACKAGED, file) or stored_address(kept_folder(), file) or _made(module, name, chosen, file)
        )


@cache
def function(module: str, name: str) -> Callable[[int], int]:
    """Returns an entry with the signature CALL as a function of Python. While it runs, other threads run too."""
    call: Callable[[int], int] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address(module, name))
    return call


def made_count() -> int:
    """Returns how many functions this process had to make, as they were not on disk."""
    return len(_MADE)


def stored_address(folder: Path, file: str) -> int:
    """Returns the address of a stored function; 0 where there is none that can be used."""
    if not load.IS_SUPPORTED:
        return 0
    try:
        number = open_file(folder / file)
    except OSError:
        return 0
    try:
        content = _read(number)
        stored = read_image(content, file)
        return load.load(content, stored, number) if are_current(stored.sources) else 0
    except (OSError, MachineCodeError):
        return 0
    finally:
        os.close(number)


def _read(number: int) -> bytes:
    with os.fdopen(number, "rb", closefd=False) as file:
        return file.read()


def _made(module: str, name: str, chosen: Instructions, file: str) -> int:
    """Makes a function, keeps it on disk if that can be, and returns its address."""
    _tell(_COMPILING, _COMPILING)
    _MADE.append(file)
    try:
        if not load.IS_SUPPORTED:
            raise ImageError("this system's programs are no ELF files")
        content = made(module, name, chosen, file)
        return _kept(content, file) or load.load(content, read_image(content, file))
    except (MachineCodeError, OSError) as error:
        _tell(file, f"{module}.{name} is compiled by numba in each process: {error}")
        with _maker().interrupts_wait():
            return int(_maker().numba_address(find_entry(module, name), chosen))


def made(module: str, name: str, chosen: Instructions, file: str) -> bytes:
    """Returns the content of the file of a function that is made now. Raises MachineCodeError where it cannot be."""
    with _maker().interrupts_wait():
        image: Image = _maker().make_image(find_entry(module, name), chosen)
    return write_image(image, checksums(module), file)


def _kept(content: bytes, file: str) -> int:
    """Returns the address of a function that is written to disk and loaded; 0 where that cannot be."""
    folder = kept_folder()
    try:
        write_file(folder / file, content)
        os.close(open_file(folder / file))
    except OSError as error:
        reason = " ".join(str(error).split())
        what = f"compiled code cannot be kept in {folder.parent} ({reason})"
        _tell(str(folder), f"{what}, so each process makes it: set NUMBA_CACHE_DIR")
        return 0
    return stored_address(folder, file)


def _maker() -> Any:
    return import_module("allocator.machine_code.make")


def _tell(subject: str, what: str) -> None:
    """Logs once a process what is to be said of a subject."""
    if subject not in _TOLD:
        _TOLD.add(subject)
        with aside():
            _LOG.warning(what)
