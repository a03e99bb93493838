"""Build a graph, or import one; plan every byte of it; run it out of one arena."""

from engine.autodiff import gradients
from engine.bind import bind
from engine.carried import Carried
from engine.control import cond, fori_loop, scan, unfold, while_loop
from engine.errors import BudgetError, EngineError
from engine.executable import Executable, make_plan
from engine.executable import compile_graph as compile
from engine.graph import Graph
from engine.importers.onnx import load_onnx
from engine.importers.onnx_saved import load_plan, save_plan
from engine.operator import Operator
from engine.passes.pipeline import optimise
from engine.passes.storage import store_as
from engine.plan import ExecutionPlan
from engine.readers import read_trace
from engine.report import Report
from engine.trace import Event, Trace
from engine.training import SGD, Adam, train_step
from engine.var import Var

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
