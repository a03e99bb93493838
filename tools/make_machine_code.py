"""Makes the machine code of all functions for an instruction set, as a wheel carries it.

    python -m tools.make_machine_code FOLDER --instructions avx2 [--processor x86_64]

Writes one file for each function into FOLDER, which a wheel has as `allocator/machine_code/made`
(`tools/build_wheel.py`). This processor need not be of that kind, nor have these instructions. Ends with exit code 1
where a function cannot be made.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from allocator.machine_code.door import made
from allocator.machine_code.entry import entries_of, find_entry
from allocator.machine_code.errors import MachineCodeError
from allocator.machine_code.instructions import NAMES, PROCESSORS, make_for, this_kind
from allocator.machine_code.sources import ROOT
from allocator.machine_code.store import file_name, write_file
from tools.entry import run_script

_DECLARES = re.compile(
    r"^from allocator\.(machine_code\.entry import .*\bentry|kernels\.numbers import .*\bkernel)\b", re.MULTILINE
)
_PACKAGES = ("allocator", "ops")


def modules() -> Iterator[str]:
    """Yields the names of all modules that declare functions."""
    for path in sorted(path for package in _PACKAGES for path in (ROOT / package).rglob("*.py")):
        if _DECLARES.search(path.read_text(encoding="utf-8")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts)


def make_all(folder: Path, instructions: str, kind: str) -> list[str]:
    """Makes all functions for a set of a kind of processor; returns what is wrong with those that cannot be made."""
    chosen, faults = make_for(instructions, kind), []
    for module in modules():
        for name in entries_of(module):
            if not chosen.features.issuperset(find_entry(module, name).needs):
                continue
            file = file_name(module, name, chosen.name)
            try:
                write_file(folder / file, made(module, name, chosen, file))
            except MachineCodeError as error:
                faults.append(f"{module}.{name}: {error}")
    return faults


def main() -> int:
    """Reads the command line, and returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder to write into")
    parser.add_argument("--instructions", choices=NAMES, required=True, help="instruction set")
    parser.add_argument("--processor", choices=PROCESSORS, default=this_kind(), help="its kind (default: this one's)")
    chosen = parser.parse_args()
    faults = make_all(chosen.folder, chosen.instructions, chosen.processor)
    count = sum(path.is_file() for path in chosen.folder.rglob("*.code"))
    print(f"{count} functions in {chosen.folder}", *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    run_script(main)
