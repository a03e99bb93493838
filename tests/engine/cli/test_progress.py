"""The line that says what is going on: drawn on a terminal, never anywhere else, and gone when it is not needed."""

import io
import logging
import subprocess
import sys
import threading
from unicodedata import normalize

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.errors import AllocatorError
from allocator.progress import Activity, aside, current, each, watched_by
from engine.cli import progress
from engine.cli.main import COMMANDS, NO_FIT, main
from engine.cli.progress import Line, can_show, cut, new_line, printable, progress_shown, shown_on
from engine.text.screen import visible_width
from tests.helpers.cli.terminal import Screen, in_terminal, needs_terminal
from tests.helpers.paths import ROOT

TEXTS = st.text(st.characters(codec=None), max_size=60)  # surrogate halves and control characters, too
PLAN = ("plan", "zoo:mobilenet_v2?image=32")
IMPATIENT = """
import sys
from engine.cli import progress, main
progress.PATIENCE, begin = 0.0, progress.Line.begin
progress.Line.begin = lambda line, activity: (begin(line, activity), line.tick())
sys.exit(main.main(sys.argv[1:]))
"""
"""The command, with a line that is drawn when something begins: no test waits for a second."""


class Terminal(io.StringIO):
    """A stream whose `screen` is what a person sees."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> Screen:
        return Screen.of(self.getvalue())


@define
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@define(eq=False)
class Watched:
    """A line that is looked at by hand, on a clock that is set by hand."""

    terminal: Terminal = field(factory=Terminal)
    clock: Clock = field(factory=Clock)
    line: Line = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.line = Line(self.terminal, self.clock, lambda: 62)

    def seen_at(self, now: float) -> str:
        self.clock.now = now
        self.line.tick()
        return self.terminal.screen.text


def test_the_progress_line_is_not_drawn_in_the_first_second_and_leaves_nothing_behind() -> None:
    watched = Watched()
    with watched_by(watched.line):
        with Activity("placing", "by exact", best=3 * 2**20, bound=2**20, limit=20.0) as seen:
            assert watched.seen_at(0.99) == ""
            assert watched.seen_at(1.0) == "1 s | placing by exact | best 3.00 MiB, bound 1.00 MiB, ..."
            seen.best, seen.bound = 2**20, -1
            assert watched.seen_at(2.5) == "2 s | placing by exact | best 1.00 MiB | at most 20 s"
        assert watched.terminal.screen.text == ""


def test_the_progress_line_says_best_bound_and_gap() -> None:
    watched = Watched()
    with watched_by(watched.line), Activity("placing", best=3 * 2**20, bound=2**21):
        assert watched.seen_at(1.0) == "1 s | placing | best 3.00 MiB, bound 2.00 MiB, gap 50.0%"


def test_a_sweep_says_which_of_how_many_and_what_goes_on_inside() -> None:
    watched, lines = Watched(), []
    with watched_by(watched.line):
        for name in each("network", ["vgg16", "unet"]):
            with Activity("planning", name):
                lines.append(watched.seen_at(65.0))
    assert lines == ["1 min 05 s | network 1 of 2, vgg16: planning", "1 min 05 s | network 2 of 2, unet: planning"]


def test_the_progress_line_goes_with_an_error() -> None:
    watched = Watched()
    with pytest.raises(AllocatorError), watched_by(watched.line), Activity("outer"):
        for _ in each("of", [1, 2]):
            Activity("never left").__enter__()
            assert watched.seen_at(3.0) == "3 s | outer: of 1 of 2, 1: never left"
            raise AllocatorError("stop")
    assert watched.terminal.screen.text == ""


def test_text_written_beside_the_progress_line_has_a_line_of_its_own() -> None:
    watched = Watched()
    with watched_by(watched.line), Activity("measuring"):
        watched.seen_at(1.0)
        with aside():
            watched.terminal.write("a row\n")
        assert watched.seen_at(2.0) == "a row\n2 s | measuring"
    assert watched.terminal.screen.text == "a row\n"


def test_the_progress_line_writes_the_same_text_once() -> None:
    watched = Watched()
    with watched_by(watched.line), Activity("reading"):
        watched.seen_at(1.0)
        before = watched.terminal.getvalue()
        watched.seen_at(1.9)
        assert watched.terminal.getvalue() == before


def test_the_ctrl_c_of_a_terminal_goes_with_the_progress_line() -> None:
    watched = Watched()
    with pytest.raises(KeyboardInterrupt), watched_by(watched.line), Activity("x" * 100):
        assert len(watched.seen_at(1.0)) == 59
        watched.terminal.write("^C")
        raise KeyboardInterrupt
    assert watched.terminal.screen.text == ""


def test_progress_without_a_watcher_is_not_told() -> None:
    watched = Watched()
    with watched_by(watched.line):
        pass
    with Activity("reading") as seen:
        assert current() is not seen
        assert watched.seen_at(9.0) == ""


@settings(max_examples=25)
@given(TEXTS, TEXTS, st.integers(13, 200), st.floats(1, 1e6))
def test_no_name_breaks_the_progress_line(what: str, item: str, width: int, now: float) -> None:
    terminal = Terminal()
    line = Line(terminal, Clock(), lambda: width)
    with watched_by(line), Activity("planning", what), Activity("placing", item, 1, 2, "steps", 5, 4, 3.0):
        line.clock.now = now  # type: ignore[attr-defined] # a Clock
        line.tick()
        shown = terminal.getvalue()
    assert shown.startswith("\r")
    assert all(c.isprintable() for c in shown[1:])
    assert visible_width(shown[1:]) < width


@settings(max_examples=25)
@given(TEXTS, st.integers(4, 80))
def test_the_progress_text_is_cut_to_the_columns_of_the_terminal(text: str, width: int) -> None:
    shown = cut(printable(text), width)
    assert visible_width(shown) <= width
    assert shown == printable(text) or shown.endswith("...")


def test_wide_characters_take_two_columns_and_accents_none() -> None:
    assert visible_width("張量") == 4
    assert visible_width(normalize("NFD", "é")) == 1
    assert cut("張量張量", 7) == "張量..."


def test_a_terminal_that_cannot_show_a_name_shows_a_mark() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    line = Line(stream, Clock(5.0))
    line.clock.now = 7.0  # type: ignore[attr-defined] # a Clock
    with watched_by(line), Activity("planning", "Größe"):
        line.tick()
        assert stream.buffer.getvalue() == b"\r2 s | planning Gr??e"


def test_a_closed_terminal_under_the_progress_line_stops_no_work() -> None:
    watched = Watched()
    with watched_by(watched.line), Activity("planning"):
        watched.terminal.close()
        watched.clock.now = 2.0
        watched.line.tick()
        watched.line.tick()


@pytest.mark.parametrize(
    ("environment", "is_shown"), [({}, True), ({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False)]
)
def test_the_progress_line_is_not_shown_on_a_dumb_terminal(environment: dict[str, str], is_shown: bool) -> None:
    assert can_show(Terminal(), environment) is is_shown
    assert not can_show(io.StringIO(), environment)
    assert not can_show(None, environment)


def test_the_progress_line_has_no_colour_with_no_color() -> None:
    assert not new_line(Terminal(), {"NO_COLOR": "1"}).is_coloured
    assert new_line(Terminal(), {"NO_COLOR": ""}).is_coloured is (sys.platform != "win32")
    line = Line(Terminal(), Clock(), is_coloured=True)
    line.clock.now = 1.0  # type: ignore[attr-defined] # a Clock
    with watched_by(line), Activity("planning"):
        line.tick()
        assert line.stream.getvalue() == "\r\x1b[2m1 s | planning\x1b[0m"  # type: ignore[attr-defined]


def test_the_progress_thread_looks_and_ends() -> None:
    looked: list[str] = []

    @define(eq=False)
    class Looking(Line):
        def tick(self) -> None:
            looked.append(self.current().what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "INTERVAL", 0.0)
        with shown_on(Looking(Terminal())), Activity("planning"):
            while "planning" not in looked:
                pass
    assert "progress" not in [thread.name for thread in threading.enumerate()]


def test_quiet_silences_what_the_solvers_say_of_compiling(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("allocator")
    for quiet in (True, False):
        with progress_shown(quiet):
            logger.warning("compiling, quiet: %s", quiet)
    assert caplog.messages == ["compiling, quiet: False"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_quiet(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert "-q, --quiet" in capsys.readouterr().out


@needs_terminal
def test_a_terminal_sees_the_progress_line_and_then_the_report_alone() -> None:
    done = in_terminal("-c", IMPATIENT, *PLAN)
    assert "planning mobilenet_v2" in done.written
    screen = Screen.of(done.written).text
    assert screen.startswith("mobilenet_v2: ")
    assert "planning" not in screen
    assert done.code == 0


@pytest.mark.slow
@needs_terminal
def test_an_error_on_a_terminal_stands_without_the_progress_line() -> None:
    done = in_terminal("-c", IMPATIENT, *PLAN, "--budget", "1kB")
    assert Screen.of(done.written).text.startswith("arenaplan: error: the plan needs ")
    assert done.code == NO_FIT


@pytest.mark.slow
@needs_terminal
@pytest.mark.parametrize(("more", "environment"), [(["-q"], {}), ([], {"TERM": "dumb"})])
def test_a_quiet_or_dumb_terminal_sees_no_progress_line(more: list[str], environment: dict[str, str]) -> None:
    done = in_terminal("-c", IMPATIENT, *PLAN, *more, **environment)
    assert done.written == Screen.of(done.written).text.replace("\n", "\r\n")
    assert done.code == 0


def test_a_pipe_sees_no_progress_line() -> None:
    done = subprocess.run([sys.executable, "-c", IMPATIENT, *PLAN], capture_output=True, check=True, cwd=ROOT)
    assert b"\r" not in done.stdout + done.stderr
    assert b"planning" not in done.stderr
