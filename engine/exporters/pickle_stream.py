"""Writes a pickle part by part, so that its values are never in memory all at once."""

import pickle
from collections.abc import Iterable
from typing import Any, BinaryIO

from attrs import field, frozen

_PROTOCOL = 2
"""The protocol. Pickled values can be joined in it: each one counts the texts that it remembers from 0."""
_HEAD, _END = b"\x80\x02", b"."
_MARK, _APPEND, _APPENDS, _EMPTY_LIST, _EMPTY_DICT, _SETITEMS = b"(", b"a", b"e", b"]", b"}", b"u"
"""Operations; the module pickletools of the standard library explains them."""
_BATCH = 1000
"""Values that are added to their list at once; a reader has that many on its stack."""


@frozen(eq=False)
class PickleStream:
    """A pickled dict from texts to values of lists, dicts, tuples, texts and numbers, written to `out`."""

    out: BinaryIO = field()

    def __attrs_post_init__(self) -> None:
        self.out.write(_HEAD + _EMPTY_DICT + _MARK)

    def put(self, key: str, value: Any) -> None:
        """Adds a value."""
        self.out.write(_body(key) + _body(value))

    def put_lists(self, key: str, lists: Iterable[Iterable[Any]]) -> None:
        """Adds a list of lists; values are written as the iterables yield them."""
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
        """Ends the dict; nothing can be added afterwards."""
        self.out.write(_SETITEMS + _END)


def _body(value: Any) -> bytes:
    return pickle.dumps(value, _PROTOCOL)[len(_HEAD) : -len(_END)]
