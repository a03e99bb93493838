"""The counts of a campaign: as text, as JSON that further campaigns add to, and as a table of docs/reliability.md."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allocator.io.files import write_whole
from tests.fuzz.campaign import Counts
from tests.fuzz.kinds import KINDS
from tests.helpers.paths import ROOT
from tools.benchmark_tables import markdown, replaced

PAGE, SECTION = ROOT / "docs" / "reliability.md", "fuzzed"
Row = Mapping[str, Any]


def rows_of(counts: Mapping[str, Counts]) -> dict[str, Row]:
    """Returns the counts of each kind as data."""
    return {
        name: {
            "inputs": c.inputs,
            "failures": c.failures,
            "seconds": round(c.seconds, 1),
            "slowest_seconds": round(c.slowest, 2),
            "faults": c.faults,
            "outcomes": dict(c.outcomes.most_common()),
            "findings": [{"command": f.command(), "failure": f.failure} for f in c.findings.values()],
        }
        for name, c in counts.items()
    }


def added(before: Mapping[str, Row], more: Mapping[str, Row]) -> dict[str, Row]:
    """Returns the counts of two campaigns together."""
    both = dict(before)
    for name, row in more.items():
        old = before.get(name)
        if old is None:
            both[name] = row
            continue
        sums = {key: round(old[key] + row[key], 1) for key in ("inputs", "failures", "seconds", "faults")}
        outcomes: dict[str, int] = dict((Counter(old["outcomes"]) + Counter(row["outcomes"])).most_common())
        slowest = max(old["slowest_seconds"], row["slowest_seconds"])
        findings = [*old["findings"], *row["findings"]]
        both[name] = sums | {"slowest_seconds": slowest, "outcomes": outcomes, "findings": findings}
    return both


def save(path: Path, rows: Mapping[str, Row]) -> dict[str, Row]:
    """Adds the counts to those that a file has, and returns the sums."""
    before = json.loads(path.read_text()) if path.exists() else {}
    sums = added(before, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(sums, indent=1).encode())
    return sums


def table(rows: Mapping[str, Row]) -> str:
    """Returns a line for each kind, and one for each unit that is counted."""
    return markdown(
        [["kind", "inputs", "per second of processor", "slowest, s", "failures", "through the door"], *_lines(rows)]
    )


def _lines(rows: Mapping[str, Row]) -> Sequence[Sequence[str]]:
    lines = [_line(name, [rows[name]]) for name in KINDS if name in rows]
    for unit in dict.fromkeys(KINDS[name].unit for name in rows):
        lines.append(_line(f"**all {unit}**", [row for name, row in rows.items() if KINDS[name].unit == unit]))
    return lines


def _line(name: str, rows: Sequence[Row]) -> Sequence[str]:
    inputs, failures, seconds, faults = (
        sum(r[key] for r in rows) for key in ("inputs", "failures", "seconds", "faults")
    )
    slowest = max(row["slowest_seconds"] for row in rows)
    rate = inputs / max(seconds, 1e-9)
    return [name, f"{inputs:,}", f"{rate:.0f}", f"{slowest:.1f}", f"{failures:,}", f"{faults:,}"]


def write_page(rows: Mapping[str, Row]) -> None:
    """Writes the table into the page."""
    write_whole(PAGE, replaced(PAGE.read_text(), SECTION, table(rows)).encode())
