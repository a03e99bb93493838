"""What folding batch normalization and fusing operators save: three networks as built, folded, and folded and fused.

    python -m tools.bench_fusion [--networks resnet18 ...] [--image 224] [--runs 30] [-o fusion.json]

All graphs of a network run in turn, in this process, on one thread; batch 1, seeded weights. The latencies that Glow
reports for folding alone (Rotem et al. 2018) stand beside ours.
"""

import json
import platform
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from allocator.io.files import write_whole
from allocator.progress import each
from engine.cli.progress import add_quiet, progress_shown
from engine.graph.graph import Graph
from engine.passes import optimise
from engine.passes.fold.batch_norm import FOLD_BATCH_NORM
from engine.system.threads import limit_threads
from engine.text.tables import in_columns
from engine.zoo import NETWORKS
from ops.norm.batch_norm import BATCH_NORM
from tools.entry import run_script
from tools.side_by_side import side_by_side

GLOW: Mapping[str, str] = {"resnet18": "-9 %", "resnet152": "-11 %", "mobilenet_v2": "-14 %"}
"""Change of latency by folding, as reported there."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; writes what was measured as JSON where asked."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(GLOW), metavar="NAME")
    parser.add_argument("--image", type=int, default=224, help="height and width (default 224)")
    parser.add_argument("--runs", type=int, default=30, help="timed runs of each graph (default 30)")
    parser.add_argument("-o", "--output", type=Path, help="write JSON")
    add_quiet(parser)
    arguments = parser.parse_args(argv)
    with progress_shown(arguments.quiet), limit_threads(1):
        networks = each("network", arguments.networks)
        rows = [measure_network(name, arguments.image, arguments.runs) for name in networks]
    print(text(rows))
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    if arguments.output is not None:
        data = {"machine": machine, "threads": 1, "rows": rows}
        write_whole(arguments.output, (json.dumps(data, indent=1) + "\n").encode())
    return 0


def measure_network(name: str, image: int, runs: int) -> dict[str, Any]:
    """Measures the seconds and bytes of the three graphs of a network, and how far apart their outputs are."""
    built = NETWORKS[name](image=image)
    graphs = {"built": built, "folded": FOLD_BATCH_NORM(built), "fused": optimise(built, 2)}
    feeds = {n: _numbers(v.shape).astype(v.dtype) for n, v in built.inputs.items()}
    return {
        "network": name,
        "image": image,
        "runs": runs,
        "glow": GLOW.get(name, ""),
        "normalizations": _normalizations(built),
        "normalizations_folded": _normalizations(built) - _normalizations(graphs["folded"]),
        **side_by_side(graphs, feeds, runs),
    }


def _numbers(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).standard_normal(shape)


def _normalizations(graph: Graph) -> int:
    return Counter(op.schema for op in graph.operators)[BATCH_NORM]


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table: a line for each graph of each network, then how far the outputs differ."""
    head = ["network", "graph", "operators", "arena, bytes", "median, ms", "least, ms", "change (median)", "Glow's"]
    body = [_line(row, key) for row in rows for key in ("built", "folded", "fused")]
    notes = (
        f"{r['network']}: {r['normalizations_folded']} of {r['normalizations']} normalizations folded," for r in rows
    )
    apart = (f" outputs differ by {r['difference']:.1e} of their largest value" for r in rows)
    return "\n".join(
        (*in_columns([head, *body], right=range(2, 8)), *(a + b for a, b in zip(notes, apart, strict=True)))
    )


def _line(row: Mapping[str, Any], key: str) -> list[str]:
    result, first = row[key], row["built"]["median_seconds"]
    change = f"{100 * (result['median_seconds'] / first - 1):+.1f} %"
    return [
        *(row["network"], key, str(result["operators"]), f"{result['arena_bytes']:,}"),
        *(f"{1e3 * result[f'{kind}_seconds']:.2f}" for kind in ("median", "least")),
        *("" if key == "built" else change, row["glow"] if key == "folded" else ""),
    ]


if __name__ == "__main__":
    run_script(main)
