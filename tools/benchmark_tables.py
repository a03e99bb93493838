"""Tables of docs/benchmarks.md, made from what was measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

Row = Mapping[str, Any]
_LAST_DIGIT = 1e-4
_NEAR = 0.005
"""How far above its bound an arena may be that is not proved to be the smallest."""
_QUICK = 2.0
"""Seconds within which a plan for a capacity is to be there."""


def seconds(value: float) -> str:
    """Returns seconds as text: about two digits, without an exponent."""
    return f"{value:.2g}" if 0.0001 <= value < 99.5 else f"{value:.0f}" if value >= 99.5 else f"{value:.5f}"


def _cell(row: Row) -> str:
    if row.get("note") or not row.get("breadth"):
        return "-" if "cannot take" in row.get("note", "") else row.get("note", "-") or "-"
    proof = "*" if row["status"] == "optimal" else ""
    return f"{row['arena_bytes'] / row['breadth']:.4f}{proof} / {seconds(row['seconds'])}"


def strategies_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields the table of strategies: a line for each strategy, a column for each instance."""
    names = list(dict.fromkeys(row["instance"] for row in rows))
    yield ["strategy", *names]
    for strategy in dict.fromkeys(row["strategy"] for row in rows):
        cells = {row["instance"]: _cell(row) for row in rows if row["strategy"] == strategy}
        yield [strategy, *(cells.get(name, "-") for name in names)]


def originals_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each strategy: arena over most bytes alive; in brackets the original's, where it differs."""
    names = list(dict.fromkeys(row["instance"] for row in rows))
    yield ["strategy", *names]
    for strategy in dict.fromkeys(row["strategy"] for row in rows):
        cells = {row["instance"]: _beside_original(row) for row in rows if row["strategy"] == strategy}
        yield [strategy, *(cells[name] for name in names)]


def _beside_original(row: Row) -> str:
    ratio = row["arena_bytes"] / row["breadth"]
    is_same = abs(ratio - row["original"]) < _LAST_DIGIT
    return f"{ratio:.4f}" if is_same else f"{ratio:.4f} ({row['original']:.4f})"


def speed_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields the table of speed: the seconds that were the target, and those that were needed."""
    yield ["work", "target, s", "seconds", "arena / most bytes alive", "status"]
    for row in rows:
        if row.get("note"):
            yield [row["work"], row["target"], row["note"], "-", "-"]
        else:
            ratio = f"{row['arena_bytes'] / row['breadth']:.4f}"
            yield [row["work"], row["target"], seconds(row["seconds"]), ratio, row["status"]]


def proofs_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields the table of proofs: the best arena and the best bound, in bytes."""
    yield ["instance", "most bytes alive", "proved lower bound", "arena", "above the bound", "seconds", "status"]
    for row in rows:
        gap = f"{row['arena_bytes'] / row['lower_bound'] - 1:.2%}"
        numbers = (f"{row[key]:,}" for key in ("breadth", "lower_bound", "arena_bytes"))
        yield [row["instance"], *numbers, gap, seconds(row["seconds"]), row["status"]]


def kinds_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each kind of instances and one for all: how many are proved, and how near the others are."""
    yield ["kind", "instances", "proved", "others within 0.5 %", "worst", "seconds, mean", "most"]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    for kind, names in (*((kind, {kind}) for kind in kinds), ("all", set(kinds))):
        group = [row for row in rows if row["kind"] in names]
        gaps = [row["arena_bytes"] / row["lower_bound"] - 1 for row in group if row["status"] != "optimal"]
        took = [row["seconds"] for row in group]
        near, worst = sum(gap <= _NEAR for gap in gaps), max(gaps, default=0)
        numbers = (len(group), len(group) - len(gaps), near)
        yield [kind, *map(str, numbers), f"{worst:.2%}", seconds(sum(took) / len(took)), seconds(max(took))]


def capacity_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each capacity at which a plan is known: how many were found, and how far the others are."""
    yield ["capacity", "instances", "within", "within 2 s", "worst, of the capacity", "seconds, mean", "most"]
    for capacity in dict.fromkeys(row["capacity"] for row in rows):
        group = [row for row in rows if row["capacity"] == capacity]
        took = [row["seconds"] for row in group]
        within = [row["seconds"] for row in group if row["arena_bytes"] <= capacity]
        worst = max(row["arena_bytes"] for row in group) / capacity
        numbers = (len(group), len(within), sum(one <= _QUICK for one in within))
        times = seconds(sum(took) / len(took)), seconds(max(took))
        yield [f"{capacity:,}", *map(str, numbers), f"{worst:.4f}", *times]


