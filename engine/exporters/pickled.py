"""A pickle that is written part by part, so that what is in it need not be in memory at once."""

import pickle
from collections.abc import Iterable
from typing import Any, BinaryIO

from attrs import field, frozen

_PROTOCOL = 2
"""Parts of it can stand side by side: each remembers texts anew, from number 0 on."""
_HEAD, _END = b"\x80\x02", b"."
_MARK, _APPEND, _APPENDS, _EMPTY_LIST, _EMPTY_DICT, _SETITEMS = b"(", b"a", b"e", b"]", b"}", b"u"
"""Operations, as pickletools of Python's library explains them."""
_BATCH = 1000
"""Values that are added to their list at once; readers hold so many on a stack."""


@frozen(eq=False)
class PickledDict:
    """A dict of texts to anything that is made of lists, dicts, tuples, texts and numbers."""

    out: BinaryIO = field()

    def __attrs_post_init__(self) -> None:
        self.out.write(_HEAD + _EMPTY_DICT + _MARK)

    def put(self, key: str, value: Any) -> None:
        """Adds a value."""
        self.out.write(_body(key) + _body(value))

    def put_lists(self, key: str, lists: Iterable[Iterable[Any]]) -> None:
        """Adds a list of lists, whose values are written as they come."""
        self.out.write(_body(key) + _EMPTY_LIST)
        for values in lists:
            self._put_list(values)
            self.out.write(_APPEND)

    def _put_list(self, values: Iterable[Any]) -> None:
        self.out.write(_EMPTY_LIST)
        count = 0
        for count, value in enumerate(values, 1):
            begin, end = count % _BATCH == 1, count % _BATCH == 0
            self.out.write((_MARK if begin else b"") + _body(value) + (_APPENDS if end else b""))
        if count % _BATCH:
            self.out.write(_APPENDS)

    def close(self) -> None:
        """Ends the dict; nothing can be added to it any more."""
        self.out.write(_SETITEMS + _END)


def _body(value: Any) -> bytes:
    return pickle.dumps(value, _PROTOCOL)[len(_HEAD) : -len(_END)]
