"""The door to oneDNN."""


def objection() -> str:
    """Why the library cannot be used here, in a few words; nothing where it can."""
    return "it is not installed: pip install 'arenaplan[onednn]'"
