"""What kernels compute on: numpy int64 columns when compiled, lists of int when not (a list is quicker one by one)."""

from typing import Protocol


class Numbers(Protocol):
    """Integers that are read and written one by one."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, value: int, /) -> None: ...
