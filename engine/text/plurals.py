"""So many things, as people count them."""


def counted(count: int, what: str) -> str:
    """So many of them: "1 tensor", "2 tensors"."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def agreed(count: int, what: str, one: str, more: str) -> str:
    """The same with what they do: "1 tensor waits", "2 tensors wait"."""
    return f"{counted(count, what)} {one if count == 1 else more}"
