"""Tables 1 and 2 of Pisarchyk and Lee 2020 (shared objects, offsets) from tensor usage records of its networks.

    python -m tools.paper_tables FOLDER [--json] [--page docs/algorithms/paper.md]

FOLDER has NAME.csv, the records of each network, and may have golden/NAME.json, what TensorFlow Lite's own code
assigns. Our totals stand in the tables. A star marks those that differ from TensorFlow Lite's; a line below says why.
Below that, each fact that the paper tells of its tables is compared with them. --page writes all of it into a page.
"""

import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, frozen

from allocator.io import formats
from allocator.io.files import write_whole
from allocator.problem import Problem
from allocator.progress import each
from allocator.shared_objects import assign
from allocator.solvers import solve
from engine.cli.progress import add_quiet, progress_shown
from engine.text.tables import in_columns
from tools.benchmark_tables import markdown, replaced
from tools.entry import run_script
from tools.paper_facts import BOUND, NAIVE, Fact, Totals, facts

OBJECTS: Mapping[str, str] = {
    "shared_in_order": "objects GREEDY_IN_ORDER",
    "shared_equality": "objects EQUALITY",
    "shared_min_cost_flow": "objects MINCOSTFLOW",
    "shared_by_breadth": "objects GREEDY_BY_BREADTH",
    "shared_by_size": "",
    "shared_by_size_improved": "objects GREEDY_BY_SIZE",
}
"""Table 1: our strategies, and what TensorFlow Lite's code calls them. It has none by size that is not improved."""
OFFSETS: Mapping[str, str] = {
    "greedy_in_order": "",
    "strip_packing_bestfit": "",
    "greedy_by_breadth": "",
    "greedy_by_size": "offsets GREEDY_BY_SIZE",
    "best": "",
}
"""Table 2: the same for offsets. The portfolio stands beside the paper's strategies."""
_SMALL = 10_000
"""Bytes. Smaller totals are not shown in MiB."""


@frozen
class Difference:
    """A total of ours that is not TensorFlow Lite's, in bytes, and why."""

    network: str
    table: str
    strategy: str
    ours: int
    theirs: int
    reason: str


@frozen
class Network:
    """The totals of one network, in bytes, by strategy, with NAIVE and BOUND; and what differs from TensorFlow Lite's.

    `compared` counts the totals that were.
    """

    name: str
    tensors: int
    objects: Totals
    offsets: Totals
    object_counts: Totals
    compared: int
    differences: tuple[Difference, ...]


def measure(file: Path) -> Network:
    """Plans the records of a file by all strategies, and compares with the JSON of the same name where there is one."""
    problem = formats.read(file, formats.USAGE_RECORDS).problem
    shared = {name: assign(problem, name) for name in OBJECTS}
    plans = {name: solve(problem, name) for name in OFFSETS}
    naive = int(problem.size.sum())
    objects = {name: s.total_bytes for name, s in shared.items()} | {NAIVE: naive}
    objects[BOUND] = next(iter(shared.values())).lower_bound
    offsets = {name: p.arena_bytes for name, p in plans.items()} | {NAIVE: naive, BOUND: plans["best"].lower_bound}
    golden = file.parent / "golden" / f"{file.stem}.json"
    theirs = json.loads(golden.read_text()) if golden.exists() else {}
    totals = _totals(theirs)
    ours = {"objects": objects, "offsets": offsets}
    differences = tuple(
        Difference(file.stem, *key, ours[key[0]][key[1]], total, _reason(problem, key[1], theirs))
        for key, total in totals.items()
        if ours[key[0]][key[1]] != total
    )
    counts = {name: len(s.size) for name, s in shared.items()}
    return Network(file.stem, len(problem), objects, offsets, counts, len(totals), differences)


def _totals(theirs: Mapping[str, Any]) -> Mapping[tuple[str, str], int]:
    """Returns the totals of TensorFlow Lite's code by table and strategy."""
    names = {("objects", name): key for name, key in OBJECTS.items()} | {("objects", NAIVE): "objects NAIVE"}
    names |= {("offsets", name): key for name, key in OFFSETS.items()}
    totals = {name: int(theirs[key]["total"]) for name, key in names.items() if key in theirs}
    return totals | ({("objects", BOUND): sum(theirs["positional_max"])} if theirs else {})


