"""What the reference says of an attrs class: its fields, with types and defaults, below its docstring.

Griffe, which reads the classes for MkDocs, knows dataclasses but not attrs; docs/site/mkdocs.yml names this extension.
"""

from typing import Any

import griffe

_BY = {"attrs.frozen", "attrs.define"}
_MADE = ("field(", "Factory(")
"""How defaults begin that are no plain values."""


class AttrsFields(griffe.Extension):
    """Adds a block of code with the fields to the docstring of each attrs class."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Adds the fields of a class to its docstring. Griffe calls this for each class that it has read."""
        fields = [_told(a) for a in cls.attributes.values() if _is_field(a)]
        if cls.docstring is not None and fields and _BY & {d.callable_path for d in cls.decorators}:
            cls.docstring.value += "\n\n```python\n" + "\n".join(fields) + "\n```"


def _is_field(attribute: griffe.Attribute) -> bool:
    hidden = attribute.name.startswith("_") or attribute.docstring is not None
    return attribute.annotation is not None and not hidden and "property" not in attribute.labels


def _told(attribute: griffe.Attribute) -> str:
    value = str(attribute.value or "")
    default = f" = {value}" if value and not value.startswith(_MADE) else ""
    return f"{attribute.name}: {attribute.annotation}{default}"
