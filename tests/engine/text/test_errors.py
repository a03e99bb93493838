"""Errors that users see: one base a package, and the builtin that people expect."""

import builtins
from types import ModuleType

import pytest

import allocator.errors
import engine.text.errors
import ops.tensor.errors
from allocator.errors import AllocatorError
from engine.text.errors import EngineError
from ops.tensor.errors import OpError

BUILTINS = {each for each in vars(builtins).values() if isinstance(each, type) and issubclass(each, Exception)}


@pytest.mark.parametrize(
    ("module", "base"),
    [(engine.text.errors, EngineError), (ops.tensor.errors, OpError), (allocator.errors, AllocatorError)],
)
def test_errors_have_the_base_of_their_package_and_a_builtin(module: ModuleType, base: type[Exception]) -> None:
    own = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    errors = [each for each in own if issubclass(each, Exception) and each is not base]
    assert errors and all(issubclass(each, base) for each in errors)
    assert [each.__name__ for each in errors if not (BUILTINS - {Exception}).intersection(each.__mro__)] == []
