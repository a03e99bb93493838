"""Lengths for the open dimensions of a model while it is read, with which all its operators fit."""

import logging
from collections.abc import Callable
from contextlib import suppress

from attrs import define, field

from engine.graph.graph import Graph
from engine.onnx.symbols import Equal, equal_names
from engine.text.errors import ModelError, UnsupportedError
from ops.symbolic.infer import LengthsError
from ops.tensor.dims import UNITS, Samples

_LOG = logging.getLogger("arenaplan")
Read = Callable[[Graph, Equal], None]
"""Reads a model into an empty graph, with replacements for names. Raises ModelError."""


def first_fitting(read: Read, name: str) -> Graph:
    """Returns the graph with the usual samples, or with the first others that fit.

    Some decisions follow the samples (which branch does a model take for a length?), and a later operator may refuse
    what was decided. Raises the ModelError of the usual samples where none fit.
    """
    usual = _Fitting(read, name, UNITS[0])
    try:
        return usual.result()
    except UnsupportedError:
        raise
    except ModelError:
        for unit in UNITS[1:] if usual.graph.samples.has_decided else ():
            with suppress(ModelError):
                return _Fitting(read, name, unit).result()
        raise


@define(eq=False)
class _Fitting:
    """The search for what must replace names, with samples of one unit. `graph` is the last one that was read into."""

    read: Read
    name: str
    unit: int
    graph: Graph = field(init=False)

    def result(self) -> Graph:
        """Returns the graph, and logs which names became numbers. Raises ModelError."""
        equal: dict[str, str | int] = {}
        reasons: dict[str, str] = {}
        while True:
            self.graph = Graph(self.name)
            self.graph.samples = Samples(self.unit)
            try:
                self.read(self.graph, equal)
            except ModelError as error:
                cause = _lengths_error(error)
                more = equal_names(cause) if cause else {}
                if cause is None or more.keys() <= equal.keys():
                    raise
                equal |= more
                reasons |= dict.fromkeys(more, cause.attempt.schema.name)
            else:
                _log_numbers(equal, reasons)
                return self.graph


def _log_numbers(equal: Equal, reasons: dict[str, str]) -> None:
    for name, number in equal.items():
        if isinstance(number, int):
            _LOG.warning("the open dimension %s is %d: %s takes no other length", name, number, reasons[name])


def _lengths_error(error: BaseException | None) -> LengthsError | None:
    """Returns the error about lengths that led to another error, if there is one."""
    while error is not None and not isinstance(error, LengthsError):
        error = error.__cause__
    return error
