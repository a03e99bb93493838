"""Updates of parameters: the next value is written over the one that is there, so nothing may read that one later."""

from engine.calls import Alias, Lowered
from engine.errors import GraphError


def is_update(lowered: Lowered, parameter: int, value: int) -> bool:
    """Whether a value is what a parameter holds after the run, and is computed."""
    return parameter != value and lowered.parameters.get(parameter) == value


def check_updates(lowered: Lowered) -> None:
    """Raises GraphError where a parameter cannot be updated in place, as something reads its old value later on."""
    writers = lowered.writers
    for parameter, value in lowered.parameters.items():
        if parameter != value:
            _check_last(lowered, parameter, writers[value])


def _check_last(lowered: Lowered, parameter: int, tick: int) -> None:
    updater, name = lowered.stages[tick - 1], lowered.values[parameter].name
    later = [s.name for s in lowered.stages[tick:] if not isinstance(s, Alias) and _reads(lowered, s.inputs, parameter)]
    later += [f"output {n!r}" for n, v in lowered.outputs.items() if lowered.values[v].owner == parameter]
    if later:
        raise GraphError(
            f"{updater.name!r} updates parameter {name!r} in place, but {later[0]} reads its old value afterwards; "
            f"let it read a copy that is made before, or assign later"
        )


def _reads(lowered: Lowered, inputs: tuple[int, ...], owner: int) -> bool:
    return any(lowered.values[v].owner == owner for v in inputs)


def anti_dependences(lowered: Lowered) -> list[tuple[int, int]]:
    """(tick of a call that reads a parameter, tick of the call that updates it): the one must be done before."""
    writers, owner = lowered.writers, [v.owner for v in lowered.values]
    updater = {p: writers[v] for p, v in lowered.parameters.items() if p != v}
    pairs = ((call.tick, updater[owner[v]]) for call in lowered.calls for v in call.inputs if owner[v] in updater)
    return [(reader, update) for reader, update in pairs if reader != update]
