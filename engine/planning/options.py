"""The options of planning, each in one place.

From the fields of `Options` derive the flags of the command line (`engine.cli.options.common`), what a saved plan keeps
(`engine.saved.embedded`), what a measuring process gets, and the alternatives that an explanation tries. A test
compares the keywords of `engine.compile` and `engine.make_plan` (`PlanOptions`) with these fields.
"""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from os import PathLike
from typing import Any, TypedDict

from attrs import Attribute, field, fields, frozen

from allocator import policies
from allocator.errors import UnknownPolicyError
from allocator.memories.memory import Memory
from allocator.policies import POLICIES
from allocator.problem import DEFAULT_ALIGNMENT, NO_CAPACITY
from allocator.solvers import BEST, STRATEGIES
from allocator.solvers.base import NO_NODES
from engine.lower.backends import CHOICES, DEFAULT, check_backend
from engine.lower.memories import Rule, as_memories, as_rules, check_rules
from engine.lower.order import GIVEN, ORDERS, check_order
from engine.lower.target import HOST, Target
from engine.lower.target_file import as_target
from engine.system.threads import check_threads
from engine.text.errors import OptionError
from engine.text.options import NODES, TIMEOUT, check_flag
from engine.text.units import parse_bytes, parse_seconds
from ops.tensor.spec import HALVES

MOST_BYTES = 2**40
"""The largest alignment or padding; a larger one can only be an error."""
LEVELS = (0, 1, 2, 3)
"""The levels of optimisation: how many of the passes over a graph run before it is planned."""
HIGHEST_LEVEL = LEVELS[-1]
STORED = tuple(sorted(dtype.name for dtype in HALVES))
"""The types of 16 bits that tensors of float32 may be stored in."""
CASCADE_PERCENTS = (10, 25)
"""The percentages of more work that cascades are tried with where a budget is not met."""
CASCADE_PERCENT = CASCADE_PERCENTS[-1]
"""The percentage that `cascade=True` stands for."""
IN_MEMORIES = (policies.LEVELS, policies.EDGES)
"""Policies whose plans can lie in several memories: they decide by lifetimes which chunks share bytes."""
AUTO = "auto"
"""The highest level of optimisation, without groups of passes that make the arena larger."""
_ABOUT = "about"
CALLS, SEARCH, LIMITS, AT_ONCE = "calls", "search", "limits", "at once"
"""Groups of flags: which calls and chunks there are, the search for addresses, when it ends, and parallel runs."""


@frozen
class About:
    """The facts that other modules derive from an option of planning.

    `help` is the help text of its flag; an option without one has no flag. The flag has the name of the option, or
    `flag`. That of an option with several values is given once for each. The flag of a bool that is True by default
    switches it off (`--no-views`), and so its help text says. `least` is the least value of an integer. Where
    `decides_problem`, the option decides which chunks there are and how large they are, so a saved plan keeps it, under
    `file_key` where that is not its name. `saving` says what the default value does to save memory; "" where it saves
    none.
    """

    help: str = ""
    flag: str = ""
    group: str = CALLS
    metavar: str = ""
    choices: tuple[str, ...] = ()
    least: int = 0
    decides_problem: bool = False
    file_key: str = ""
    saving: str = ""


