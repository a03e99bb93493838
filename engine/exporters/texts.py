"""Names, which may hold anything, as the texts that formats allow."""

from engine.pictures.wording import printable


def to_unicode(name: str) -> str:
    """Halves of surrogate pairs, which UTF-8 cannot have, as the escapes that Python writes them by."""
    return name.encode("utf-8", "backslashreplace").decode()


def to_line(name: str) -> str:
    """One line that people can read, and no "#", which begins a comment in some formats: the wide one stands for it."""
    return printable(name).replace("#", "\N{FULLWIDTH NUMBER SIGN}")
