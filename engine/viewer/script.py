"""Joins the JavaScript modules of the page into one script, because a page without a server cannot import modules.

A module becomes a function that is called once, after the modules that it imports. The function returns an object with
its exports.
"""

import re
from collections.abc import Iterator, Mapping

MAIN = "main"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def flatten(modules: Mapping[str, str]) -> str:
    """Returns one strict script of ES modules by name, starting with "main". Raises ValueError for unknown syntax."""
    parts = [_function(name, modules[name]) for name in _in_order(modules, MAIN, ())]
    return '(() => {\n"use strict";\n' + "".join(parts) + "})();\n"


def _in_order(modules: Mapping[str, str], name: str, above: tuple[str, ...]) -> Iterator[str]:
    """Yields the modules that a module imports, then the module; each once."""
    done = set[str]()
    for needed in _walk(modules, name, above):
        if needed not in done:
            done.add(needed)
            yield needed


def _walk(modules: Mapping[str, str], name: str, above: tuple[str, ...]) -> Iterator[str]:
    if name in above:
        raise ValueError(f"modules import each other: {' -> '.join((*above, name))}")
    if name not in modules:
        raise ValueError(f"{above[-1]}.js imports {name}.js, which does not exist")
    for _, needed in _IMPORT.findall(modules[name]):
        yield from _walk(modules, needed, (*above, name))
    yield name


def _function(name: str, source: str) -> str:
    exports = [exported for _, exported in _EXPORT.findall(source)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub(lambda match: f"const {{{match[1]}}} = ${match[2]};\n", source))
    if left := _LEFT.search(body):
        raise ValueError(f"{name}.js: {left[0][:80]} is no plain import or export")
    return f"const ${name} = (() => {{\n{body}return {{ {', '.join(exports)} }};\n}})();\n\n"
