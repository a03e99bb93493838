"""`python -m tests.fuzz`: fuzzes for some time; exit code 1 where anything failed, with a command line for each."""

import secrets
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fuzz.campaign import Finding, run
from tests.fuzz.kinds import KINDS
from tests.fuzz.properties import run_properties
from tests.fuzz.report import Row, rows_of, save, table, write_page

PROPERTIES = "properties"
_SHARE = 0.2
"""The share of the time in which the property tests run."""
_UNLIMITED = 1 << 62


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line says."""
    arguments = _parser().parse_args(argv)
    seed = secrets.randbits(40) if arguments.seed is None else arguments.seed
    names = arguments.only or [*KINDS, PROPERTIES]
    share = _SHARE if PROPERTIES in names and len(names) > 1 else float(PROPERTIES in names)
    print(f"seed {seed}", flush=True)
    kinds = [kind for name, kind in KINDS.items() if name in names]
    counts = run(kinds, seed, arguments.seconds * (1 - share), arguments.count, _tell) if kinds else {}
    rows = rows_of(counts)
    if rows:
        print(table(rows))
    has_passed = _properties(seed, arguments.seconds * share) if share else True
    _keep(arguments, rows)
    return int(not has_passed or any(row["findings"] for row in rows.values()))


def _parser() -> ArgumentParser:
    parser = ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="how long (default 120)")
    parser.add_argument("--seed", type=int, help="the first input's seed; each further one has the next (default: any)")
    parser.add_argument("--count", type=int, default=_UNLIMITED, help="at most so many inputs of each kind")
    parser.add_argument(
        "--only", nargs="+", choices=(*KINDS, PROPERTIES), metavar="KIND", help=", ".join((*KINDS, PROPERTIES))
    )
    parser.add_argument("-o", "--output", type=Path, help="add the counts to those in this file, as JSON")
    parser.add_argument("--write-docs", action="store_true", help="write the sums of that file to docs/reliability.md")
    return parser


def _tell(finding: Finding) -> None:
    print(f"FAILED {finding.kind}: {finding.failure}\n  again: {finding.command()}", flush=True)


def _properties(seed: int, seconds: float) -> bool:
    runs = run_properties(seed, seconds)
    failed = [one for one in runs if not one.has_passed]
    for one in failed:
        print(f"FAILED properties\n{one.printed}\n  again: {one.command}", flush=True)
    print(f"properties: {len(runs)} files with fresh seeds, {len(failed)} failed")
    return not failed


def _keep(arguments: Namespace, rows: Mapping[str, Row]) -> None:
    if arguments.output is not None and rows:
        sums = save(arguments.output, rows)
        if arguments.write_docs:
            write_page(sums)


if __name__ == "__main__":
    sys.exit(main())
