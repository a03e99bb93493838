"""Saved traces come back as they were; the error for a damaged file names its line, and nothing else happens."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Event, Trace, read_trace
from engine.exporters import FORMATS
from engine.readers import is_saved_trace, scanner
from engine.readers.values import MOST_SECONDS, MOST_THREADS, MOST_TICKS
from engine.text.errors import TraceFormatError
from engine.trace.trace import RunInfo
from tests.engine.stages.test_trace import CUTS, MODES, ran
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.staged_graphs import rows
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.saved_traces import save_trace, traces

SUFFIXES = ("json", "csv")
SMALL = engine.make_plan(build(seeded(3), 6), optimise=0).trace()
NAMES = (
    "a,b",
    '"',
    "\n",
    "\r",
    "</script><script>alert(1)</script>",
    "\0\x1b[2J",
    "\u202e",
    "x" * 10_000,
    "=1+1",
    " a ",
)


@settings(max_examples=30)
@given(traces(), st.sampled_from(SUFFIXES))
def test_a_saved_trace_comes_back(trace: Trace, suffix: str) -> None:
    with TemporaryDirectory() as folder:
        reread = read_trace(save_trace(trace, Path(folder) / f"trace.{suffix}"))
        assert tuple(reread) == tuple(trace) == tuple(reread)
        if suffix == "json":
            assert reread.facts == trace.facts
        else:
            names = ("peak_bytes", "peak_tick", "peak_operator", "footprint_bytes", "stages", "is_timed")
            assert [getattr(reread.facts, name) for name in names] == [getattr(trace.facts, name) for name in names]


@settings(max_examples=15, deadline=None)
@given(CUTS, st.sampled_from([0, 5]), MODES, st.booleans(), st.sampled_from(SUFFIXES))
def test_a_run_of_several_stages_comes_back(
    cuts: list[int], padding: int, mode: str, is_timed: bool, suffix: str
) -> None:
    exe = ran(cuts, padding=padding, mode=mode)
    timings = exe.timed({"x": rows(9, len(cuts))})[1] if is_timed else ()
    trace = exe.trace(mode, timings=timings)
    with TemporaryDirectory() as folder:
        reread = read_trace(save_trace(trace, Path(folder) / f"t.{suffix}"))
        assert tuple(reread) == tuple(trace)
        assert reread.facts.stages == trace.facts.stages and reread.facts.mode == mode


@settings(max_examples=20)
@given(traces())
def test_csv_tells_an_arena_by_its_events(trace: Trace) -> None:
    with TemporaryDirectory() as folder:
        facts = read_trace(save_trace(trace, Path(folder) / "trace.csv")).facts
    if trace.facts.mode == "static":
        assert (facts.mode, facts.arena_bytes) == ("static", trace.facts.arena_bytes)
        assert facts.lower_bound <= trace.facts.arena_bytes
    elif not trace.facts.heap:
        assert (facts.mode, facts.heap) == ("dynamic", "")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", NAMES)
def test_saved_traces_take_any_name(name: str, suffix: str, tmp_path: Path) -> None:
    trace = _renamed(SMALL, name)
    reread = read_trace(save_trace(trace, tmp_path / f"trace.{suffix}"))
    assert tuple(reread) == tuple(trace)


def test_half_a_surrogate_is_kept_by_json_and_escaped_by_csv(tmp_path: Path) -> None:
    trace = _renamed(SMALL, "a\ud800")
    assert {e.tensor for e in read_trace(save_trace(trace, tmp_path / "t.json"))} == {"", "a\ud800"}
    assert {e.tensor for e in read_trace(save_trace(trace, tmp_path / "t.csv"))} == {"", "a\\ud800"}


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(SUFFIXES))
def test_a_damaged_file_is_read_or_refused_in_one_line(data: st.DataObject, suffix: str) -> None:
    content = bytearray(exported(suffix, SMALL))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.sampled_from([0, 0, 1, 1, 5, 200, len(content)]))
        content[at : at + length] = data.draw(st.binary(max_size=3) | st.sampled_from([b"-", b"1e999", b"[" * 5_000]))
        content = content or bytearray(b"\n")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"trace.{suffix}"
        path.write_bytes(content)
        _read_or_refuse(path)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_trace_file_is_read_or_refused(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        (path := Path(folder) / "trace.json").write_bytes(content)
        _read_or_refuse(path)


def _read_or_refuse(path: Path) -> None:
    try:
        for event in read_trace(path):
            assert isinstance(event, Event)
    except TraceFormatError as error:
        assert str(error).startswith(f"{path}:") and "\n" not in str(error) and len(str(error)) < 400


def _events(change: Callable[[list[Event]], list[Event]]) -> Trace:
    return Trace(SMALL.facts, lambda: iter(change(list(SMALL))))


def _renamed(trace: Trace, name: str) -> Trace:
    return Trace(
        trace.facts,
        lambda: (evolve(e, tensor=name) if e.tensor else e for e in trace),
    )


def _changed(kind: str, /, **changes: Any) -> Trace:
    """Returns a change that gives the first event of a kind other values."""

    def change(events: list[Event]) -> list[Event]:
        at = next(i for i, e in enumerate(events) if e.kind == kind)
        return [*events[:at], evolve(events[at], **changes), *events[at + 1 :]]

    return _events(change)


_ALLOC = next(i for i, e in enumerate(SMALL) if e.kind == "alloc")
LIES: dict[str, tuple[Trace, str]] = {
    "negative": (_changed("alloc", bytes=-4), "bytes: -4 is not from 0 to"),
    "huge": (_changed("alloc", bytes=2**63), "bytes: 9223372036854775808 is not from 0 to"),
    "sum": (_changed("alloc", live_bytes=1), "live_bytes: 1, but "),
    "footprint": (_changed("alloc", footprint_bytes=1), "footprint_bytes: 1, but the memory has"),
    "freed": (_changed("free", chunk=99), "chunk: chunk 99 is not alive"),
    "twice": (_events(lambda e: [*e[: _ALLOC + 1], e[_ALLOC]]), "chunk: chunk 0 is alive already"),
    "size": (_changed("free", bytes=1), "bytes: chunk "),
    "kind": (_changed("free", kind="fre"), "kind: 'fre' is none of: stage, grow"),
    "back": (_changed("end", tick=0), "tick: 0 comes after 1"),
    "ends": (_events(lambda e: [x for x in e if x.kind != "begin"]), "tick: its operator has not begun"),
    "cut": (_events(lambda e: e[:-1]), "chunks are alive: it is cut short"),
    "running": (_events(lambda e: e[: [x.kind for x in e].index("begin") + 1]), "runs: it is cut short"),
    "peak": (_events(lambda e: [x for x in e if x.kind != "peak"]), "has no event"),
    "nowhere": (_changed("begin", seconds=-2.0), "seconds: -2.0 is no time"),
    "text": (_changed("begin", tick="1"), "tick: '1' is not a whole number"),
    "fraction": (_changed("begin", tick=1.0), "tick: "),
    "facts": (Trace(evolve(SMALL.facts, peak_bytes=1), SMALL.__iter__), "facts.peak_bytes: 1, but the events say"),
    "mode": (Trace(evolve(SMALL.facts, mode="fast"), SMALL.__iter__), "facts.mode: 'fast' is none of: 'static'"),
    "alignment": (Trace(evolve(SMALL.facts, alignment=0), SMALL.__iter__), "facts.alignment: 0 is not from 1 to"),
    "late": (_changed("alloc", tick=2**62), "tick: 4611686018427387904 is not from 0 to 1099511627775"),
    "slow": (_changed("begin", seconds=1e12), "seconds: 1000000000000.0 is no time from 0 to 1073741824"),
    "too many threads": (_changed("begin", thread=10_000), "thread: 10000 is not from -1 to 1023"),
    "overwriting alloc": (_changed("alloc", overwrites=7), "overwrites: 7, but this event overwrites nothing"),
    "clocks": (_changed("end", seconds=0.5), "seconds: 0.5 comes after -1.0"),
}
CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "ticks": ({"ticks": 1}, "facts.ticks: 1, but the events have"),
    "many ticks": ({"ticks": 10**15}, "facts.ticks: 1000000000000000, where 1099511627776 is the most"),
    "stages": ({"stages": 77}, "facts.stages: 77, but the events say 1"),
    "threads": ({"threads": 2}, "facts.threads: 2, where 1 is the most"),
    "clock": ({"clock": "measured"}, "facts.clock: 'measured', but the events have no times"),
    "operator": ({"peak_operator": "foo"}, "facts.peak_operator: 'foo', but the events say '"),
    "peak tick": ({"peak_tick": 2}, "facts.peak_tick: 2, but the events say "),
    "arena": ({"arena_bytes": 5, "lower_bound": 1}, "facts.arena_bytes: 5, but the memory of this static run has"),
    "bound": ({"lower_bound": 10**12}, "facts.lower_bound: 1000000000000, above the arena of"),
    "possible": ({"possible_peak_bytes": 0}, "facts.possible_peak_bytes: 0, below the peak of"),
    "alignment": ({"alignment": 3}, "facts.alignment: 3 is not a power of two"),
    "heap": ({"heap": "buddy"}, "facts.heap: a static run has one arena, and no heap"),
    "dynamic": ({"mode": "dynamic"}, "facts.mode: a dynamic run without a heap, but the events have addresses"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_json_whose_facts_are_not_those_of_its_events_is_refused(claim: str, tmp_path: Path) -> None:
    changes, message = CLAIMS[claim]
    lie = Trace(evolve(SMALL.facts, **changes), SMALL.__iter__)
    _is_refused(save_trace(lie, tmp_path / "t.json"), f"t.json:1: {message}")


def test_a_dynamic_run_is_not_read_as_a_static_one(tmp_path: Path) -> None:
    run = engine.make_plan(build(seeded(3), 6), optimise=0).trace("dynamic")
    most = run.facts.footprint_bytes
    lie = Trace(evolve(run.facts, mode="static", arena_bytes=most, lower_bound=most), run.__iter__)
    _is_refused(save_trace(lie, tmp_path / "t.json"), "facts.mode: a static run, but events are without addresses")


def test_more_threads_than_the_facts_tell_are_refused(tmp_path: Path) -> None:
    run = engine.make_plan(build(seeded(3), 6), optimise=0).trace(threads=1)
    moved = Trace(run.facts, lambda: (evolve(e, thread=e.thread + 3) if e.kind in ("begin", "end") else e for e in run))
    _is_refused(save_trace(moved, tmp_path / "t.json"), "facts.threads: 1, but the events have 4")


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"megengine"}))  # which has an entry for each tick
def test_the_last_tick_and_second_that_are_read_are_written_in_all_formats(name: str, tmp_path: Path) -> None:
    events = list(engine.make_plan(build(seeded(3), 6), optimise=0).trace(threads=1))
    last = max(e.tick for e in events)
    late = [evolve(e, tick=MOST_TICKS - 1, seconds=MOST_SECONDS) if e.tick == last else e for e in events]
    late = [evolve(e, thread=MOST_THREADS - 1) if e.thread == 0 else e for e in late]
    saved = read_trace(save_trace(Trace(SMALL.facts, lambda: iter(late)), tmp_path / "t.csv"))
    assert saved.facts.ticks >= MOST_TICKS - 1 and exported(name, saved)


@pytest.mark.parametrize("lie", LIES)
def test_read_trace_refuses_json_that_contradicts_itself(lie: str, tmp_path: Path) -> None:
    trace, message = LIES[lie]
    _is_refused(save_trace(trace, tmp_path / "t.json"), message)


@pytest.mark.parametrize("lie", sorted(LIES.keys() - {"text", "facts", "mode", "alignment"}))
def test_read_trace_refuses_csv_that_contradicts_itself(lie: str, tmp_path: Path) -> None:
    trace, message = LIES[lie]
    _is_refused(save_trace(trace, tmp_path / "t.csv"), message)


BROKEN_JSON = {
    "empty": ("", "this is not a saved trace"),
    "list": ("[]", "it does not begin with an object"),
    "chrome": ('{"traceEvents": []}', "'version' is expected here"),
    "version": ('{"version": 99, "facts": {}}', "version: 99 is unknown; this program reads version 8"),
    "no facts": ('{"version": 8, "events": []}', "'facts' is expected here"),
    "facts": ('{"version": 8, "facts": []}', "an object is expected, with the facts"),
    "missing": ('{"version": 8, "facts": {}}', ":1: model: this fact is missing"),
    "cut": ('{"version": 8,\n\n"facts": {"model": ', ":3: the file ends in the middle of a value"),
    "twice": ('{"version": 8, "facts": {"model": "a", "model": "b"}}', "'model' is there twice"),
    "deep": ('{"version": ' + "[" * 100_000, ":1: "),
    "digits": ('{"version": ' + "9" * 10_000, ":1: "),
    "long": ('{"version": "' + "x" * 40_000_000, ":1: a value of more than 16777216 characters"),
    "bytes": ('{"version": "\udcff"}', "a byte that is not UTF-8"),
}


@pytest.mark.parametrize("case", BROKEN_JSON)
def test_read_trace_refuses_a_file_that_is_no_json_trace(case: str, tmp_path: Path) -> None:
    text, message = BROKEN_JSON[case]
    (path := tmp_path / "t.json").write_bytes(text.encode(errors="surrogateescape"))
    _is_refused(path, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda lines: [lines[0].replace(b"bytes,padding", b"bytes"), *lines[1:]],
            ":1: padding: this column is missing",
        ),
        (lambda lines: [lines[0] + b",note", *lines[1:]], ":1: no column is called 'note'"),
        (lambda lines: [lines[0] + b",tick", *lines[1:]], ":1: tick: this column is there twice"),
        (lambda lines: [lines[0], lines[1] + b",1"], ":2: 19 columns where there should be 18"),
        (
            lambda lines: [*lines[:3], lines[3].replace(b"alloc", b'"alloc'), *lines[4:]],
            "from here on the file is not CSV",
        ),
        (lambda lines: [*lines[:2], lines[2].replace(b"0,", b"0x,", 1)], ":3: tick: '0x' is not a whole number"),
        (lambda lines: [*lines[:2], lines[2].replace(b"-1.0", b"nan", 1)], ":3: seconds: nan is no time"),
        (lambda lines: [*lines[:2], lines[2].replace(b"-1.0", b"soon", 1)], ":3: seconds: 'soon' is not a number"),
        (lambda lines: [*lines[:2], b"\xff" + lines[2]], "a byte that is not UTF-8"),
        (lambda lines: [*lines[:2], b"9" * 200_000], ":2: from here on the file is not CSV: field larger"),
        (lambda lines: [*lines[:2], b"9" * 20_000_000], ":2: a line is too long"),
    ],
)
def test_read_trace_refuses_a_file_that_is_no_csv_trace(
    change: Callable[[list[bytes]], list[bytes]], message: str, tmp_path: Path
) -> None:
    (path := tmp_path / "t.csv").write_bytes(b"\n".join(change(exported("csv", SMALL).splitlines())))
    _is_refused(path, message)


def _is_refused(path: Path, message: str) -> None:
    with pytest.raises(TraceFormatError) as caught:
        tuple(read_trace(path))
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_the_place_of_a_wrong_event_is_its_line(tmp_path: Path) -> None:
    lines = exported("json", SMALL).splitlines(keepends=True)
    lines[7] = lines[7].replace(b'"kind": "', b'"kind": "x')
    (path := tmp_path / "t.json").write_bytes(b"".join(lines))
    _is_refused(path, "t.json:8: kind: 'x")


@pytest.mark.parametrize(
    ("value", "message"),
    [("true", "True is not a whole number"), ("NaN", "NaN is not a number in JSON"), ("1e5", "tick: ")],
)
def test_numbers_of_json_are_numbers(value: str, message: str, tmp_path: Path) -> None:
    text = exported("json", SMALL).decode().replace('"tick": 0', f'"tick": {value}', 1)
    (path := tmp_path / "t.json").write_text(text)
    _is_refused(path, message)


@pytest.mark.parametrize("block", [1, 2, 7, 100])
def test_read_trace_takes_blocks_that_end_anywhere(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_BLOCK", block)
    trace = _renamed(SMALL, '\\ " \u2028 \U0001f642 \n')
    assert tuple(read_trace(save_trace(trace, tmp_path / "t.json"))) == tuple(trace)


def test_json_may_be_laid_out_anew(tmp_path: Path) -> None:
    document = json.loads(exported("json", SMALL))
    for i, layout in enumerate(({"indent": 4}, {"separators": (",", ":")}, {"ensure_ascii": False})):
        (path := tmp_path / f"{i}.json").write_text(json.dumps(document, **layout) + "\n")  # type: ignore[arg-type]
        assert tuple(read_trace(path)) == tuple(SMALL)


def test_csv_may_come_from_a_spreadsheet(tmp_path: Path) -> None:
    """With a byte order mark, other line ends, and columns in another order."""
    lines = [",".join(reversed(line.split(","))) for line in exported("csv", SMALL).decode().splitlines()]
    (path := tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert tuple(read_trace(path)) == tuple(SMALL)


def test_a_csv_with_a_quoted_header_is_known(tmp_path: Path) -> None:
    head, *rest = exported("csv", SMALL).splitlines()
    quoted = b",".join(b'"%s"' % name for name in head.split(b","))
    (path := tmp_path / "events.txt").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([quoted, *rest]))
    assert is_saved_trace(path)
    assert tuple(read_trace(path)) == tuple(SMALL)


def test_a_trace_without_events_is_one(tmp_path: Path) -> None:
    nothing = Trace(RunInfo(model="nothing", mode="static"), lambda: iter(()))
    for suffix in SUFFIXES:
        assert tuple(read_trace(save_trace(nothing, tmp_path / f"t.{suffix}"))) == ()


def test_saved_traces_are_known_by_their_beginning(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        assert is_saved_trace(save_trace(SMALL, tmp_path / f"t.{suffix}"))
        (path := tmp_path / f"no_suffix_{suffix}").write_bytes(exported(suffix, SMALL))
        assert is_saved_trace(path)
        assert tuple(read_trace(path)) == tuple(SMALL)
    for content in (b"", b"\x08\x07", b"id,lower,upper,size\n", b'"tick,kind,live_bytes\n', b'{"buffers": []}', b"{"):
        (path := tmp_path / "m.onnx").write_bytes(content)
        assert not is_saved_trace(path)
    assert not is_saved_trace(tmp_path) and not is_saved_trace(Path("zoo:vgg16"))


def test_read_trace_refuses_files_that_cannot_be_read_twice(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="not a regular file"):
        read_trace(tmp_path)