def memories_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each kind and one for all: the cost over that of simple ways, and the gap to the bound."""
    yield ["kind", "instances", "proved", "/ first come", "/ lifetime density", "gap, mean", "worst", "seconds, mean"]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    for kind, names in (*((kind, {kind}) for kind in kinds), ("all", set(kinds))):
        group = [row for row in rows if row["kind"] in names]
        means = (geometric_mean([row["cost"] / row[key] for row in group]) for key in ("first_come", "density"))
        gaps, took = [row["gap"] for row in group], [row["seconds"] for row in group]
        proved = sum(row["status"] == "optimal" for row in group)
        numbers = (f"{sum(gaps) / len(gaps):.1%}", f"{max(gaps):.1%}", seconds(sum(took) / len(took)))
        yield [kind, str(len(group)), str(proved), *(f"{mean:.3f}" for mean in means), *numbers]


def boards_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network and board, and the means over those where not all fits the fastest memory."""
    yield ["network", "board", "plan", "transfers, ms", "bound, ms", "gap", "/ first come", "/ lifetime density"]
    for row in rows:
        if row["reason"]:
            plan = "proved impossible" if row["status"] == "infeasible" else "none found"
            yield [row["network"], row["board"], plan, *["-"] * 5]
            continue
        plan = "proved" if row["status"] == "optimal" else "found"
        times = (seconds(1e3 * row[key]) for key in ("cost", "bound"))
        ratios = (f"{row['cost'] / row[key]:.3f}" if row[key] else "no plan" for key in ("first_come", "density"))
        plan = f"all in the fastest, {plan}" if row["fits_fastest"] else plan
        yield [row["network"], row["board"], plan, *times, f"{row['gap']:.1%}", *ratios]
    scarce = [row for row in rows if not row["reason"] and not row["fits_fastest"]]
    if scarce:
        of = {key: [row["cost"] / row[key] for row in scarce if row[key]] for key in ("first_come", "density")}
        means = (f"{geometric_mean(ratios):.3f}" if ratios else "-" for ratios in of.values())
        gaps = [row["gap"] for row in scarce]
        worst = f"{sum(gaps) / len(gaps):.1%}, at most {max(gaps):.1%}"
        yield ["means where not all fits the fastest", "", "", "", "", worst, *means]


def moves_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network and size of the fast memory: transfers without copies, and with each kind."""
    ways = {"copies": "copies", "moved": "or again", "engine": "beside"}
    heads = [head for way in ways.values() for head in (f"{way}, ms", f"{way} / without")]
    yield ["network", "fast memory", "without, ms", *heads, "copies take, ms", "calls wait, ms"]

    def ratio(key: str, group: Sequence[Row]) -> str:
        return f"{geometric_mean([row[key] / row['without'] for row in group]):.3f}"

    for row in rows:
        cells = [each for way in ways for each in (_milliseconds(row[way]), ratio(way, [row]))]
        waits = _milliseconds(row["copy_seconds"]), _milliseconds(row["waiting_seconds"])
        yield [row["network"], f"{row['part']:.0%}", _milliseconds(row["without"]), *cells, *waits]
    if len(rows) > 1:
        yield ["all", "", "", *(each for way in ways for each in ("", ratio(way, rows))), "", ""]


def _milliseconds(value: float) -> str:
    return seconds(1e3 * value) if value else "0"


def tiers_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each way to train or run a network: bytes in RAM and on the disk, seconds."""
    yield [
        "network",
        "way",
        "in RAM, planned",
        "measured",
        "off by",
        "on the disk",
        "seconds",
        "of processor",
        "result",
    ]
    first = {(row["what"], row["network"]): row for row in reversed(rows)}
    for row in rows:
        batch = f", training, batch {row['batch']}" if "batch" in row else f", weights {_mib(row['weights_bytes'])}"
        name = row["network"] + batch
        if row.get("failed"):
            yield [name, f"{row['way']}, room for {_mib(row['room'])}", *["-"] * 6, "does not run"]
            continue
        way = row["way"]
        if row.get("again"):
            way += f": {row['share']:.1%} more operations"
        off = f"{row['grown_bytes'] / row['ram_bytes'] - 1:+.1%}"
        same = "" if row is first[row["what"], row["network"]] else "the same bits" if row["same"] else "DIFFERENT"
        sizes = [_mib(row[key]) for key in ("ram_bytes", "grown_bytes", "disk_bytes")]
        times = (seconds(row[key]) for key in ("step_s", "processor_s"))
        yield [name, way, *sizes[:2], off, sizes[2], *times, same]


