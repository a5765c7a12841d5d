"""The events of a trace's text one by one, so that a big file is never a list of dictionaries."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Generator, Iterator
from typing import Any

__all__ = ["IrregularTextError", "Scan"]

BOM = "\ufeff"
WHITESPACE = re.compile(r"[ \t\n\r]*")
BETWEEN = re.compile(r"[ \t\n\r,]*")
LIST = re.compile(r'"traceEvents"[ \t\n\r]*:[ \t\n\r]*\[')


class IrregularTextError(ValueError):
    """The text is no strict JSON, or no trace."""


class Scan:
    """One walk over a text.

    Attributes:
        top: the top-level keys other than the list; complete once the walk has ended.
        is_object: whether the list is a member of an object.
        damage: where and why a lenient walk ended early; empty if it did not.
    """

    def __init__(self, text: str, *, lenient: bool = False) -> None:
        """Nothing is read yet.

        Args:
            text: the file's.
            lenient: take what a viewer could take: a byte-order mark, NaN, raw control characters,
                commas too many, and a text that breaks off anywhere. Else all that is an error.
        """
        self._text = text
        self._lenient = lenient
        self._decode = json.JSONDecoder(
            strict=not lenient, parse_constant=self._constant
        ).raw_decode
        self.top: dict[str, Any] = {}
        self.is_object = False
        self.damage = ""

    def events(self) -> Iterator[Any]:
        """The members of the list of events, in order.

        Raises:
            IrregularTextError: the text is no strict JSON or no trace, if the walk is not lenient.
        """
        try:
            yield from self._walk()
        except (ValueError, RecursionError) as error:
            if not self._lenient:
                raise IrregularTextError(str(error)) from error
            self.damage = str(error)
        finally:
            self._text = ""  # of a long trace a good part of the memory

    def _walk(self) -> Iterator[Any]:
        at = self._skip(1 if self._lenient and self._text.startswith(BOM) else 0)
        if at == len(self._text):
            raise ValueError("it is empty")
        if self._text.startswith("[", at):
            at = yield from self._list(at + 1)
        elif self._text.startswith("{", at):
            self.is_object = True
            at = yield from self._object(at + 1)
        else:
            raise ValueError(f"neither a list nor an object begins at character {at}")
        at = self._skip(at)
        if at != len(self._text):
            raise ValueError(f"there is text after the end, at character {at}")

    def _object(self, at: int) -> Generator[Any, None, int]:
        found = False
        try:
            at = self._skip(at)
            while not self._text.startswith("}", at):
                key, at = self._key(at, found=found)
                if key == "traceEvents":
                    found = True
                    at = yield from self._list(self._past("[", at))
                else:
                    self.top[key], at = self._decode(self._text, at)
                at = self._separator("}", at)
        except ValueError as error:
            # A file torn in what stands before the list has no event; behind it there may be some.
            start = None if found or not self._lenient else LIST.search(self._text, at)
            if start is None:
                raise
            found = True
            self.damage = str(error)
            yield from self._list(start.end())
            return len(self._text)
        if not found:
            raise ValueError("it has no list 'traceEvents'")
        return at + 1

    def _key(self, at: int, *, found: bool) -> tuple[str, int]:
        key, at = self._decode(self._text, at)
        if not isinstance(key, str) or key in self.top or (found and key == "traceEvents"):
            raise ValueError(f"unexpected key {key!r:.40} before character {at}")
        return key, self._past(":", self._skip(at))

    def _list(self, at: int) -> Generator[Any, None, int]:
        at = self._skip(at)
        while not self._text.startswith("]", at):
            event, at = self._decode(self._text, at)
            yield event
            at = self._separator("]", at)
        return at + 1

    def _separator(self, end: str, at: int) -> int:
        """Past the comma that must follow unless the end does."""
        at = self._skip(at)
        if self._text.startswith(end, at):
            return at
        at = self._past(",", at)
        if self._lenient:
            matched = BETWEEN.match(self._text, at)
            return matched.end() if matched else at
        if self._text.startswith(end, at):
            raise ValueError(f"a comma before the end, at character {at}")
        return at

    def _past(self, sign: str, at: int) -> int:
        if not self._text.startswith(sign, at):
            what = "the text breaks off" if at >= len(self._text) else f"no {sign!r}"
            raise ValueError(f"{what} at character {at}")
        return self._skip(at + 1)

    def _skip(self, at: int) -> int:
        matched = WHITESPACE.match(self._text, at)
        return matched.end() if matched else at

    def _constant(self, word: str) -> float:
        if not self._lenient:
            raise ValueError(f"{word} is no JSON number")
        return math.nan
