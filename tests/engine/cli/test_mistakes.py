"""Typical mistakes, one a row: each ends with its exit code and one line that says what is wrong."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from engine.cli.main import ERROR, NO_FIT, REFUSED, USAGE, main
from tests.helpers.cli.cli_checks import PLACED, Capture, error, save
from tests.helpers.onnx.convolutions import convolutions
from tests.helpers.onnx.saved_models import save_perceptron
from tests.helpers.paths import ROOT

MISTAKES: Mapping[str, tuple[str, int, str]] = {
    # commands and options
    "no command": ("", USAGE, "the following arguments are required: COMMAND"),
    "another command": ("optimize M", USAGE, "invalid choice: 'optimize'"),
    "a command misspelt": ("expalin M", USAGE, "did you mean explain?"),
    "no model": ("plan", USAGE, "the following arguments are required: MODEL"),
    "two models": ("plan M M", USAGE, "--share plans one arena for all of them"),
    "an option misspelt": ("plan M --stategy best", USAGE, "did you mean --strategy?"),
    "an option of another command": ("plan M --threads 2", USAGE, "unrecognized arguments: --threads 2 (see"),
    "an option without its value": ("plan M --budget", USAGE, "argument --budget: expected one argument"),
    "a value misspelt": ("plan M --order mem", USAGE, "invalid choice: 'mem'"),
    "an option twice with different values": ("compare M --measure --parallel", USAGE, "leave out --parallel"),
    "a strategy that there is not": ("solve B --strategy greedy", USAGE, "did you mean greedy_by_size?"),
    "a shortened option that means two": ("plan M --no-re", USAGE, "ambiguous option: --no-re"),
    # numbers and sizes
    "a budget in words": ("plan M --budget small", USAGE, "'small' is no size in bytes; write for example 8388608"),
    "a budget below nothing": ("plan M --budget -5", USAGE, "'-5' is no size in bytes"),
    "a budget of a wrong unit": ("plan M --budget 4Mx", USAGE, "'4Mx' is no size in bytes"),
    "a budget that nothing fits": ("solve B --budget 1", NO_FIT, "the arena needs 30 bytes, 1 are available"),
    "no threads": ("run M --threads 0", USAGE, "'0' is no integer from 1 on"),
    "half a thread": ("run M --threads 1.5", USAGE, "'1.5' is no integer from 1 on"),
    "no runs": ("compare M --runs 0", USAGE, "'0' is no integer from 1 on"),
    "an alignment that is no power of two": ("plan M --alignment 48", USAGE, "alignment 48 is no power of two"),
    "padding below nothing": ("plan M --padding -1", USAGE, "'-1' is no integer from 0 on"),
    "a time without a number": ("plan M --timeout soon", USAGE, "'soon' is no duration"),
    "a level that there is not": ("plan M --optimise 4", USAGE, "invalid choice: '4'"),
    "a tolerance below nothing": ("compare M --tolerance -1", USAGE, "'-1' is no number from 0 on"),
    "a seed that is no number": ("plan M --seed one", USAGE, "'one' is no integer from 0 on"),
    "operators at once of no policy": ("plan M --parallel colour", USAGE, "'colour' is no policy"),
    "a percentage with its sign": ("plan M --cascade 30%", USAGE, "argument --cascade: '30%' is no integer from 0 on"),
    "a percentage below nothing": ("plan M --cascade -5", USAGE, "argument --cascade: '-5' is no integer from 0 on"),
    "a part of a percentage": ("plan M --cascade 0.5", USAGE, "argument --cascade: '0.5' is no integer from 0 on"),
    # cascades, streams and evictions that there cannot be
    "cascades of training": ("plan TRAINED --cascade 20", ERROR, "cascades are for networks that are not trained"),
    "cascades of open lengths": ("plan OPEN --cascade 20", ERROR, "give their lengths, for example --dim n=1"),
    "a stream of training": ("run TRAINED --stream 4 -o F/y", ERROR, "streams are for networks that are not trained"),
    "a stream without images": ("run M --stream 4 -o F/y.npy", ERROR, "is no image, so it has no rows to stream"),
    "a stream of images with channels in front": (
        "run IMAGE --stream 4 --optimise 2 -o F/y.npy",
        ERROR,
        "cannot be streamed; without --optimise 2, passes put channels last",
    ),
    "a limit of runs that are not measured": (
        "compare M --limit 1MiB",
        USAGE,
        "--limit limits the processes of --measure",
    ),
    "a limit of no size": ("compare M --measure --limit much", USAGE, "argument --limit"),
    "eviction by no heuristic": ("run M --mode dynamic --evict mru --budget 1MiB", USAGE, "invalid choice: 'mru'"),
    "eviction in an arena": ("run M --evict lru --budget 1MiB", USAGE, "evict='lru' is for mode='dynamic'"),
    "eviction without a budget": ("run M --mode dynamic --evict lru", USAGE, "evict='lru' keeps within a budget"),
    "eviction of parameters": (
        "run TRAINED --mode dynamic --evict dtr --budget 1MiB",
        NO_FIT,
        "bytes, 4941992 of them for parameters, which are never evicted",
    ),
    # files that are read
    "a model that is not there": ("plan F/none.onnx", ERROR, "none.onnx: there is no such file"),
    "a folder as a model": ("plan F", ERROR, "is a folder; a model is one file, such as "),
    "an empty model": ("plan EMPTY", ERROR, "empty.onnx is empty"),
    "a model that is none": ("plan JUNK", ERROR, "is no ONNX file"),
    "a model cut short": ("plan CUT", ERROR, "or was cut short after"),
    "buffers as a model": ("plan B", ERROR, "arenaplan solve reads files of buffers"),
    "a model as buffers": ("solve M", USAGE, "is a model, and solve reads files of buffers; arenaplan plan"),
    "a network as buffers": ("solve zoo:resnet50", USAGE, "arenaplan plan zoo:resnet50 plans it"),
    "buffers that are not there": ("solve F/none.csv", ERROR, "none.csv: No such file"),
    "buffers without offsets": ("solve B --validate", ERROR, "offset"),
    "buffers that overlap": ("solve OVERLAP --validate", REFUSED, "overlap"),
    "buffers without a header": ("solve JUNKCSV", ERROR, "junk.csv"),
    "a format that there is not": ("solve B --from xml", USAGE, "invalid choice: 'xml'"),
    "a target that is not there": ("plan M --target F/none.toml", ERROR, "none.toml: No such file"),
    "a folder as a target": ("plan M --target F", ERROR, "Is a directory"),
    "a target that is no TOML": ("plan M --target JUNKCSV", USAGE, "junk.csv: is no TOML"),
    "operators that are not there": ("plan M --ops F/none.py", ERROR, "none.py: No such file"),
    # files that are written
    "an unknown suffix": ("plan M -o F/plan.docx", USAGE, "ends in one of .h, .c, .bin"),
    "no suffix": ("plan M -o F/plan", USAGE, "ends in one of .h, .c, .bin"),
    "a folder that is not there": ("plan M -o F/none/plan.h", ERROR, "none/plan.h: there is no such folder"),
    "a page of another kind": ("view M -o F/page.pdf", USAGE, "ends in .html or .htm"),
    "a trace of another kind": ("trace M -o F/trace.docx", USAGE, ".csv, .json"),
    "outputs of another kind": ("run M -o F/y.csv", USAGE, "outputs go to a .npz file, or to a folder"),
    "a network with a plan in it": ("plan zoo:squeezenet -o F/m.onnx", USAGE, "zoo:squeezenet is no file"),
    "a name in C that is none": ("plan M -o F/plan.h --prefix 1a", ERROR, "'1a'"),
    # networks, shapes, lengths and inputs
    "a network that there is not": ("plan zoo:resnet34", ERROR, "there is no network 'zoo:resnet34'; did you mean"),
    "an option that the network lacks": ("plan zoo:resnet18?btch=2", ERROR, "'btch'; did you mean batch?"),
    "an option without a number": ("plan zoo:resnet18?batch=", ERROR, "batch is an integer"),
    "images that are not square": ("plan zoo:resnet18 --shape x=1,3,32,48", ERROR, "takes square images, such as"),
    "an input that there is not": ("plan M --shape z=4,8", ERROR, "'z', which is no input; the inputs are: x"),
    "a shape of other dimensions": ("plan M --shape x=4", ERROR, "has 2 dimensions; the shape (4,) has 1"),
    "a shape that is no numbers": ("plan M --shape x=4,8.5", USAGE, "write for example x=1,3,224"),
    "a shape without a name": ("plan M --shape 4,8", USAGE, "is no NAME=VALUE"),
    "a length that is missing": ("plan OPEN", ERROR, "give their lengths, for example --dim n=1"),
    "a length of no dimension": ("plan OPEN --dim m=4", ERROR, "no dimension 'm' open; names that are open: n"),
    "a length that is no number": ("plan OPEN --dim n=four", USAGE, "'n=four' has a length that is no integer"),
    "a range without a second end": ("plan OPEN --length-ranges n=4", USAGE, "for example n=1:8"),
    "a range of lengths in several memories": (
        "plan OPEN --length-ranges n=1:8 --memory ram=1MiB,1GB/s",
        USAGE,
        "has one arena; leave out memories= (--memory)",
    ),
    "an array of another shape": ("run M --input x=WIDE", ERROR, "[4, 8]"),
    "an array of another type": ("run M --input x=WHOLE", ERROR, "int64"),
    "an array for no input": ("run M --input z=WIDE", ERROR, "'z'"),
    "an array that is none": ("run M --input x=JUNK", ERROR, "junk.onnx"),
    "a tensor that there is not": (
        "explain M --tensor none",
        USAGE,
        "has no tensor 'none'; `arenaplan trace` lists all",
    ),
    "a heap that there is not": ("trace M --mode dynamic --heap torch", USAGE, "did you mean pytorch?"),
    "a heap where there is an arena": ("trace M --heap pytorch", USAGE, "a static run has one arena"),
    "a run of a plan for a target": ("run M --target none", USAGE, "it cannot run here"),
    "an oracle without a file": ("compare zoo:squeezenet --oracle onnxruntime", USAGE, "reads ONNX files"),
}
"""Command line, exit code and a part of the line, by what is wrong; words in capitals are files of `_files`."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Returns the paths that stand for words in capitals; F is a folder."""
    folder = tmp_path_factory.mktemp("mistakes")
    whole = save_perceptron(folder / "perceptron.onnx").read_bytes()
    contents = {"JUNK": ("junk.onnx", b"\x00junk\xff"), "EMPTY": ("empty.onnx", b""), "CUT": ("cut.onnx", whole[:-40])}
    contents["JUNKCSV"] = "junk.csv", b"one,two\n1,2\n"
    for name, content in contents.values():
        (folder / name).write_bytes(content)
    np.save(folder / "wide.npy", np.ones((4, 9), np.float32))
    np.save(folder / "whole.npy", np.ones((4, 8), np.int64))
    return {
        "F": str(folder),
        "M": str(folder / "perceptron.onnx"),
        "TRAINED": "zoo:squeezenet?image=32&batch=2&optimiser=sgd",
        "IMAGE": convolutions(folder, size=8, batch=1),
        "OPEN": str(save_perceptron(folder / "open.onnx", "n")),
        "B": save(folder, "id,lower,upper,size\na,0,2,10\nb,1,3,20\n"),
        "OVERLAP": save(folder, PLACED.replace(",20\n", ",0\n"), "overlap.csv"),
        "WIDE": str(folder / "wide.npy"),
        "WHOLE": str(folder / "whole.npy"),
        **{key: str(folder / name) for key, (name, _) in contents.items()},
    }


