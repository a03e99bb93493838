"""Build a graph, or import one; plan every byte of it; run it out of one arena."""

from typing import TYPE_CHECKING

from engine.api import Executable, make_plan
from engine.api import compile_graph as compile
from engine.control.control import cond, fori_loop, scan, unfold, while_loop
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.notebook import register_cards
from engine.onnx.load import load_onnx
from engine.onnx.saved import load_plan, save_plan
from engine.passes.pipeline import optimise
from engine.passes.storage import cast_storage
from engine.readers import read_trace
from engine.report.report import Report
from engine.saved.embedded import EmbeddedPlan
from engine.stages.bind import bind
from engine.text.deprecated import EXPORTS, warn_of_old_name
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
    "Operator",
    "Report",
    "Trace",
    "Var",
    "bind",
    "cast_storage",
    "compile",
    "cond",
    "fori_loop",
    "gradients",
    "load_onnx",
    "load_plan",
    "make_plan",
    "optimise",
    "read_trace",
    "save_plan",
    "scan",
    "train_step",
    "unfold",
    "while_loop",
]

register_cards()


if not TYPE_CHECKING:  # a checker of types would take every name for one that exists

    def __getattr__(name: str) -> object:
        """Returns what an old name stands for, and warns. Raises AttributeError for any other name."""
        if name not in EXPORTS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warn_of_old_name(f"engine.{name}", f"engine.{EXPORTS[name]}")
        return globals()[EXPORTS[name]]
