"""A part of a long list of cases, so that several calls run all of it."""

from __future__ import annotations

import zlib


class Shard:
    """The cases of one part of several.

    Args:
        text: such as ``1/4``.

    Raises:
        SystemExit: the text names no part.
    """

    def __init__(self, text: str) -> None:
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise SystemExit(f"SHARD = {text}: a part such as 1/4 is expected")
        self.number, self.of = int(number), int(of)

    def has(self, name: str) -> bool:
        """Whether a case of this name belongs to it."""
        return zlib.crc32(name.encode()) % self.of == self.number - 1
