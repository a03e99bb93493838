"""Control groups of Linux that limit memory, of version 1 and 2: made below the group of this process, or above it.

What a process holds when it joins a group is not counted there; only pages that it gets later are. The system takes
back pages of files where a group is full, and ends a process that needs more than its limit (SIGKILL).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from attrs import frozen

_MEMBERS = "cgroup.procs"
_MYSELF = "0"
"""What a process writes to the list of members to join a group."""
_NO_SWAP = {"memory.max": ("memory.swap.max", False), "memory.limit_in_bytes": ("memory.memsw.limit_in_bytes", True)}
"""By the file of the limit: the file that keeps pages out of swap space, and whether it counts memory, too."""


@frozen
class _Place:
    """A folder of groups in which one may be made, and the name of the file that limits memory."""

    folder: Path
    limit: str


@contextmanager
def memory_group(limit: int) -> Iterator[Path | None]:
    """Makes a group whose members get at most `limit` bytes, for a while; None where none can be made."""
    group = next((group for place in _places() if (group := _made(place, limit))), None)
    try:
        yield group
    finally:
        if group is not None:
            with suppress(OSError):  # a member that is still there keeps it
                group.rmdir()


@contextmanager
def member_of(group: Path) -> Iterator[None]:
    """Makes this process a member of a group for a while. Raises OSError."""
    (group / _MEMBERS).write_text(_MYSELF)
    try:
        yield
    finally:
        (group.parent / _MEMBERS).write_text(_MYSELF)


def _made(place: _Place, limit: int) -> Path | None:
    """Returns a new group that limits memory; None where the system refuses it."""
    try:
        group = Path(mkdtemp(prefix="arenaplan_", dir=place.folder))
    except OSError:
        return None
    try:
        (group / place.limit).write_text(str(limit))
        swap, counts_memory = _NO_SWAP[place.limit]
        if (group / swap).exists():
            (group / swap).write_text(str(limit if counts_memory else 0))
    except OSError:
        group.rmdir()
        return None
    return group


def _places() -> Iterator[_Place]:
    """Yields the folders in which a group may be made: that of this process, and those above it."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        kind, _, options = after.split(" ", 2)
        is_second = kind == "cgroup2"
        if is_second or (kind == "cgroup" and "memory" in options.split(",")):
            root, point = before.split(" ")[3:5]
            wanted = "" if is_second else "memory"
            own = next((path for _, names, path in groups if wanted in names.split(",")), "/")
            for folder in _upwards(Path(point), os.path.relpath(own, root)):
                yield _Place(folder, "memory.max" if is_second else "memory.limit_in_bytes")


def _upwards(top: Path, inside: str) -> Iterator[Path]:
    """Yields a folder inside `top` and all above it, up to `top`; those alone that are there."""
    own = top if inside.startswith("..") else top / inside
    yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(top) and folder.is_dir())
