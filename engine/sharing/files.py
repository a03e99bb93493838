"""A shared arena as a file, by suffix: a C header with each tensor of each network, a table of the networks, JSON."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from attrs import evolve

from allocator.io import c_header
from allocator.io.files import write_whole
from engine.plan_files.write import tensors_of
from engine.sharing.result import SharedPlan
from engine.text.errors import OptionError
from engine.text.json_text import json_text
from engine.text.tables import joined

_COLUMNS = ("model", "scratch_bytes", "scratch_offset", "state_bytes", "state_offset")


def check_suffix(path: Path) -> None:
    """Raises OptionError for a file name that says no format."""
    if path.suffix.lower() not in _WRITERS:
        raise OptionError(f"{os.fspath(path)}: the name of a shared arena's file ends in one of {', '.join(_WRITERS)}")


def write_shared(plan: SharedPlan, path: Path, prefix: str = c_header.PREFIX) -> None:
    """Writes a shared arena whole or not at all; the suffix says what. `prefix` begins all names in a C header.

    Raises OptionError, OSError, FormatError for a prefix that begins no identifier.
    """
    check_suffix(path)
    write_whole(path, _WRITERS[path.suffix.lower()](plan, prefix))


def _header(plan: SharedPlan, prefix: str) -> bytes:
    tensors = [
        evolve(tensor, name=f"{model.name}_{tensor.name}", offset=tensor.offset + model.first)
        for model in plan.models
        for tensor in tensors_of(model.plan)
    ]
    names = ", ".join(repr(model.name) for model in plan.models)
    title = f"The arena that {names} share, planned by arenaplan."
    return c_header.render_tensors(tensors, plan.arena_bytes, plan.alignment, prefix, title)


def _table(plan: SharedPlan, _: str) -> bytes:
    rows = ([str(row[name]).replace(",", ";") for name in _COLUMNS] for row in plan.to_json()["models"])
    return joined(map(",".join, (_COLUMNS, *rows))).encode(errors="backslashreplace")


def _json(plan: SharedPlan, _: str) -> bytes:
    return json_text(plan.to_json()).encode()


_WRITERS: Mapping[str, Callable[[SharedPlan, str], bytes]] = MappingProxyType(
    {".h": _header, ".csv": _table, ".json": _json}
)
