"""All file formats by name: what can be read and written, and what a file name suggests."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import numpy as np

from allocator.errors import AllocatorError, FormatError, shown
from allocator.io import c_header, tflm
from allocator.io.files import is_special, write_whole
from allocator.io.instance import Instance
from allocator.lazy import Lazy
from allocator.problem import FREE, Column, column

Reader = Callable[[bytes], Instance]
Writer = Callable[[Instance], bytes]

MINIMALLOC = "minimalloc"
USAGE_RECORDS = "usage-records"
TFLM = "tflm"
C_HEADER = "c-header"


READERS: Mapping[str, Reader] = Lazy(
    "allocator.io",
    {
        MINIMALLOC: "minimalloc:parse_bytes",
        "megengine": "megengine_intervals:parse",
        "megengine-json": "megengine_record:parse",
        "idealloc-plc": "idealloc_plc:parse",
        "idealloc-ex-csv": "idealloc_csv:parse_open",
        "idealloc-in-ex-csv": "idealloc_csv:parse_half_open",
        "idealloc-in-csv": "idealloc_csv:parse_inclusive",
        USAGE_RECORDS: "usage_records:parse",
    },
)
"""The functions that make an instance of the content of a file, by format."""
WRITERS: Mapping[str, Writer] = Lazy(
    "allocator.io",
    {
        MINIMALLOC: "minimalloc:render_bytes",
        "megengine": "megengine_intervals:render",
        "megengine-json": "megengine_record:render",
        "idealloc-plc": "idealloc_plc:render",
        "idealloc-ex-csv": "idealloc_csv:render_open",
        "idealloc-in-ex-csv": "idealloc_csv:render_half_open",
        "idealloc-in-csv": "idealloc_csv:render_inclusive",
        USAGE_RECORDS: "usage_records:render",
        TFLM: "tflm:render_metadata",
        "tflm-c": "tflm:render_struct",
        C_HEADER: "c_header:render",
    },
)
"""The functions that make the content of a file of an instance, by format."""
BY_SUFFIX: Mapping[str, str] = MappingProxyType(
    {
        ".csv": MINIMALLOC,
        ".txt": "megengine",
        ".megengine.json": "megengine-json",
        ".plc": "idealloc-plc",
        ".bin": TFLM,
        ".c": "tflm-c",
        ".h": C_HEADER,
    }
)
"""The formats by the suffix of a file; a suffix that ends with another one stands before it."""


JSON = ".json"
"""The suffix that is read as MegEngine's; it is not written, as commands write what `--json` prints under it."""


def named_like(path: Path) -> str:
    """Returns the format that the name of a file to write suggests, "" where it suggests none.

    What is there and is no regular file (a pipe, a device) has the usual format.
    """
    if is_special(path):
        return MINIMALLOC
    return next((name for suffix, name in BY_SUFFIX.items() if path.name.lower().endswith(suffix)), "")


def read(path: Path, name: str = "") -> Instance:
    """Returns the instance in a file, in the format of that name, or in the one that the file itself suggests.

    Raises FormatError, ProblemError and UnsupportedProblemError, which name the file, and OSError.
    """
    content = path.read_bytes()
    with _naming(path):
        return _parse(content, name or suggested(path, content))


def read_offsets(path: Path, instance: Instance, name: str = "") -> Column:
    """Returns the offsets that a plan in a file gives the buffers of an instance, by id; FREE where it gives none.

    A plan whose buffers are called 0, 1, 2 ... speaks of them in the order of the instance. Raises as `read` does.
    """
    content = path.read_bytes()
    with _naming(path):
        format_name = name or suggested(path, content)
        if format_name == TFLM:
            offset = tflm.parse_metadata(content)
            return _matched(tuple(map(str, range(len(offset)))), offset, instance)
        plan = _parse(content, format_name)
        return _matched(plan.ids, plan.offset, instance)


def write(path: Path, instance: Instance, name: str = "", *, prefix: str = c_header.PREFIX) -> None:
    """Writes an instance whole or not at all, in the format of that name, or in the one that the file name suggests.

    `prefix` begins all names in a C header. Raises UnsupportedProblemError where the format cannot hold it,
    FormatError, and OSError.
    """
    with _naming(path):
        chosen = name or named_like(path)
        if not chosen:
            raise FormatError(f"the name suggests no format; it ends in one of {', '.join(BY_SUFFIX)}")
        content = c_header.render(instance, prefix) if chosen == C_HEADER else WRITERS[chosen](instance)
    write_whole(path, content)


def suggested(path: Path, content: bytes) -> str:
    """Returns the format to read a file in: by its name, and by the header of a table."""
    suffix = path.suffix.lower()
    format_name = "megengine-json" if suffix == JSON else BY_SUFFIX.get(suffix, MINIMALLOC)
    if format_name == MINIMALLOC and b"first_op" in content.partition(b"\n")[0]:
        return USAGE_RECORDS
    return format_name


def _parse(content: bytes, name: str) -> Instance:
    if name not in READERS:
        raise FormatError(f"{name} is a format without lifetimes; buffers are read from {', '.join(READERS)}")
    return READERS[name](content)


def _matched(ids: tuple[str, ...], offset: Column, instance: Instance) -> Column:
    row = {name: i for i, name in enumerate(instance.ids)}
    if not row.keys() >= set(ids) and ids == tuple(map(str, range(len(ids)))):
        row = {str(i): i for i in range(len(instance.ids))}
    strangers = [name for name in ids if name not in row]
    if strangers:
        raise FormatError(f"places a buffer {shown(strangers[0])} that is not in the problem")
    matched = np.full(len(instance.ids), FREE)
    matched[[row[name] for name in ids]] = offset
    return column(matched)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Puts the name of the file in front of errors."""
    try:
        yield
    except AllocatorError as error:
        raise type(error)(f"{path}: {error}") from error