def _mib(nbytes: int) -> str:
    return f"{nbytes / 2**20:.1f} MiB"


def zoo_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network of the zoo and one for all: how many plans are proved, and the slowest."""
    yield ["network", "plans", "most buffers", "proved", "most bytes above the bound", "slowest, ms"]
    networks = list(dict.fromkeys(row["network"] for row in rows))
    for network, names in (*((network, {network}) for network in networks), ("all", set(networks))):
        group = [row for row in rows if row["network"] in names]
        proved = sum(row["status"] == "optimal" for row in group)
        gap = max(row["arena_bytes"] - row["lower_bound"] for row in group)
        most, slowest = max(row["buffers"] for row in group), max(row["seconds"] for row in group)
        yield [network, f"{len(group)}", f"{most:,}", f"{proved}", f"{gap:,}", f"{1e3 * slowest:.1f}"]


def networks_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields the table of the networks of the onnx package."""
    yield ["network", "buffers", "arena, bytes", "strategy", "status", "solver, ms", "whole plan, ms", "first plan, ms"]
    for row in rows:
        times = (f"{1e3 * row[key]:.1f}" for key in ("solve_s", "plan_s", "first_s"))
        yield [row["network"], str(row["buffers"]), f"{row['arena_bytes']:,}", row["strategy"], row["status"], *times]


def startup_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields the table of whole processes, in seconds."""
    yield ["instance", "strategy", "first use ever, s", "later, s", "later, processor, s"]
    for row in rows:
        times = (f"{row.get(key, 0):.2f}" for key in ("cold_s", "warm_s", "processor_s"))
        yield [row["instance"], row["strategy"], *times]


def costs_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network: each policy's arena over that of the sequence, and calls that may run at once."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    yield ["network", "sequence, bytes", *policies[1:]]
    for network in dict.fromkeys(row["network"] for row in rows):
        first, *others = (row for row in rows if row["network"] == network)
        cells = (
            f"{row['arena_bytes'] / first['arena_bytes']:.3f}{'*' if row['status'] == 'optimal' else ''} / "
            f"{row['by_count']:.2f}, {row['by_cost']:.2f}"
            for row in others
        )
        yield [network, f"{first['arena_bytes']:,}", *cells]


def planning_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each size: seconds of planning with each policy, and its arena over that of the sequence."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    yield ["operators, width", *policies]
    for size in dict.fromkeys((row["operators"], row["width"]) for row in rows):
        of = {row["policy"]: row for row in rows if (row["operators"], row["width"]) == size}
        yield [f"{size[0]:,}, {size[1]}", *(_planned(of[policy], of[policies[0]]) for policy in policies)]


def _planned(row: Row, sequence: Row) -> str:
    if "note" in row:
        return "too many conflicts"
    return f"{seconds(row['seconds'])} / {row['arena_bytes'] / sequence['arena_bytes']:.2f}"


def running_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields the table of runs in sequence and at once: milliseconds, least and median."""
    yield ["network", "threads", "in sequence, ms", "at once, ms", "speed-up", "outputs"]
    for row in rows:
        one, other = row["sequence_s"], row["at_once_s"]
        times = (f"{1e3 * t['min']:.2f} / {1e3 * t['median']:.2f}" for t in (one, other))
        gain = f"{one['min'] / other['min']:.2f} / {one['median'] / other['median']:.2f}"
        yield [row["network"], str(row["threads"]), *times, gain, "equal to the bit" if row["equal"] else "close"]


def order_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network: MiB of arenas in three orders and of live bytes; a star marks proved orders."""
    yield [
        *("network", "operators", "arena, as given", "depth first", "memory order", "saved"),
        *("alive, as given", "memory order", "any order", "search, s"),
    ]
    for row in rows:
        arenas = [row[f"{order}_arena"] for order in ("given", "depth_first", "memory")]
        sizes = (*arenas, row["given_live"], row["memory_live"], row["bound"])
        sizes_mib = [f"{size / 2**20:.2f}" for size in sizes]
        saved = f"{1 - row['memory_arena'] / row['given_arena']:.1%}"
        star = "*" if row["is_proved"] else ""
        name = row["network"].removeprefix("zoo:")
        yield [
            name,
            str(row["operators"]),
            *sizes_mib[:3],
            saved,
            *sizes_mib[3:5],
            sizes_mib[5] + star,
            seconds(row["seconds"]),
        ]


def nest_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network: MiB of the arena with neither trick, with either, with both; and saved copies."""
    yield [
        *("network", "batch", "training", "neither", "nested", "memory order", "both", "saved"),
        *("computed in place", "MiB of them", "copies left"),
    ]
    for row in rows:
        sizes = (row[f"{kind}_bytes"] for kind in ("plain", "nested", "ordered", "both"))
        sizes_mib = [f"{size / 2**20:.2f}" for size in sizes]
        saved = f"{1 - row['both_bytes'] / row['plain_bytes']:.1%}"
        case = [row["network"], str(row["batch"]), "yes" if row["train"] else ""]
        yield [*case, *sizes_mib, saved, str(row["joined"]), f"{row['joined_bytes'] / 2**20:.2f}", str(row["copies"])]