def _words(line: str, files: Mapping[str, str]) -> list[str]:
    """Returns the words of a command line with the paths of files; F begins a path, and x=WIDE ends in one."""
    words = list[str]()
    for word in line.split():
        head, equals, tail = word.rpartition("=")
        first, slash, rest = tail.partition("/")
        words.append(f"{head}{equals}{files.get(first, first)}{slash}{rest}")
    return words


@contextmanager
def _nothing_is_written(folder: Path) -> Iterator[None]:
    before = sorted((path, path.stat().st_size) for path in folder.rglob("*"))
    yield
    assert sorted((path, path.stat().st_size) for path in folder.rglob("*")) == before


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(mistake: str, files: Mapping[str, str], capsys: Capture) -> None:
    line, code, words = MISTAKES[mistake]
    with _nothing_is_written(Path(files["F"])):
        message = error(_words(line, files), code, capsys)
    assert words in message
    assert len(message) < 1000 and "Errno" not in message and "Traceback" not in message


@pytest.mark.parametrize(
    ("line", "proved"),
    [
        ("plan M", "no plan of these calls in this order fits"),
        ("plan IMAGE", "with any cascades "),
        ("plan IMAGE --cascade 30", "with any cascades "),
        ("run IMAGE --cascade 30", "with any cascades "),
    ],
)
def test_a_budget_that_the_model_does_not_fit_is_a_line_above_the_tensors_at_the_peak(
    line: str, proved: str, files: Mapping[str, str], capsys: Capture
) -> None:
    assert main([*_words(line, files), "--budget", "16", "-q"]) == NO_FIT
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert "16 bytes (16 B) are available" in first and proved in first and second.startswith("peak in tick")


