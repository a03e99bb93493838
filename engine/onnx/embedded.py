"""The texts of an embedded plan, which stand in the `metadata_props` of an ONNX model by key.

The keys begin with `pkg.arenaplan.`, as those of PyTorch's exporter do with theirs (`pkg.torch.onnx.stack_trace`).
All texts are checked when they are read; an error names the key and the place in its text.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import asdict, frozen

from allocator.errors import shown
from allocator.problem import NO_TICK, Bound, Witness
from allocator.solvers import STRATEGIES
from engine.lower.copied import IN_TURN
from engine.planning.options import DEFAULTS
from engine.saved.embedded import FILE_KEYS, EmbeddedPlan, shaping
from engine.saved.fingerprint import Identity, digest_of
from engine.text.errors import PlanRefusedError

PREFIX = "pkg.arenaplan."
"""The prefix of all keys of this program."""
VERSION = 1
"""The version of the texts."""
LARGEST = 2**62
"""The limit of all ticks, sizes and offsets."""
_DIGESTS = ("operators", "kernels", "layouts", "memory")


def texts_of(plan: EmbeddedPlan) -> dict[str, str]:
    """Returns the texts of a plan by key."""
    identity = plan.identity
    calls = {"inputs": identity.feeds, "outputs": identity.fetches, "operators": identity.operators}
    calls |= {"kernels": identity.kernels, "layouts": identity.layouts, "memory": plan.memory}
    texts = {
        "version": str(VERSION),
        "digest": digest_of([calls, plan.order, plan.again]),
        "strategy": plan.strategy,
        "arena_bytes": str(plan.arena_bytes),
        "lower_bound": str(plan.bound.nbytes),
        "options": _json({FILE_KEYS[name]: value for name, value in plan.options}),
        "calls": _json(calls),
        "order": _json(plan.order),
        "again": _json([{"sequence": names, "plain_bytes": plain} for names, plain in plan.again]),
        "offsets": _json(plan.offsets),
    }
    if plan.bound.witness:
        texts["bound"] = _json({"reason": plan.bound.reason} | asdict(plan.bound.witness))
    if plan.left_out:
        texts["left_out"] = _json(plan.left_out)
    if plan.memories:
        texts |= {"memories": _json(plan.memories), "weights": _json(plan.weights)}
    if plan.moves:
        rows = [(tensor, after) if until == IN_TURN else (tensor, after, until) for tensor, after, until in plan.moves]
        read_until = {"read_until": plan.read_until} if any(plan.read_until) else {}
        computed = {"computed": plan.computed} if plan.computed else {}
        texts["moves"] = _json({"copies": rows, "plain_seconds": plan.unmoved_seconds} | read_until | computed)
    return {PREFIX + key: text for key, text in texts.items()}


def plan_of(texts: Mapping[str, str], source: str, required: bool) -> EmbeddedPlan:
    """Reads the plan in the texts; errors call it `source`. Raises PlanRefusedError."""
    read = _Reader(texts, source)
    read.check_version()
    calls = read.object("calls", read.json("calls"), ("inputs", "outputs", *_DIGESTS))
    arena_bytes = read.size("arena_bytes")
    order, again = read.integers("order"), read.again("again", arena_bytes)
    if read.text("digest") != digest_of([calls, order, again]):
        raise read.fault("digest", "is not that of the calls and of their order")
    sums = {name: read.string("calls", name, calls[name]) for name in _DIGESTS}
    memory = sums.pop("memory")
    moves, unmoved_seconds = read.moves("moves")
    read_until, computed = read.read_until("moves", len(moves)), read.computed("moves", len(moves))
    feeds, fetches = (read.pairs("calls", calls[name], read.string) for name in ("inputs", "outputs"))
    return EmbeddedPlan(
        identity=Identity(feeds, fetches, **sums),
        memory=memory,
        options=read.options("options"),
        arena_bytes=arena_bytes,
        bound=read.bound("lower_bound", "bound"),
        strategy=read.strategy("strategy"),
        order=order,
        again=again,
        offsets=read.pairs("offsets", read.json("offsets"), read.integer),
        left_out=read.left_out("left_out"),
        memories=read.of_memories("memories"),
        weights=read.of_memories("weights"),
        moves=moves,
        read_until=read_until,
        computed=computed,
        unmoved_seconds=unmoved_seconds,
        source=source,
        required=required,
    )


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


@frozen(eq=False)
class _Reader:
    """A reader of the texts. Each method raises PlanRefusedError for a text that is wrong."""

    texts: Mapping[str, str]
    source: str

    def fault(self, key: str, why: str) -> PlanRefusedError:
        return PlanRefusedError(f"{self.source}: metadata {PREFIX + key!r} {why}")

    def text(self, key: str) -> str:
        if PREFIX + key not in self.texts:
            raise self.fault(key, "is missing")
        return self.texts[PREFIX + key]

    def check_version(self) -> None:
        version = self.text("version")
        if version != str(VERSION):
            raise self.fault("version", f"is {version[:20]!r}; this program reads version {VERSION}")

    def json(self, key: str) -> Any:
        text = self.text(key)
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise self.fault(key, f"is no JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
        except (RecursionError, ValueError) as error:
            raise self.fault(key, "is no JSON that a plan could be in") from error

    def object(self, key: str, value: Any, names: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict) or value.keys() != set(names):
            raise self.fault(key, f"is no object of {', '.join(names)}")
        return value

    def options(self, key: str) -> tuple[tuple[str, Any], ...]:
        """Returns the options of the plan; one that a file of an older version does not have has its default."""
        stored = self.json(key)
        if not isinstance(stored, dict) or not stored.keys() <= set(FILE_KEYS.values()):
            raise self.fault(key, f"is no object of {', '.join(FILE_KEYS.values())}")
        usual = dict(shaping(DEFAULTS))
        return tuple((n, _as_tuple(stored.get(k, usual[n]))) for n, k in FILE_KEYS.items())

    def left_out(self, key: str) -> tuple[str, ...]:
        """Returns the groups of passes that did not run; the text is only there where there are some."""
        return self.strings(key, self.json(key)) if PREFIX + key in self.texts else ()

    def of_memories(self, key: str) -> tuple[int, ...]:
        """Returns the integers of a text that is only there where the plan has memories."""
        return self.integers(key) if PREFIX + key in self.texts else ()

    def moves(self, key: str) -> tuple[tuple[tuple[str, int, int], ...], float]:
        """Returns the copies between memories, and the seconds without; the text is only there where there are some.

        Rows of three have the last tick beside which a copy engine makes the copy.
        """
        if PREFIX + key not in self.texts:
            return (), 0.0
        stored = self.json(key)
        optional = [name for name in ("read_until", "computed") if isinstance(stored, dict) and name in stored]
        stored = self.object(key, stored, ("copies", "plain_seconds", *optional))
        seconds = stored["plain_seconds"]
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < LARGEST:
            raise self.fault(key, f"plain_seconds: {str(seconds)[:40]!r} is no number in [0, {LARGEST})")
        rows = self.list(key, stored["copies"])
        by_engine = [isinstance(row, list) and len(row) == 3 for row in rows]
        pairs = self.pairs(
            key, [row[:2] if is_long else row for row, is_long in zip(rows, by_engine, strict=True)], self.integer
        )
        until = [
            self.integer(key, f"row {at}", rows[at][2]) if is_long else IN_TURN for at, is_long in enumerate(by_engine)
        ]
        return tuple((*pair, tick) for pair, tick in zip(pairs, until, strict=True)), float(seconds)

    def read_until(self, key: str, count: int) -> tuple[int, ...]:
        """Returns the tick up to which each copy is read; the ticks are only there where one is of a constant."""
        ticks = self.json(key).get("read_until", [0] * count) if count else []
        if len(self.list(key, ticks)) != count:
            raise self.fault(key, f"read_until: {len(ticks)} ticks for {count} copies")
        return tuple(self.integer(key, f"read_until {at}", tick) for at, tick in enumerate(ticks))

    def computed(self, key: str, count: int) -> tuple[int, ...]:
        """Returns the numbers of copies that are computed again; they are only there where there are some."""
        rows = self.list(key, self.json(key).get("computed", [])) if count else []
        numbers = tuple(self.integer(key, f"computed {at}", row) for at, row in enumerate(rows))
        if any(number >= count for number in numbers):
            raise self.fault(key, f"computed: {max(numbers)} is none of {count} copies")
        return numbers

    def bound(self, size_key: str, key: str) -> Bound:
        """Returns the lower bound; its witness is only there where something adds up to it."""
        nbytes = self.size(size_key)
        if PREFIX + key not in self.texts:
            return Bound(nbytes)
        stored = self.object(key, self.json(key), ("reason", "tick", "chunks", "cell"))
        chunks = tuple(self.integer(key, f"chunk {at}", c) for at, c in enumerate(self.list(key, stored["chunks"])))
        tick = NO_TICK if stored["tick"] == NO_TICK else self.integer(key, "tick", stored["tick"])
        witness = Witness(tick, chunks, self.integer(key, "cell", stored["cell"]))
        return Bound(nbytes, self.string(key, "reason", stored["reason"]), witness)

    def strategy(self, key: str) -> str:
        strategy = self.text(key)
        if strategy not in STRATEGIES:
            raise self.fault(key, f"is {shown(strategy)}, which is no strategy of this program")
        return strategy

    def again(self, key: str, arena_bytes: int) -> tuple[tuple[tuple[str, ...], int], ...]:
        rows = [self.object(key, row, ("sequence", "plain_bytes")) for row in self.list(key, self.json(key))]
        return tuple(
            (self.strings(key, row["sequence"]), self.plain_bytes(key, f"row {at}", row["plain_bytes"], arena_bytes))
            for at, row in enumerate(rows)
        )

    def plain_bytes(self, key: str, where: str, value: Any, arena_bytes: int) -> int:
        """Reads the bytes without recomputation, which are at least those of the arena."""
        plain_bytes = self.integer(key, where, value)
        if plain_bytes < arena_bytes:
            raise self.fault(key, f"{where}: {plain_bytes} bytes without are fewer than the {arena_bytes} of the arena")
        return plain_bytes

    def strings(self, key: str, values: Any) -> tuple[str, ...]:
        return tuple(self.string(key, f"number {at}", value) for at, value in enumerate(self.list(key, values)))

    def size(self, key: str) -> int:
        return self.integer(key, "it", self.json(key))

    def integers(self, key: str) -> tuple[int, ...]:
        return tuple(
            self.integer(key, f"number {at}", value) for at, value in enumerate(self.list(key, self.json(key)))
        )

    def pairs(self, key: str, rows: Any, read: Callable[[str, str, Any], Any]) -> tuple[tuple[str, Any], ...]:
        """Reads rows of two: a name, and a value that `read` reads."""
        pairs = []
        for at, row in enumerate(self.list(key, rows)):
            if not isinstance(row, list) or len(row) != 2:
                raise self.fault(key, f"row {at}: no list of two")
            pairs.append((self.string(key, f"row {at}", row[0]), read(key, f"row {at}", row[1])))
        return tuple(pairs)

    def list(self, key: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise self.fault(key, "is no list")
        return value

    def string(self, key: str, where: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self.fault(key, f"{where}: {str(value)[:40]!r} is no text")
        return value

    def integer(self, key: str, where: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST:
            raise self.fault(key, f"{where}: {str(value)[:40]!r} is no integer in [0, {LARGEST})")
        return value
