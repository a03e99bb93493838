"""`arenaplan compare`: the planned run against reference counting, to the bit, in bytes and in seconds."""

from argparse import ArgumentParser, Namespace
from functools import partial

from engine.api import check_evict, make_plan
from engine.cli.comparison import compare_graph
from engine.cli.measure.result import measure_plan
from engine.cli.options.common import add_evict, add_planning, add_running, plan_options, print_text, stdout_width
from engine.cli.options.dims import check_known
from engine.cli.options.model_flags import add_model
from engine.cli.options.models import Subject, load_subject
from engine.cli.options.values import add_json, count, positive, print_json, share, size
from engine.cli.oracle import TOLERANCE, compare_with_oracle, onnxruntime_runner
from engine.cli.passes import compare_passes
from engine.cli.stages import compare_stages
from engine.cli.tradeoff import compare_policies
from engine.lower.target_file import as_target
from engine.models.zoo import is_zoo
from engine.planning.options import Options
from engine.system.threads import cpus, limit_threads
from engine.text.errors import OptionError

HELP = "compare runs of a model: one arena, reference counting, and every byte watched"
REFUSED = 5
"""Exit code where outputs differ."""


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    add_model(parser)
    add_planning(parser)
    add_running(parser)
    parser.add_argument("--runs", metavar="N", type=positive, default=5, help="timed runs of each (default 5)")
    parser.add_argument("--oracle", choices=("onnxruntime",), help="also compare the outputs with another engine's")
    parser.add_argument(
        "--tolerance",
        metavar="X",
        type=share,
        default=TOLERANCE,
        help="with --oracle: largest difference of outputs, over their largest value, that is no error (default 1e-4)",
    )
    parser.add_argument("--top", metavar="N", type=count, default=10, help="tensors shown at the peak (default 10)")
    parser.add_argument(
        "--parallel",
        dest="at_once",
        action="store_true",
        help="compare the policies for operators that run at once instead, with --threads threads",
    )
    parser.add_argument(
        "--passes",
        action="store_true",
        help="show what each pass over the graph does instead: all of them, or those of --optimise",
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure memory, page faults and time of both modes in fresh processes, and compare with predictions",
    )
    parser.add_argument(
        "--pairs", metavar="N", type=positive, default=3, help="with --measure: processes of each mode (default 3)"
    )
    parser.add_argument(
        "--limit",
        metavar="SIZE",
        type=size,
        default=0,
        help="with --measure: bytes that a run may take, such as 64MiB, by a control group, or by RLIMIT_DATA",
    )
    add_evict(parser)
    parser.set_defaults(parallel="")
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Prints the comparison; returns 5 where outputs differ."""
    as_target(arguments.target).check_is_host()
    _check_options(arguments)
    if arguments.passes:
        return _compare_passes(arguments)
    subject = load_subject(arguments)
    if arguments.at_once or arguments.measure:
        check_known(subject.graph, arguments.file)
    if arguments.at_once:
        return _compare_policies(arguments, subject)
    if arguments.measure:
        return _measure(arguments, subject)
    check_evict(arguments.evict, "dynamic", arguments.budget, subject.graph)
    feeds, threads = subject.feeds | subject.constants, arguments.threads
    oracle = onnxruntime_runner(subject.model, feeds, threads) if arguments.oracle else None
    with limit_threads(threads):
        compare = compare_stages if subject.graph.is_symbolic else partial(compare_graph, evict=arguments.evict)
        comparison = compare(
            subject.graph,
            subject.feeds,
            runs=arguments.runs,
            budget=arguments.budget,
            options=plan_options(arguments),
            recompute=not arguments.no_recompute,
        )
    against = (
        compare_with_oracle(comparison.runs.outputs, oracle(), arguments.oracle, arguments.tolerance)
        if oracle is not None
        else None
    )
    if arguments.json:
        print_json(comparison.to_json() | (against.to_json() if against else {}))
    else:
        print_text((against.text() if against else "") + comparison.text(arguments.top, stdout_width()))
    return 0 if comparison.outputs_equal and (against is None or against.outputs_agree) else REFUSED


def _check_options(arguments: Namespace) -> None:
    if arguments.evict and (arguments.passes or arguments.at_once or arguments.measure):
        raise OptionError("--evict compares plain runs; leave out --passes, --parallel and --measure")
    if arguments.limit and not arguments.measure:
        raise OptionError("--limit limits the processes of --measure; give that, too")
    if arguments.oracle and is_zoo(arguments.file):
        raise OptionError(f"--oracle {arguments.oracle} reads ONNX files; {arguments.file} is none")
    if arguments.at_once and arguments.oracle:
        raise OptionError("--oracle compares a run in sequence; leave out --parallel")
    if arguments.passes and (arguments.at_once or arguments.oracle or arguments.measure):
        raise OptionError("--passes compares plain runs; leave out --parallel, --oracle and --measure")
    if arguments.passes and not Options(optimise=arguments.optimise).level:
        raise OptionError("--passes shows what passes do, and --optimise 0 has none; leave that out, or give 1 to 3")
    if arguments.measure and (arguments.at_once or arguments.oracle):
        other = "--parallel" if arguments.at_once else "--oracle"
        raise OptionError(f"--measure runs one arena against reference counting alone; leave out {other}")


def _compare_passes(arguments: Namespace) -> int:
    subject = load_subject(arguments)
    check_known(subject.graph, arguments.file)
    with limit_threads(arguments.threads):
        options = plan_options(arguments)
        level = Options(**options).level
        comparison = compare_passes(subject.graph, subject.feeds, level, runs=arguments.runs, options=options)
    if arguments.json:
        print_json(comparison.to_json())
    else:
        print_text(comparison.text(stdout_width()))
    return 0 if comparison.outputs_equal else REFUSED


def _measure(arguments: Namespace, subject: Subject) -> int:
    options, recompute = plan_options(arguments), not arguments.no_recompute
    plan = make_plan(subject.graph, budget=arguments.budget, recompute=recompute, **options)
    measured = measure_plan(plan, arguments, arguments.runs, arguments.pairs)
    if arguments.json:
        print_json(measured.to_json())
    else:
        print_text(measured.text(stdout_width()))
    return 0 if measured.outputs_equal else REFUSED


def _compare_policies(arguments: Namespace, subject: Subject) -> int:
    comparison = compare_policies(
        subject.graph,
        subject.feeds,
        runs=arguments.runs,
        threads=arguments.threads or cpus(),
        budget=arguments.budget,
        options=plan_options(arguments),
        recompute=not arguments.no_recompute,
    )
    if arguments.json:
        print_json(comparison.to_json())
    else:
        print_text(comparison.text(stdout_width()))
    return 0 if comparison.outputs_equal else REFUSED
