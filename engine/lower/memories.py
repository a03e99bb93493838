"""Memories and rules of places as people write them: "sram=512KiB,4GB/s", and "conv1*=sram".

A rule names tensors, by a pattern of their names, of the names of the operators that write them, or by their kind, and
a memory: they lie there. With "!" before the memory they lie anywhere else.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from allocator.errors import ProblemError, shown
from allocator.memories.memory import Memory
from engine.text.errors import OptionError
from engine.text.options import close_to
from engine.text.units import parse_bytes, parse_rate, parse_seconds

Rule = tuple[str, str]
"""A pattern of names, and the memory where they lie; with NOT before it, where they do not lie."""
NOT = "!"
KINDS = ("inputs", "outputs", "parameters", "constants", "workspaces")
"""Patterns that name tensors by what they are for."""
_SHORT = {"write": "write_bandwidth", "latency": "latency", "alignment": "alignment", "folder": "folder"}
"""Keys of a text; any other fact stands in it by its place."""
_READ_ONLY = "read-only"
_FLAGS: Mapping[str, tuple[str, bool]] = {_READ_ONLY: ("writable", False), "copy-engine": ("copy_engine", True)}
"""Words of a text that stand alone: the fact that each of them says."""
_MOST_DIGITS = 19
"""Of an alignment: those of 2**62."""
_EXAMPLE = "sram=512KiB,4GB/s"


def as_memories(value: object) -> tuple[Memory, ...]:
    """Returns memories from `Memory` objects and texts such as "sram=512KiB,4GB/s", in their order; from one, too.

    Behind capacity and bandwidth a text may have `write=2GB/s`, `latency=80ns`, `alignment=32`, `folder=/tmp`,
    `read-only` and `copy-engine`, each once. Raises OptionError.
    """
    rows: object = [value] if isinstance(value, (str, Memory)) else value
    if not isinstance(rows, Iterable) or isinstance(rows, (bytes, Mapping)):
        raise OptionError(f"memories {shown(value)} is no list of memories, such as [{_EXAMPLE!r}]")
    memories = tuple(each if isinstance(each, Memory) else _from_text(each) for each in rows)
    names = [memory.name for memory in memories]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"memory {name!r} is given {names.count(name)} times; names must differ")
    return memories


def _from_text(text: object) -> Memory:
    name, equals, rest = text.partition("=") if isinstance(text, str) else ("", "", "")
    size, *parts = (part.strip() for part in rest.split(","))
    if not equals or not parts:
        raise OptionError(f"memory {shown(text)} has no name, capacity and bandwidth; write for example {_EXAMPLE}")
    values: dict[str, Any] = {"name": name.strip(), "capacity": size, "read_bandwidth": parts[0]}
    for part in parts[1:]:
        key, _, content = (word.strip() for word in part.partition("="))
        field, value = _FLAGS.get(part, (_SHORT.get(key, ""), content))
        if not field:
            raise OptionError(
                f"memory {shown(values['name'])}: {shown(part)} is unknown; {close_to(key, (*_SHORT, *_FLAGS))}"
            )
        if field in values:
            raise OptionError(f"memory {shown(values['name'])}: {key!r} is given more than once")
        values[field] = value
    return memory_of(values)


def memory_of(values: Mapping[str, Any]) -> Memory:
    """Returns a memory from its name, its capacity, its bandwidth and more, as numbers or as texts.

    `write_bandwidth` is that of reading where it is left out. Raises OptionError, which names the memory.
    """
    read = {"write_bandwidth": values["read_bandwidth"]} | dict(values)
    try:
        facts = {key: _READERS[key](value) for key, value in read.items()}
    except OptionError as error:
        raise OptionError(f"memory {shown(values['name'])}: {error}") from error
    try:
        return Memory(**facts)
    except ProblemError as error:
        raise OptionError(str(error)) from error


def _as_it_is(value: object) -> object:
    return value


def _alignment(value: object) -> object:
    is_number = isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS
    return int(str(value)) if is_number else value


def _folder(value: object) -> object:
    if value == "":
        raise OptionError("folder is empty; give the name of one, such as folder=/var/tmp")
    return value


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "name": _as_it_is,
    "capacity": parse_bytes,
    "read_bandwidth": parse_rate,
    "write_bandwidth": parse_rate,
    "latency": parse_seconds,
    "alignment": _alignment,
    "writable": _as_it_is,
    "folder": _folder,
    "copy_engine": _as_it_is,
}
KEYS = tuple(key for key in _READERS if key != "folder")
"""The keys of a table in the file of a target: all but the folder, as a plan for a target runs elsewhere."""


def memory_text(memory: Memory) -> str:
    """Returns a memory as a text that `as_memories` reads; equal memories have equal texts.

    It has no folder: that is one of this machine, and decides nothing about a plan.
    """
    parts = [
        f"{memory.name}={memory.capacity}",
        f"{memory.read_bandwidth!r}/s",
        f"write={memory.write_bandwidth!r}/s",
        f"latency={memory.latency!r}",
        f"alignment={memory.alignment}",
    ]
    said = [word for word, (name, value) in _FLAGS.items() if getattr(memory, name) is value]
    return ",".join([*parts, *said])


def as_rules(value: object) -> tuple[Rule, ...]:
    """Returns rules from a mapping of patterns to memories, or from pairs and texts such as "conv1*=sram".

    Raises OptionError.
    """
    rules: object = value.items() if isinstance(value, Mapping) else [value] if isinstance(value, str) else value
    if not isinstance(rules, Iterable) or isinstance(rules, bytes):
        raise OptionError(f"place {shown(value)} has no rules, such as {{'conv1*': 'sram'}}")
    return tuple(map(_as_rule, rules))


def _as_rule(value: object) -> Rule:
    pair = [word.strip() for word in value.rsplit("=", 1)] if isinstance(value, str) else value
    if isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(v, str) and v for v in pair):
        return pair[0], pair[1]
    raise OptionError(f"place {shown(value)} is no rule; write for example conv1*=sram, or conv1*=!sram")


def check_rules(rules: Iterable[Rule], memories: Collection[Memory]) -> None:
    """Raises OptionError for a rule about a memory that there is not."""
    names = [memory.name for memory in memories]
    for pattern, memory in rules:
        if not names:
            raise OptionError(
                f"place {pattern!r} needs memories to place in: memories= (--memory), or those of a target"
            )
        if memory.removeprefix(NOT) not in names:
            raise OptionError(
                f"place {pattern!r}: memory {memory.removeprefix(NOT)!r} is unknown; {close_to(memory, names)}"
            )
