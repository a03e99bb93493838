"""Times planning of whole graphs, all judges on, and where the time goes.

    python -m tools.bench_graphs [resnet50 encoder ...] [-o graphs.json]

Milliseconds, the least of some runs. "plan" is a whole plan; then come its phases, and "sign": what it takes to infer
the shapes of all operators again. Networks are those of the onnx package; the encoder has 12 layers.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from attrs import asdict, frozen

from allocator.derive.chunks import derive
from allocator.io.files import write_whole
from allocator.progress import each
from allocator.solvers import solve
from engine import Graph, load_onnx, make_plan
from engine.check import check_data_flow
from engine.cli.options.models import light_model
from engine.cli.progress import add_quiet, progress_shown
from engine.execution_plan import ExecutionPlan
from engine.lower.lowering import lower
from engine.lower.steps import to_program
from engine.planning.placed import place_values
from engine.text.tables import in_columns
from engine.zoo.encoder import EncoderSize, encoder
from tools.entry import run_script

NETWORKS = ("resnet50", "densenet121", "inception_v1", "encoder")
RUNS = 30


@frozen
class Row:
    """One network; milliseconds of the whole, of its phases, and of signing all operators again."""

    network: str
    operators: int
    chunks: int
    plan: float
    lower: float
    program: float
    derive: float
    solve: float
    place: float
    judge: float
    sign: float


def network(name: str) -> Graph:
    """Returns the graph of a network. The encoder is narrow: widths do not matter to the planner."""
    return encoder(EncoderSize(layers=12, width=48)) if name == "encoder" else load_onnx(light_model(name))


def sign_again(graph: Graph) -> None:
    """Infers the outputs of each operator again, as is done when other shapes are bound."""
    for operator in graph.operators:
        signature = operator.signature
        operator.schema.infer_again(signature.inputs, signature.attrs, signature.constants)


def phases(plan: ExecutionPlan) -> dict[str, Callable[[], object]]:
    """Returns the phases of planning as functions. Each begins with the results of the phases before it."""
    lowered, ids = plan.lowered, plan.ids
    program = plan.program
    return {
        "plan": lambda: make_plan(lowered.graph, optimise=0),
        "lower": lambda: lower(lowered.graph),
        "program": lambda: to_program(lowered, ids),
        "derive": lambda: derive(program),
        "solve": lambda: solve(plan.problem),
        "place": lambda: place_values(lowered, ids, plan.chunks, plan.plan),
        "judge": lambda: check_data_flow(plan),
        "sign": lambda: sign_again(lowered.graph),
    }


def least(work: Callable[[], object], runs: int) -> float:
    """Returns the milliseconds of the fastest run."""
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return round(1e3 * min(seconds), 3)


def measure(name: str, runs: int = RUNS) -> Row:
    """Plans a network. Returns the least seconds of each phase."""
    graph = network(name)
    plan = make_plan(graph, optimise=0)
    times = {phase: least(work, runs) for phase, work in phases(plan).items()}
    return Row(name, len(graph.operators), len(plan.problem), **times)


def show(rows: Iterable[Row]) -> str:
    """Returns the rows as a table."""
    texts = [list(map(str, asdict(row).values())) for row in rows]
    names = list(Row.__annotations__)
    return "\n".join(in_columns([names, *texts], right=range(1, len(names))))


def main() -> None:
    """Prints the table; writes it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    add_quiet(parser)
    args = parser.parse_args()
    with progress_shown(args.quiet):
        rows = [measure(name) for name in each("network", args.networks)]
    print(show(rows))
    if args.output:
        write_whole(args.output, (json.dumps([asdict(row) for row in rows], indent=1) + "\n").encode())


if __name__ == "__main__":
    run_script(main)
