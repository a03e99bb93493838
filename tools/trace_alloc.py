"""Lists every allocation, overwrite and free of a model's run: a door onto `arenaplan trace`."""

import sys
from collections.abc import Sequence

from engine.cli.main import main as arenaplan


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `arenaplan trace` with these arguments: MODEL.onnx [--mode ...] [--format ...] [-o FILE]."""
    return arenaplan(["trace", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    sys.exit(main())
