"""Updates of parameters: the next value overwrites the old one, so that nothing may read the old value later."""

from engine.lower.calls import Lowered
from engine.text.errors import GraphError


def is_update(lowered: Lowered, parameter: int, value: int) -> bool:
    """Returns whether a value is computed and is what the parameter holds after the run."""
    return parameter != value and lowered.parameters.get(parameter) == value


def check_updates(lowered: Lowered) -> None:
    """Raises GraphError where a parameter cannot be updated in place, as something reads its old value later on."""
    updated = {p: v for p, v in lowered.parameters.items() if p != v}
    if not updated:
        return
    writers, last = lowered.writers, _last_readers(lowered)
    for parameter, value in updated.items():
        tick, reader = last[parameter]
        if tick > writers[value]:
            updater, name = lowered.tick_name(writers[value]), lowered.values[parameter].name
            raise GraphError(
                f"{updater!r} updates parameter {name!r} in place, but {reader} reads its old value afterwards; "
                "let it read a copy that is made before, or assign later"
            )


def _last_readers(lowered: Lowered) -> dict[int, tuple[int, str]]:
    """Returns, for each value that owns bytes, the tick in which it or a view of it is read last, and the reader."""
    owner, last = [v.owner for v in lowered.values], dict[int, tuple[int, str]]()
    for call in lowered.calls:
        last.update((owner[v], (call.tick, call.name)) for v in call.inputs)
    fetch = len(lowered.instructions) + 1
    last.update((owner[v], (fetch, f"output {name!r}")) for name, v in lowered.outputs.items())
    return last


def anti_dependences(lowered: Lowered) -> list[tuple[int, int]]:
    """Returns pairs (tick of a call that reads a parameter, tick of the call that updates it).

    The first runs before.
    """
    writers, owner = lowered.writers, [v.owner for v in lowered.values]
    updater = {p: writers[v] for p, v in lowered.parameters.items() if p != v}
    pairs = ((call.tick, updater[owner[v]]) for call in lowered.calls for v in call.inputs if owner[v] in updater)
    return [(reader, update) for reader, update in pairs if reader != update]
