"""How to plan: what a caller can ask of the planner."""

import math

from attrs import field, frozen

from allocator import policies
from allocator.errors import UnknownPolicyError
from allocator.solvers.base import NO_NODES
from engine.lower.backends import DEFAULT, check_backend
from engine.lower.order import GIVEN, check_order
from engine.system.threads import check_threads
from engine.text.errors import OptionError
from engine.text.options import check_flag
from engine.text.units import parse_seconds

MOST_BYTES = 2**40
"""Of alignment and padding, beyond which only an error can be meant."""


@frozen
class Options:
    """How to plan. `alignment` (a power of two) and `padding` are bytes.

    `caller_buffers` names the inputs and outputs that live in arrays of the caller's.
    `prepack=False` lets kernels read constants as they are: no packed copies beside them, but slower kernels.
    `views`, `overwrite` and `reuse` switch the three ways of saving memory; what is switched off runs through the same
    code. `strategy` is one of `allocator.solvers.STRATEGIES` or "best". A search ends after `timeout` (seconds, or a
    text such as "10s") and after `nodes` steps; where neither is given, after as many steps as the strategy likes.
    `parallel` is one of `allocator.policies.POLICIES`: the plan is then safe where operators run at once.
    `nest` lets values be computed inside others, such as the inputs of a concatenation inside its output, wherever the
    arena does not grow by that. Where operators run at once, or there are no views, nothing is nested; nor in graphs
    with open dimensions, which run in stages or in plans for bounded lengths: `engine.bind` gives them numbers first.
    `backend` is one of `engine.lower.backends.CHOICES`: which kernels compute; each operator takes the first that has
    one.
    `order` is one of `engine.lower.order.ORDERS`; with "memory" the arena is never larger than with "given". A search
    for an order has half of the time.
    `threads` is on how many kernels of libraries run, some of which want more workspace for more of them.
    """

    strategy: str = "best"
    alignment: int = 64
    padding: int = 0
    seed: int = 0
    timeout: float = field(default=math.inf, converter=parse_seconds)
    nodes: int = NO_NODES
    views: bool = True
    overwrite: bool = True
    reuse: bool = True
    prepack: bool = True
    caller_buffers: tuple[str, ...] = ()
    parallel: str = ""
    nest: bool = True
    order: str = GIVEN
    backend: str = DEFAULT
    threads: int = 1

    def __attrs_post_init__(self) -> None:
        for name in ("alignment", "padding", "seed"):
            _check_integer(name, getattr(self, name), 0, MOST_BYTES)
        _check_integer("nodes", self.nodes, 1, NO_NODES)
        check_threads(self.threads, 1)
        for name in ("views", "overwrite", "reuse", "prepack", "nest"):
            check_flag(name, getattr(self, name))
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise OptionError(f"alignment {self.alignment} is no power of two")
        if not isinstance(self.caller_buffers, (tuple, list)) or not all(
            isinstance(n, str) for n in self.caller_buffers
        ):
            raise OptionError(f"caller_buffers must be a tuple of names, such as ('x',), not {self.caller_buffers!r}")
        for name in ("strategy", "parallel", "order"):
            if not isinstance(getattr(self, name), str):
                raise OptionError(f"{name} {getattr(self, name)!r} is no name")
        check_order(self.order)
        check_backend(self.backend)
        if self.parallel:
            _check_policy(self.parallel)


def _check_integer(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise OptionError(f"{name} {value!r} is no integer from {least} to {most}")


def _check_policy(name: str) -> None:
    try:
        policies.check_policy(name)
    except UnknownPolicyError as error:
        raise OptionError(f"parallel: {error}") from error


DEFAULTS = Options()
