"""Passes over graphs: a graph that computes the same with less. One a file; `optimise` runs them all."""

from engine.passes.base import Pass, RulePass, rewrite
from engine.passes.edit import Edit
from engine.passes.pipeline import Applied, optimise, trail
from engine.passes.verify import verify

__all__ = ["Applied", "Edit", "Pass", "RulePass", "optimise", "rewrite", "trail", "verify"]
