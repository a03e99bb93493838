"""From a subject and the options of a command to something that runs."""

from argparse import Namespace

from engine.api import Executable, compile_graph
from engine.cli.options.common import plan_options
from engine.cli.options.models import Subject
from engine.saved.embedded import EmbeddedPlan
from engine.system.threads import AS_THEY_ARE


def compile_subject(
    subject: Subject, arguments: Namespace, mode: str, carried: EmbeddedPlan | None = None, evict: str = ""
) -> Executable:
    """Compiles a graph as the options of planning, of running and --parallel say. `mode` may be "poison".

    `evict` is the heuristic of a dynamic run that keeps within the budget.
    """
    options, budget, recompute = plan_options(arguments), arguments.budget, not arguments.no_recompute
    debug = "poison" if mode == "poison" else ""
    return compile_graph(
        subject.graph,
        mode="static" if debug else mode,
        debug=debug,
        budget=budget,
        threads=arguments.threads,
        recompute=recompute,
        evict=evict,
        embedded=carried,
        **options,
    )


def blas_threads(arguments: Namespace) -> int:
    """Returns the threads of BLAS; where operators run at once, their executor sets them itself."""
    return AS_THEY_ARE if arguments.parallel else int(arguments.threads)
