"""Executors of graphs whose data decide sizes, and how they get their memory."""

from attrs import evolve

from engine import Executable
from engine.stages.run import StagedExecutor
from engine.stages.segments import Segments


def staged(exe: Executable) -> StagedExecutor:
    """Returns the executor; fails where it runs in one stage."""
    assert isinstance(exe.executor, StagedExecutor)
    return exe.executor


def in_segments(exe: Executable) -> Executable:
    """Returns the same where the system gives no addresses ahead; plans are shared."""
    in_block = staged(exe)
    terms = evolve(in_block.terms, in_one_block=False)
    memory = Segments(terms.options.alignment)
    return Executable(exe.graph, StagedExecutor(in_block.template, terms, memory, in_block.cache))
