"""Build a graph, or import one; plan every byte of it; run it out of one arena."""

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
from engine.passes.storage import store_as
from engine.readers import read_trace
from engine.report.report import Report
from engine.saved.embedded import Carried
from engine.stages.bind import bind
from engine.text.errors import BudgetError, EngineError
from engine.trace.trace import Event, Trace
from engine.training.autodiff import gradients
from engine.training.training import SGD, Adam, train_step

__all__ = [
    "SGD",
    "Adam",
    "BudgetError",
    "Carried",
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
    "store_as",
    "train_step",
    "unfold",
    "while_loop",
]

register_cards()
