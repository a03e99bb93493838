"""Build a graph, or import one; plan every byte of it; run it out of one arena."""

from engine.executable import Executable, make_plan
from engine.executable import compile_graph as compile  # noqa: A004 (the name that users expect)
from engine.executable import make_plan as plan  # the same function under its short name
from engine.graph import Graph, Operator
from engine.report import Report, report
from engine.trace import Event, trace
from engine.var import Var

__all__ = ["Event", "Executable", "Graph", "Operator", "Report", "Var", "compile", "make_plan", "plan", "report", "trace"]
