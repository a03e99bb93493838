"""What kernels compute on: int64 columns of numpy when compiled, else lists of int, which have Python's numbers."""

from typing import Protocol


class Numbers(Protocol):
    """Integers that are read and written one by one."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, value: int, /) -> None: ...