def cascades_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network and percentage: MB of the arena, what is added, and milliseconds of runs."""
    yield [
        *("network", "at most", "arena of whole images, MB", "arena, MB", "saved", "more operations", "calls"),
        *("whole images, ms", "cascades, ms"),
    ]
    for row in rows:
        before, after = row["plain_bytes"], row["arena_bytes"]
        sizes = f"{before / 1e6:#.3g}", f"{after / 1e6:#.3g}", f"{1 - after / before:.0%}"
        added = f"{row['share']:.1%}", f"x {row['calls']:.1f}"
        yield [
            *(row["network"], f"{row['percent']} %", *sizes, *added),
            *(f"{row['plain_run_ms']:.1f}", f"{row['run_ms']:.1f}"),
        ]


def columns_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each wide image: MB of the arena in stripes of rows, and of columns, too; and milliseconds."""
    yield [
        *("image", "operators", "arena of whole images, MB", "in rows alone, MB", "in columns, too, MB"),
        *("least of all, MB", "more operations", "whole images, ms", "rows alone, ms", "columns, too, ms"),
    ]
    for row in rows:
        sizes = (row[f"{kind}_bytes"] for kind in ("plain", "rows", "arena", "least"))
        yield [
            *(f"{row['height']} x {row['width']}", str(row["operators"])),
            *(f"{size / 1e6:.2f}" for size in sizes),
            f"{row['share']:.1%}",
            *(f"{row[name]:.1f}" for name in ("plain_run_ms", "rows_run_ms", "run_ms")),
        ]


def streams_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each image in stripes: MiB of the arena and of anonymous memory, and seconds."""
    yield [
        *("pixels", "stripes", "rows of a stripe", "arena, MiB", "arena of the whole image, MiB", "more operations"),
        *("anonymous memory, MiB", "beyond the interpreter, MiB", "s"),
    ]
    for row in rows:
        sizes = (row["arena_bytes"], row["whole_bytes"])
        memory = (row["most_bytes"], row["most_bytes"] - row["imported_bytes"])
        yield [
            *(f"{row['size']} x {row['size']}", str(row["stripes"]), str(row["height"])),
            *(f"{size / 2**20:.1f}" for size in sizes),
            f"{row['again']:.1%}",
            *(f"{size / 2**20:.1f}" for size in memory),
            f"{row['seconds']:.0f}",
        ]


def runs_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network, back-end and number of threads: milliseconds of runs, and MB of activations."""
    yield [
        *("network", "back-end", "threads", "arenaplan, ms", "onnxruntime, ms", "ratio", "ratio of the least"),
        *("arena, MB", "onnxruntime's, MB", "outputs differ by"),
    ]
    for row in rows:
        times = (row[f"{engine}_seconds"] for engine in ("arenaplan", "onnxruntime"))
        cells = (f"{1e3 * t['median']:.2f} ({1e3 * t['min']:.2f})" for t in times)
        ratios = (f"{row[key]:.2f}" for key in ("ratio_median", "ratio_min"))
        planned, besides = (row[f"onnxruntime_{kind}_bytes"] / 1e6 for kind in ("planned", "besides"))
        theirs = f"{planned:.2f} + {besides:.2f}" if besides else f"{planned:.2f}"
        case = (row["network"], row["backend"], str(row["threads"]))
        yield [*case, *cells, *ratios, f"{row['arena_bytes'] / 1e6:.2f}", theirs, f"{row['largest_difference']:.0e}"]


