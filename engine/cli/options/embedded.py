"""The option about plans embedded in models, --plan-from-file."""

from argparse import ArgumentParser, Namespace

from engine.cli.progress import warn
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.models.zoo import is_zoo
from engine.onnx.saved import load_plan
from engine.saved.embedded import EmbeddedPlan
from engine.text.errors import OptionError, OtherPlanError

AUTO, REQUIRED, NEVER = "auto", "required", "never"
POISON = "poison"


def add_plan_from_file(parser: ArgumentParser) -> None:
    """Adds the option that says whether the plan in a model's file is followed."""
    parser.add_argument(
        "--plan-from-file",
        choices=(AUTO, REQUIRED, NEVER),
        default=AUTO,
        help="follow the plan in the model's file; auto: where it is a plan of the same calls, else make another and "
        "say why; required: or fail; never (default auto)",
    )


def plan_in_file(arguments: Namespace, graph: Graph) -> EmbeddedPlan | None:
    """Returns the plan in MODEL's file where it is to be followed; None for commands without the option.

    Raises what `load_plan` does.
    """
    wanted, file = vars(arguments).get("plan_from_file", NEVER), arguments.file
    if wanted == NEVER:
        return None
    obstacle = _obstacle(arguments)
    if obstacle:
        if wanted == REQUIRED:
            raise OptionError(f"--plan-from-file {REQUIRED}: {obstacle}")
        return None
    embedded = load_plan(file, required=wanted == REQUIRED)
    if embedded is None or not graph.is_symbolic:
        return embedded
    reason = f"{embedded.source} is not followed: data decide sizes while the model runs"
    if embedded.required:
        raise OtherPlanError(reason)
    warn(reason)
    return None


def _obstacle(arguments: Namespace) -> str:
    """Returns why this command line can follow no plan; "" where it can."""
    if is_zoo(arguments.file):
        return f"{arguments.file} is no file with a plan"
    if vars(arguments).get("mode") == POISON and not arguments.memory:  # memories may have no room for guards
        return f"--mode {POISON} plans for itself, with guards between tensors"
    return ""


def tell_origin(plan: ExecutionPlan, arguments: Namespace) -> None:
    """Writes on stderr why the plan in a model's file was not followed, where it was not."""
    if plan.origin and not plan.is_followed:
        warn(f"{arguments.file}: plan {plan.origin}")
