"""Functions that compiled code calls are made callable, all of them, also after an interrupt."""

from types import FunctionType
from typing import Any

import pytest

from allocator.machine_code import arrays_code


def _deepest(number: int) -> int:
    return number + 1


def _deep(number: int) -> int:
    return _deepest(number) if number > 3 else _top(number)


def _top(number: int) -> int:
    return _deep(number + 1)


@pytest.mark.parametrize("interrupted", range(3))
def test_functions_are_made_callable_after_an_interrupt(interrupted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[FunctionType] = []

    def jitable(function: FunctionType) -> FunctionType:
        if len(compiled) == interrupted and not was_interrupted:
            was_interrupted.append(True)
            raise KeyboardInterrupt
        compiled.append(function)
        return function

    was_interrupted: list[bool] = []
    top: Any = _top
    monkeypatch.setattr(arrays_code, "jitable", jitable)
    monkeypatch.setattr(arrays_code, "_CALLABLE", set())
    with pytest.raises(KeyboardInterrupt):
        arrays_code._make_callable(top)
    arrays_code._make_callable(top)
    assert sorted(f.__name__ for f in compiled) == ["_deep", "_deepest", "_top"]