def _reason(problem: Problem, strategy: str, theirs: Mapping[str, Any]) -> str:
    """Says why a total differs, as far as that can be computed; else that it is not known."""
    if strategy == "shared_min_cost_flow":
        flow = _flow_cost(problem, theirs[OBJECTS[strategy]]["object_ids"])
        own = _flow_cost(problem, assign(problem, strategy).object_of.tolist())
        if flow == own:
            return f"both flows cost {own} bytes, the least: an object may have fewer bytes than its flow costs"
        return f"our flow costs {own} bytes, theirs {flow}"
    if len(np.unique(problem.size)) < len(problem):
        return "tensors of equal size: C++'s sort decides there which is first, and the first operator here"
    return "not known"


def _flow_cost(problem: Problem, object_of: Sequence[int]) -> int:
    """Returns what a flow costs: the bytes of the first tensor of each object, then what each next one needs more."""
    held: dict[int, int] = {}
    cost = 0
    for chunk in np.argsort(problem.begin, kind="stable").tolist():
        size = int(problem.size[chunk])
        cost += max(size - held.get(object_of[chunk], 0), 0)
        held[object_of[chunk]] = size
    return cost


def table(networks: Sequence[Network], which: str) -> Iterator[Sequence[str]]:
    """Yields a row for each strategy and a column for each network, in MiB; stars mark what differs."""
    yield [f"{which}, MiB", *(network.name for network in networks)]
    for name in getattr(networks[0], which):
        yield [name, *(_cell(network, which, name) for network in networks)]


def _cell(network: Network, which: str, strategy: str) -> str:
    total = getattr(network, which)[strategy]
    star = "*" if (which, strategy) in {(d.table, d.strategy) for d in network.differences} else ""
    return (f"{total / 2**20:.3f}" if total >= _SMALL else f"{total} B") + star


def fact_table(checked: Sequence[Fact]) -> Iterator[Sequence[str]]:
    """Yields a row for each fact of the paper."""
    yield ["the paper", "these records", ""]
    for fact in checked:
        yield [fact.text, fact.measured, "as in the paper" if fact.holds else f"differs; perhaps because {fact.note}"]


def remarks(networks: Sequence[Network]) -> list[str]:
    """Returns how many totals are TensorFlow Lite's, and a line for each other one."""
    different = [d for network in networks for d in network.differences]
    compared = sum(network.compared for network in networks)
    lines = [f"{compared - len(different)} of {compared} totals are those of TensorFlow Lite's own code."]
    return lines + [
        f"* {d.network}, {d.table}, {d.strategy}: {d.ours} bytes here, {d.theirs} there; {d.reason}." for d in different
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables, or JSON; writes them into a page where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="a page with the sections objects, offsets, differences and facts")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    files = sorted(arguments.folder.glob("*.csv"))
    if not files:
        parser.error(f"{arguments.folder} has no records: NAME.csv with the columns id,first_op,last_op,size_bytes")
    with progress_shown(arguments.quiet):
        networks = [measure(file) for file in each("network", files, lambda file: file.stem)]
    checked = facts({n.name: n for n in networks})
    tables = {which: list(table(networks, which)) for which in ("objects", "offsets")}
    if arguments.json:
        print(json.dumps({"networks": [asdict(n) for n in networks], "facts": [asdict(f) for f in checked]}, indent=1))
    else:
        blocks = [*map(in_columns, tables.values()), remarks(networks), *([_told(checked)] if checked else [])]
        print("\n\n".join("\n".join(lines) for lines in blocks))
    if arguments.page is not None:
        sections = {name: markdown(rows) for name, rows in (tables | {"facts": list(fact_table(checked))}).items()}
        page = arguments.page.read_text()
        for name, text in (sections | {"differences": "\n\n".join(remarks(networks))}).items():
            page = replaced(page, name, text)
        write_whole(arguments.page, page.encode())
    return 0


def _told(checked: Sequence[Fact]) -> list[str]:
    return in_columns(list(fact_table(checked)))


if __name__ == "__main__":
    run_script(main)
