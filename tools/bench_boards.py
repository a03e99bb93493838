"""Networks on boards with several memories: what transfers cost against simple ways to assign, and against the bound.

    python -m tools.bench_boards [mobilenet_v2_int8 ...] [--boards tools/boards/sram_psram.toml ...] [-o boards.json]

Each network is planned for each board, with its weights in any memory that has room. Where not everything fits the
fastest memory, the table has what the plan costs over what both simple ways cost, and the gap to the bound.
"""

import json
import time
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

import engine
from allocator.io.files import write_whole
from allocator.memories.plan import BaselineName
from allocator.problem import Status
from allocator.progress import each
from engine import Graph
from engine.cli.options.values import positive
from engine.cli.progress import add_quiet, progress_shown
from engine.onnx.load import load_onnx
from engine.report.memories import Transfers
from engine.text.errors import BudgetError, UndecidedError
from engine.text.tables import in_columns
from tools.benchmark_tables import boards_table
from tools.entry import run_script
from tools.run_networks import NETWORKS, network_file

FOLDER = Path(__file__).parent / "boards"
BOARDS = tuple(FOLDER / f"{name}.toml" for name in ("tcm_sram_psram", "sram_psram", "scratchpad_dram"))
CASES = ("mobilenet_v2_int8", "keyword_spotter_int8", "person_detector_int8", "yolo_nano_int8", "encoder")


@frozen
class Row:
    """One network on one board. Costs are seconds of transfers, 0 where there is no plan.

    `fits_fastest`: everything lies in the first memory. `reason`: why there is no plan, "" where there is one.
    `first_come` and `density`: what the simple ways cost. `seconds`: those of the processor that planning took.
    """

    network: str
    board: str
    status: str
    seconds: float
    fits_fastest: bool = False
    cost: float = 0.0
    bound: float = 0.0
    gap: float = 0.0
    first_come: float = 0.0
    density: float = 0.0
    reason: str = ""


def measure(title: str, graph: Graph, board: Path, **limits: Any) -> Row:
    """Plans a graph for a board."""
    begin = time.process_time()
    try:
        (transfers,) = engine.make_plan(graph, target=str(board), **limits).report().transfers
    except (BudgetError, UndecidedError) as error:
        status = Status.INFEASIBLE if isinstance(error, BudgetError) else Status.UNKNOWN
        return Row(title, board.stem, status, seconds=time.process_time() - begin, reason=str(error))
    return Row(
        title,
        board.stem,
        transfers.status,
        seconds=time.process_time() - begin,
        fits_fastest=all(share.used_bytes == 0 for share in transfers.memories[1:]),
        cost=transfers.seconds,
        bound=transfers.lower_bound,
        gap=transfers.gap,
        first_come=_seconds(transfers, BaselineName.FIRST_COME),
        density=_seconds(transfers, BaselineName.DENSITY),
    )


def _seconds(transfers: Transfers, name: BaselineName) -> float:
    return next(way.seconds for way in transfers.baselines if way.name == name)


def _network(text: str) -> str:
    """Reads a network of tools/run_networks.py. Raises ArgumentTypeError."""
    if text not in NETWORKS:
        raise ArgumentTypeError(f"{text!r} is no network; there are {', '.join(NETWORKS)}")
    return text


def rows_of(arguments: Namespace) -> list[Row]:
    """Plans each network for each board."""
    limits = {"nodes": arguments.nodes} if "nodes" in arguments else {}
    rows = []
    for name in each("network", tuple(arguments.networks)):
        graph = load_onnx(network_file(name))
        for board in each("board", tuple(arguments.boards)):
            rows.append(measure(NETWORKS[name].title, graph, board, **limits))
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; writes the rows as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", type=_network, default=CASES, help="of tools/run_networks.py")
    parser.add_argument("--boards", nargs="+", type=Path, default=BOARDS, help="files of targets with memories")
    parser.add_argument("--nodes", type=positive, default=SUPPRESS, help="of searches")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet):
        rows = [asdict(row) for row in rows_of(arguments)]
    table = list(boards_table(rows))
    print("\n".join(in_columns(table, right=range(2, len(table[0])))))
    if arguments.output is not None:
        write_whole(arguments.output, (json.dumps({"rows": rows}, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    run_script(main)
