"""Control groups that limit memory, where they can be made here; and the limit of what a process maps."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.system.control_groups import memory_group

MIB = 2**20
_JOIN = """
import sys
from contextlib import nullcontext
from pathlib import Path
from engine.system.control_groups import member_of
from engine.system.process_memory import data_limit
held = bytearray(b"1") * (96 << 20)
group, more = sys.argv[1], int(sys.argv[2]) << 20
try:
    with member_of(Path(group)) if group else data_limit(64 << 20):
        taken = bytearray(b"1") * more
except MemoryError:
    sys.exit(3)
again = bytearray(b"1") * (96 << 20)
"""


def _taking(group: str, mib: int) -> int:
    """Returns the exit code of a process that takes so much more within a limit of 64 MiB, and more behind it."""
    command = [sys.executable, "-c", _JOIN, group, str(mib)]
    return subprocess.run(command, check=False, timeout=60, capture_output=True).returncode


def test_a_group_counts_what_a_member_takes_and_nothing_from_before_or_after() -> None:
    with memory_group(64 * MIB) as group:
        if group is None:
            pytest.skip("no control group that limits memory can be made here")
        assert _taking(str(group), 32) == 0
        assert _taking(str(group), 128) == -9
    assert not group.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA as Linux has it")
def test_data_may_grow_up_to_the_limit_and_beyond_it_afterwards() -> None:
    assert _taking("", 32) == 0
    assert _taking("", 128) == 3


def test_where_no_group_can_be_made_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", _refuse)
    with memory_group(MIB) as group:
        assert group is None


def _refuse(*_: object, **__: object) -> str:
    raise OSError("no such file")
