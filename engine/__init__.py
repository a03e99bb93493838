"""Build a graph, or import one; plan every byte of it; run it out of one arena."""

from typing import TYPE_CHECKING

from engine.text.packages import check_packages

check_packages("allocator", "ops")

from engine.notebook import register_cards
from engine.text.deprecated import EXPORTS, warn_of_old_name
from ops.lazy import importer

if TYPE_CHECKING:  # the names for checkers of types and editors; at run time each is imported when it is first used
    from allocator.memories.memory import Memory
    from engine.api import Executable, make_plan
    from engine.api import compile_graph as compile
    from engine.batch_runs.map import map_batches as map
    from engine.budgets.fit import fit
    from engine.budgets.search import budget_ladder
    from engine.control.control import cond, fori_loop, scan, unfold, while_loop
    from engine.execution_plan import ExecutionPlan
    from engine.graph.graph import Graph
    from engine.graph.operator import Operator
    from engine.graph.var import Var
    from engine.onnx.load import load_onnx
    from engine.onnx.registered import register_operator
    from engine.onnx.saved import load_plan, save_plan
    from engine.onnx.torch_module import load_torch
    from engine.partitions.partition import partition
    from engine.partitions.pipeline import Pipeline, pipeline
    from engine.partitions.result import Partition
    from engine.passes.pipeline import optimise
    from engine.passes.storage import cast_storage
    from engine.plan_files.write import write_plan
    from engine.readers import read_trace
    from engine.replicas.training import train_parallel
    from engine.report.report import Report
    from engine.saved.embedded import EmbeddedPlan
    from engine.searches.sharing import shared_search
    from engine.sharing.result import SharedPlan
    from engine.sharing.share import share
    from engine.stages.bind import bind
    from engine.streams.compile import stream
    from engine.streams.stream import Stream
    from engine.sweeps.sweep import sweep
    from engine.system.instructions import limit_instructions
    from engine.text.errors import BudgetError, EngineError
    from engine.trace.trace import Event, Trace
    from engine.training.autodiff import gradients
    from engine.training.training import SGD, Adam, train_step

__all__ = [
    "SGD",
    "Adam",
    "BudgetError",
    "EmbeddedPlan",
    "EngineError",
    "Event",
    "Executable",
    "ExecutionPlan",
    "Graph",
    "Memory",
    "Operator",
    "Partition",
    "Pipeline",
    "Report",
    "SharedPlan",
    "Stream",
    "Trace",
    "Var",
    "bind",
    "budget_ladder",
    "cast_storage",
    "compile",
    "cond",
    "fit",
    "fori_loop",
    "gradients",
    "limit_instructions",
    "load_onnx",
    "load_plan",
    "load_torch",
    "make_plan",
    "map",
    "optimise",
    "partition",
    "pipeline",
    "read_trace",
    "register_operator",
    "save_plan",
    "scan",
    "share",
    "shared_search",
    "stream",
    "sweep",
    "train_parallel",
    "train_step",
    "unfold",
    "while_loop",
    "write_plan",
]

_HOMES = {
    "Memory": "allocator.memories.memory:Memory",
    "Executable": "engine.api:Executable",
    "compile": "engine.api:compile_graph",
    "make_plan": "engine.api:make_plan",
    "map": "engine.batch_runs.map:map_batches",
    "budget_ladder": "engine.budgets.search:budget_ladder",
    "fit": "engine.budgets.fit:fit",
    "cond": "engine.control.control:cond",
    "fori_loop": "engine.control.control:fori_loop",
    "scan": "engine.control.control:scan",
    "unfold": "engine.control.control:unfold",
    "while_loop": "engine.control.control:while_loop",
    "ExecutionPlan": "engine.execution_plan:ExecutionPlan",
    "Graph": "engine.graph.graph:Graph",
    "Operator": "engine.graph.operator:Operator",
    "Var": "engine.graph.var:Var",
    "load_onnx": "engine.onnx.load:load_onnx",
    "register_operator": "engine.onnx.registered:register_operator",
    "load_torch": "engine.onnx.torch_module:load_torch",
    "load_plan": "engine.onnx.saved:load_plan",
    "save_plan": "engine.onnx.saved:save_plan",
    "partition": "engine.partitions.partition:partition",
    "Pipeline": "engine.partitions.pipeline:Pipeline",
    "pipeline": "engine.partitions.pipeline:pipeline",
    "Partition": "engine.partitions.result:Partition",
    "optimise": "engine.passes.pipeline:optimise",
    "cast_storage": "engine.passes.storage:cast_storage",
    "write_plan": "engine.plan_files.write:write_plan",
    "read_trace": "engine.readers:read_trace",
    "shared_search": "engine.searches.sharing:shared_search",
    "train_parallel": "engine.replicas.training:train_parallel",
    "Report": "engine.report.report:Report",
    "EmbeddedPlan": "engine.saved.embedded:EmbeddedPlan",
    "SharedPlan": "engine.sharing.result:SharedPlan",
    "share": "engine.sharing.share:share",
    "bind": "engine.stages.bind:bind",
    "Stream": "engine.streams.stream:Stream",
    "stream": "engine.streams.compile:stream",
    "sweep": "engine.sweeps.sweep:sweep",
    "limit_instructions": "engine.system.instructions:limit_instructions",
    "BudgetError": "engine.text.errors:BudgetError",
    "EngineError": "engine.text.errors:EngineError",
    "Event": "engine.trace.trace:Event",
    "Trace": "engine.trace.trace:Trace",
    "gradients": "engine.training.autodiff:gradients",
    "Adam": "engine.training.training:Adam",
    "SGD": "engine.training.training:SGD",
    "train_step": "engine.training.training:train_step",
}
"""Where each public name is defined: module and name in it."""

register_cards()


if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    _import = importer(__name__, _HOMES)

    def __getattr__(name: str) -> object:
        """Returns a public name, under its old name with a warning. Raises AttributeError for any other name."""
        if name in EXPORTS:
            warn_of_old_name(f"engine.{name}", f"engine.{EXPORTS[name]}")
        value = _import(EXPORTS.get(name, name))
        if name in _HOMES:
            globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