def loading_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network and engine: MB of a process that loads and runs it, seconds to first output."""
    yield [
        *("network", "weights in", "engine", "weights, MB", "before, MB", "peak while loading, MB"),
        *("above before / weights", "peak of the whole run, MB", "loaded, s", "first output after, s"),
    ]
    for row in rows:
        sizes = (row[f"{key}_bytes"] / 1e6 for key in ("weights", "before", "loading"))
        above = f"{(row['loading_bytes'] - row['before_bytes']) / row['weights_bytes']:.2f}"
        times = (f"{row[f'{key}_seconds']:.2f}" for key in ("loading", "output"))
        case = (row["network"], row["weights_in"], row["engine"])
        yield [*case, *(f"{size:.0f}" for size in sizes), above, f"{row['whole_bytes'] / 1e6:.0f}", *times]


def process_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network: MB of whole processes at their peak, and seconds to the first output."""
    yield [
        *("network", "arenaplan, MB", "onnxruntime, MB", "ratio"),
        *("first output after, s", "onnxruntime's, s"),
    ]
    for row in rows:
        ours, other = row["arenaplan_peak_bytes"], row["onnxruntime_peak_bytes"]
        times = (f"{row[f'{engine}_seconds']:.2f}" for engine in ("arenaplan", "onnxruntime"))
        yield [row["network"], f"{ours / 1e6:.0f}", f"{other / 1e6:.0f}", f"{ours / other:.2f}", *times]


def first_use_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network and wheel: seconds of the first use ever, and of the tenth."""
    yield ["network", "machine code", "wheel, MB", "first use ever, s", "tenth, s"]
    for row in rows:
        times = (f"{row[f'{use}_seconds']:.2f}" for use in ("first", "tenth"))
        yield [row["network"], row["code"], f"{row['wheel_bytes'] / 1e6:.1f}", *times]


def lengths_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each encoder and engine: milliseconds of runs with new lengths, and kB that a length keeps."""
    yield ["network", "engine", "operators", "first run, ms", "again, ms", "new, ms", "kept, kB"]
    for row in rows:
        times = (f"{row[key]:.2f}" for key in ("first", "again", "new"))
        yield [row["network"], row["engine"], str(row["operators"]), *times, f"{row['kept_bytes'] / 1e3:.1f}"]


def decoding_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each engine: milliseconds a token of a greedy decoding."""
    yield ["engine", "operators", "a token, ms", "decoded again, ms", "slowest, ms"]
    for row in rows:
        times = (f"{row[key]:.2f}" for key in ("token", "token_again", "slowest"))
        yield [row["engine"], str(row["operators"]), *times]


def threads_table(rows: Sequence[Row]) -> Iterable[Sequence[str]]:
    """Yields a line for each network: milliseconds of its calls on one thread and on several, and a model of more."""
    modelled = [f"times as fast on {n} (model)" for n in (rows[0]["estimates_s"] if rows else ())]
    yield ["network", "calls", "threads", "1 thread, ms", "together, ms", "lost, ms", "of it barriers, ms", *modelled]
    for row in rows:
        times = (f"{1e3 * row[key]:.2f}" for key in ("alone_s", "together_s", "lost_s", "barriers_s"))
        ratios = (f"{row['alone_s'] / seconds:.1f}" for seconds in row["estimates_s"].values())
        yield [row["network"], str(row["calls"]), str(row["threads"]), *times, *ratios]


TABLES: Mapping[str, Callable[[Sequence[Row]], Iterable[Sequence[str]]]] = {
    "speed": speed_table,
    "proofs": proofs_table,
    "kinds": kinds_table,
    "capacity": capacity_table,
    "memories": memories_table,
    "boards": boards_table,
    "moves": moves_table,
    "tiers": tiers_table,
    "zoo": zoo_table,
    "networks": networks_table,
    "startup": startup_table,
    "strategies": strategies_table,
    "originals": originals_table,
    "costs": costs_table,
    "planning": planning_table,
    "running": running_table,
    "order": order_table,
    "nest": nest_table,
    "cascades": cascades_table,
    "columns": columns_table,
    "streams": streams_table,
    "runs": runs_table,
    "runs_avx2": runs_table,
    "processes": process_table,
    "loading": loading_table,
    "first_use": first_use_table,
    "lengths": lengths_table,
    "decoding": decoding_table,
    "threads": threads_table,
}


def markdown(rows: Iterable[Sequence[str]]) -> str:
    """Returns rows as a table in Markdown; the first row is the head."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join((head, "|" + "---|" * (head.count("|") - 1), *body))


def replaced(page: str, section: str, text: str) -> str:
    """Returns the page with `text` between both marks of a section. Raises SystemExit where it has no such section."""
    begin, end = f"<!-- {section} -->\n", f"\n<!-- end of {section} -->"
    before, _, rest = page.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"the page has no section {section!r}")
    return f"{before}{begin}{text}{end}{after}"
