"""Names, which may hold anything, as the texts that formats allow."""


def to_unicode(name: str) -> str:
    """Halves of surrogate pairs, which UTF-8 cannot have, as the escapes that Python writes them by."""
    return name.encode("utf-8", "backslashreplace").decode()
