"""Names and texts use the field's terms: no metaphors, and no variable whose name says nothing."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.helpers.paths import ROOT

METAPHORS = re.compile(
    r"(?<![A-Za-z])(lodgers?|heirs?|survivors?|tales?|crowds?|everybody|wished|tenants?|let[ _]rooms)(?![a-z])", re.I
)
"""Words in prose, and parts of names that are joined by underscores."""
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
VAGUE = frozenset({"found", "made", "known", "given", "told"})
"""Names of variables that say nothing of the value; as English words, and as the value `order="given"`, they stay."""
ANY_VAGUE = re.compile(rf"\b({'|'.join(sorted(VAGUE))})\b")
TEXTS = (".py", ".md", ".js", ".css", ".html", ".toml", ".yml", "Makefile")
FOLDERS = ("ops", "engine", "allocator", "tools", "tests", "docs")
THIS = "tests/test_words.py"


def test_no_file_has_a_metaphor_or_a_vague_name() -> None:
    faults = {path: lines for path in _paths() for lines in [_faults(path)] if lines}
    assert not faults, "\n".join(f"{path}: {', '.join(lines)}" for path, lines in faults.items())


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = 1", ["found"]),
        ("for i, made in pairs: pass", ["made"]),
        ("def f(known, *given): pass", ["known", "given"]),
        ("with open(p) as told: pass", ["told"]),
        ("if (found := f()): pass", ["found"]),
        ("x = [made for made in y]", ["made"]),
        ("class A:\n    known: int", ["known"]),
        ("f(given=1); x.made = found", []),
        ("'found'; order = 'given'", []),
    ],
)
def test_vague_names_are_those_that_a_module_binds(source: str, names: list[str]) -> None:
    assert [name for _, name in vague_names(ast.parse(source))] == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("their scales, details", []),
        ("heirs_of, let_rooms", ["heirs", "let_rooms"]),
        ("class BestTenants", ["Tenants"]),
        ("a tale", ["tale"]),
    ],
)
def test_metaphors_are_whole_words_or_parts_of_names(text: str, words: list[str]) -> None:
    assert [word for _, word in metaphors(text)] == words


def metaphors(text: str) -> Iterator[tuple[int, str]]:
    """Yields the line number and the word of each metaphor."""
    spaced = CAMEL.sub(" ", text)
    for match in METAPHORS.finditer(spaced):
        yield spaced.count("\n", 0, match.start()) + 1, match.group()


def vague_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields the line number and the name of each variable, argument and field that has a vague name."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VAGUE:
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) if (
                name in VAGUE
            ):
                yield node.lineno, name
            case _:
                pass


def _paths() -> tuple[str, ...]:
    """Returns the project's files that have text, relative to its root."""
    files = [*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    names = sorted(path.relative_to(ROOT).as_posix() for path in files if path.is_file())
    return tuple(
        name
        for name in names
        if name.endswith(TEXTS) and name != THIS and not {"build", "node_modules"} & set(name.split("/"))
    )


def _faults(path: str) -> tuple[str, ...]:
    """Returns the lines of a file that break a rule, and where they do; the path itself is line 0."""
    text = (ROOT / path).read_text(encoding="utf-8")
    faults = [(0, word) for _, word in metaphors(path)] + list(metaphors(text))
    if path.endswith(".py") and ANY_VAGUE.search(text):
        faults += vague_names(ast.parse(text))
    return tuple(f"{number} {word}" for number, word in sorted(faults))
