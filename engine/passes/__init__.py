"""Passes over graphs: each returns a graph that computes the same with less memory or time. `optimise` runs them all.

`base` has the interface and `edit` the editable graph; `verify` checks the form of each result, and `values` what it
computes. The rules stand in the rooms quantised, cleanup, recognise, fold, layout and fuse, which `pipeline` runs in
this order.
"""

from engine.passes.base import Pass, RulePass, rewrite
from engine.passes.edit import Edit
from engine.passes.pipeline import Applied, applied_passes, optimise
from engine.passes.values import check_values, compute
from engine.passes.verify import verify

__all__ = [
    "Applied",
    "Edit",
    "Pass",
    "RulePass",
    "applied_passes",
    "check_values",
    "compute",
    "optimise",
    "rewrite",
    "verify",
]