def test_a_plan_without_the_cascades_that_were_asked_for_says_why(files: Mapping[str, str], capsys: Capture) -> None:
    for line, why in (
        ("plan M --cascade 30", "none saves bytes for at most 30 % more work"),
        (
            "plan IMAGE --cascade 30 --parallel exact",
            "stripes that run at once would be in memory at once; --parallel edges has cascades",
        ),
    ):
        assert main([*_words(line, files), "-q"]) == 0
        assert capsys.readouterr().out.endswith(f"no cascades: {why}\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read and write all files")
@pytest.mark.parametrize(
    "line", ["plan {0}/secret.onnx", "plan {1} -o {0}/locked/plan.h", "view {1} -o {0}/locked/v.html"]
)
def test_files_without_permission_are_named(
    line: str, files: Mapping[str, str], tmp_path: Path, capsys: Capture
) -> None:
    save_perceptron(tmp_path / "secret.onnx").chmod(0)
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "Permission denied" in error(line.format(tmp_path, files["M"]).split(), ERROR, capsys)


OUTPUTS = (
    "plan M -o {}/plan.h",
    "plan M -o {}/m.onnx",
    "trace M -o {}/t.csv",
    "view M -o {}/v.html",
    "run M -o {}/y.npz",
)


def _limited() -> None:
    """Lets the process write few bytes to each file, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@pytest.mark.parametrize("line", [OUTPUTS[0], *(pytest.param(line, marks=pytest.mark.slow) for line in OUTPUTS[1:])])
def test_a_full_disk_leaves_nothing_half_written(line: str, files: Mapping[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-B", "-c", "import sys; from engine.cli.main import main; sys.exit(main())"]
    words = _words(line.format(tmp_path), files)
    done = subprocess.run(
        [*command, *words, "-q", "--backend", "numpy"],
        preexec_fn=_limited,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=60,
    )
    assert (done.returncode, list(tmp_path.iterdir())) == (ERROR, [])
    assert len(done.stderr.splitlines()) == 1 and "File too large" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_what_is_printed_to_a_full_disk_is_one_line(files: Mapping[str, str]) -> None:
    command = [sys.executable, "-c", "import sys; from engine.cli.main import main; sys.exit(main())", "solve"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, files["B"]], stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT, timeout=60
        )
    assert (done.returncode, done.stderr) == (ERROR, "arenaplan: error: No space left on device\n")