def as_level(value: object) -> object:
    """Returns the level that a text such as "2" names as an integer; any other value as it is."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) == 1 else value


def as_percent(value: object) -> object:
    """Returns the percentage that True or False stands for; any other value as it is."""
    return CASCADE_PERCENT * value if isinstance(value, bool) else value


def check_level(level: object) -> None:
    """Raises OptionError for what is no level of optimisation."""
    if isinstance(level, bool) or not isinstance(level, Integral) or level not in LEVELS:
        raise OptionError(f"{level!r} is no level of optimisation; there are {', '.join(map(str, LEVELS))}")


def check_stored(dtype: object) -> None:
    """Raises OptionError for what is no type that tensors may be stored in."""
    if dtype not in STORED:
        raise OptionError(f"tensors cannot be stored as {dtype!r}; one of: {', '.join(STORED)}")


def _about(help: str = "", **values: Any) -> Mapping[str, About]:
    return {_ABOUT: About(help, **values)}


@frozen
class Options:
    """The options of planning. Unknown values raise OptionError.

    `strategy` is one of `allocator.solvers.STRATEGIES`, or "best". `alignment` (a power of two) and `padding` are in
    bytes. `seed` is that of everything random. A search ends after `timeout` (seconds, or a text such as "10s") and
    after `nodes` steps; where neither is given, after as many steps as the strategy likes.
    `optimise` is the level of optimisation (`engine.passes.pipeline.optimise`), from 0 to 3, or "auto":
    the highest, but groups of passes that make the arena larger are left out (`engine.passes.automatic`).
    `cascade` lets runs of operators be computed stripe after stripe of rows where that saves bytes, with at most so
    many percent more work (`engine.passes.cascade`); True stands for 25, 0 or False switches it off.
    `store` is "float16" or "bfloat16" where tensors of float32 are stored so (`engine.passes.storage`), else "".
    `views`, `overwrite` and `reuse` switch the three ways of saving memory; what is switched off runs through the same
    code. `prepack=False` lets kernels read constants as they are: no packed copies beside them, but slower kernels.
    `caller_buffers` names the inputs and outputs that live in arrays of the caller. `donated` names those of these
    inputs whose bytes the plan may overwrite, where no operator reads them later; nothing may run at once then.
    `parallel` is one of `allocator.policies.POLICIES`: the plan is then safe where operators run at once.
    `nest` lets values be computed inside others, such as the inputs of a concatenation inside its output, wherever the
    arena does not grow by that. Nothing is nested where operators run at once, or there are no views; nor in graphs
    with open dimensions, which run in stages or in plans for ranges of lengths: `engine.bind` gives them numbers first.
    `order` is one of `engine.lower.order.ORDERS`; with "memory" the arena is never larger than with "given". A search
    for an order has half of the time, and what is planned in several ways shares what is left. `backend` is one of
    `engine.lower.backends.CHOICES`: which kernels compute; each operator takes the first that has one. `target` is the
    processor that the plan is for: "" is this one, "none" one whose kernels need no workspaces, any other text a TOML
    file (`engine.lower.target_file`). `memories` are those in which tensors and weights are placed, as `Memory` or as
    texts such as "sram=512KiB,4GB/s", in an order of preference; a target may have some, too. Without memories there is
    one arena. `place` says what must lie in one, or must not (`engine.lower.memories`). `threads` is on how many
    threads kernels of libraries run; some of them want more workspace for more threads.
    """

    strategy: str = field(
        default=BEST,
        metadata=_about(
            f"how addresses are found: {', '.join((BEST, *STRATEGIES))} (default {BEST}: the best result of all)",
            group=SEARCH,
            metavar="STRATEGY",
            choices=(BEST, *STRATEGIES),
        ),
    )
    alignment: int = field(
        default=DEFAULT_ALIGNMENT,
        metadata=_about(
            f"alignment of tensors in the arena, a power of two (default {DEFAULT_ALIGNMENT})",
            metavar="BYTES",
            least=1,
            decides_problem=True,
        ),
    )
    padding: int = field(
        default=0,
        metadata=_about(
            "unused bytes behind each chunk (default 0)",
            metavar="BYTES",
            decides_problem=True,
            saving="no padding behind tensors",
        ),
    )
    seed: int = field(default=0, metadata=_about("seed of everything random (default 0)", group=SEARCH, metavar="N"))
    timeout: float = field(
        default=math.inf,
        converter=parse_seconds,
        metadata=_about(
            TIMEOUT,
            group=LIMITS,
            metavar="TIME",
        ),
    )
    nodes: int = field(
        default=NO_NODES,
        metadata=_about(
            NODES,
            group=LIMITS,
            metavar="N",
            least=1,
        ),
    )
    optimise: int | str = field(
        default=AUTO,
        converter=as_level,
        metadata=_about(
            "passes over the graph before it is planned: 0 none, 1 those that leave every formula as it is, 2 also "
            f"those that fuse and may change last bits, 3 also channels last around convolutions (default {AUTO}: 3, "
            "but for what makes the arena larger)",
            metavar="LEVEL",
            choices=(AUTO, *map(str, LEVELS)),
            decides_problem=True,
        ),
    )
    store: str = field(
        default="",
        metadata=_about(
            f"keep float32 tensors in 16 bits: {' or '.join(STORED)}",
            metavar="TYPE",
            choices=STORED,
            decides_problem=True,
        ),
    )
    cascade: int = field(
        default=0,
        converter=as_percent,
        metadata=_about(
            "compute runs of operators on images stripe after stripe of rows where that saves bytes, with at most so "
            f"many percent more work, such as {CASCADE_PERCENT} (default 0: whole images)",
            metavar="PERCENT",
            decides_problem=True,
        ),
    )
    views: bool = field(
        default=True,
        metadata=_about("copy where an output could be a view", decides_problem=True, saving="views instead of copies"),
    )
    overwrite: bool = field(
        default=True,
        metadata=_about(
            "never write an output over an input",
            decides_problem=True,
            saving="outputs computed in place of inputs that are no longer read",
        ),
    )
    reuse: bool = field(
        default=True,
        metadata=_about(
            "give each tensor bytes of its own",
            decides_problem=True,
            saving="bytes reused by one tensor after the other",
        ),
    )
    prepack: bool = field(
        default=True,
        metadata=_about(
            "keep no packed copies of weights: less memory, slower kernels", decides_problem=True, file_key="pack"
        ),
    )
    caller_buffers: tuple[str, ...] = field(default=(), metadata=_about(decides_problem=True, file_key="bound"))
    donated: tuple[str, ...] = field(default=(), metadata=_about(decides_problem=True))
    parallel: str = field(
        default="",
        metadata=_about(
            f"make the plan safe for operators that run at once: {', '.join(POLICIES)} (or another number)",
            group=AT_ONCE,
            metavar="POLICY",
            decides_problem=True,
            saving="one operator after the other",
        ),
    )
    nest: bool = field(
        default=True,
        metadata=_about(
            "compute no tensor inside another, such as the inputs of a concatenation inside its output",
            decides_problem=True,
            saving="tensors computed inside others",
        ),
    )
    order: str = field(
        default=GIVEN,
        metadata=_about(
            f"order of the operators; memory: the one with the fewest bytes alive at once (default {GIVEN})",
            choices=ORDERS,
            decides_problem=True,
        ),
    )
    backend: str = field(
        default=DEFAULT,
        metadata=_about(
            f"whose kernels compute; auto: oneDNN's where it is installed, then numba's (default {DEFAULT})",
            choices=CHOICES,
        ),
    )
    target: Target = field(
        default=HOST,
        converter=as_target,
        metadata=_about(
            "for which processor to plan: none, one whose kernels need no workspaces, or a TOML file with those that "
            "they need (default: this processor, which alone can run the plan)",
            metavar="none|FILE.toml",
            decides_problem=True,
        ),
    )
    memories: tuple[Memory, ...] = field(
        default=(),
        converter=as_memories,
        metadata=_about(
            "a memory to place tensors and weights in: its capacity and its bandwidth, such as sram=512KiB,4GB/s, then "
            "write=2GB/s, latency=80ns, alignment=32, read-only, copy-engine, folder=/var/tmp; repeatable (default: "
            "one arena)",
            flag="memory",
            metavar="NAME=SIZE,RATE",
            decides_problem=True,
        ),
    )
    place: tuple[Rule, ...] = field(
        default=(),
        converter=as_rules,
        metadata=_about(
            "with --memory: where tensors lie, such as 'conv1*=sram', or where they do not, 'inputs=!sram'; a pattern "
            "of tensors or operators, or inputs, outputs, parameters, constants, workspaces; repeatable",
            metavar="PATTERN=MEMORY",
            decides_problem=True,
        ),
    )
    threads: int = 1

    def __attrs_post_init__(self) -> None:
        for name, kind in FIELDS.items():
            value = getattr(self, name)
            if kind.type is bool:
                check_flag(name, value)
            elif kind.type is int and name != "threads":
                _check_integer(name, value, about(name).least, NO_NODES if name == "nodes" else MOST_BYTES)
            elif kind.type is str and not isinstance(value, str):
                raise OptionError(f"{name} {value!r} is no name")
        check_threads(self.threads, 1)
        if self.optimise != AUTO:
            check_level(self.optimise)
        if self.store:
            check_stored(self.store)
        if self.alignment & (self.alignment - 1):
            raise OptionError(f"alignment {self.alignment} is no power of two")
        for name in ("caller_buffers", "donated"):
            _check_names(name, getattr(self, name))
        _check_donated(self)
        check_order(self.order)
        check_backend(self.backend)
        if self.parallel:
            _check_policy(self.parallel)
        check_rules(self.place, self.board)
        _check_memories(self)

    @property
    def board(self) -> tuple[Memory, ...]:
        """The memories to place in: those that are given, or those of the target; empty for one arena."""
        return self.memories or self.target.memories

    @property
    def may_cut(self) -> bool:
        """Whether images may be cut into stripes: not where stripes that run at once are in memory at once."""
        return self.parallel in ("", policies.EDGES)

    @property
    def level(self) -> int:
        """The level of optimisation."""
        return HIGHEST_LEVEL if self.optimise == AUTO else int(self.optimise)


FIELDS: Mapping[str, "Attribute[Any]"] = {option.name: option for option in fields(Options)}
"""The options by name, with type, default value and metadata."""


def about(name: str) -> About:
    """Returns what other modules derive from an option."""
    entry: About = FIELDS[name].metadata.get(_ABOUT, About())
    return entry


def flag(name: str) -> str:
    """Returns the flag of an option on the command line; that of a bool whose default is True switches it off."""
    return f"--no-{name}" if FIELDS[name].default is True else f"--{about(name).flag or name}"


def _check_integer(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise OptionError(f"{name} {value!r} is no integer from {least} to {most}")


def _check_names(option: str, names: object) -> None:
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"{option} must be a tuple of names, such as ('x',), not {names!r}")


def _check_donated(options: Options) -> None:
    if not options.donated:
        return
    elsewhere = sorted(set(options.donated) - set(options.caller_buffers))
    if elsewhere:
        raise OptionError(
            f"donated has {elsewhere[0]!r}, which is not in caller_buffers; the arena has bytes of its own for it"
        )
    if options.parallel:
        raise OptionError(
            f"parallel={options.parallel!r} runs operators at once; donated inputs need one after another"
        )


def _check_memories(options: Options) -> None:
    if options.memories and options.target.memories:
        raise OptionError(f"target {options.target.name!r} has memories, too: leave out memories= (--memory)")
    if options.board and options.parallel and options.parallel not in IN_MEMORIES:
        raise OptionError(
            f"parallel={options.parallel!r} plans one arena; {' and '.join(IN_MEMORIES)} plan in several memories"
        )


def check_one_arena(options: Options, what: str) -> None:
    """Raises OptionError where there are memories; `what` has one arena."""
    if options.board:
        raise OptionError(f"{what} has one arena; leave out memories= (--memory), and a target with memories")


def _check_policy(name: str) -> None:
    try:
        policies.check_policy(name)
    except UnknownPolicyError as error:
        raise OptionError(f"parallel: {error}") from error


DEFAULTS = Options()


class PlanOptions(TypedDict, total=False):
    """Keywords of `engine.compile` and `engine.make_plan`: the fields of `Options`."""

    strategy: str
    alignment: int
    padding: int
    seed: int
    timeout: float | str
    nodes: int
    optimise: int | str
    store: str
    cascade: int
    views: bool
    overwrite: bool
    reuse: bool
    prepack: bool
    caller_buffers: tuple[str, ...]
    donated: tuple[str, ...]
    parallel: str
    nest: bool
    order: str
    backend: str
    target: Target | str | PathLike[str]
    memories: Sequence[Memory | str]
    place: Mapping[str, str] | Sequence[Rule | str]


EVICTIONS = ("dtr", "dtr_eq", "dtr_local", "lru", "size", "coop")
"""The heuristics of `allocator.eviction.heuristics`, which few runs load."""


def parse_budget(budget: int | str) -> int:
    """Returns a budget in bytes; NO_CAPACITY where there is no limit. Raises OptionError."""
    return parse_bytes(budget) if budget != "" else NO_CAPACITY
