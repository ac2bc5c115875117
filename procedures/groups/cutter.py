"""Cuts a list of files, in its order, into pieces below a limit of bytes and of files; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from catalog.files.file_table import Integers

# A group is collected by the driver: its number of files is bounded like its bytes are.
MAX_FILES_PER_GROUP = 10_000


@dataclass(frozen=True)
class Limits:
    """How large a piece may be.

    Attributes:
        bytes: of its files; None = any number.
        files: how many.
    """

    bytes: int | None
    files: int = MAX_FILES_PER_GROUP

    def allow(self, size: Integers) -> bool:
        """Whether files may be one piece.

        Args:
            size: their bytes.
        """
        return len(size) < 2 or (len(size) <= self.files and (self.bytes is None or int(size.sum()) <= self.bytes))


def pieces(
    size: Integers, limits: Limits, *, crossing: bool = False, files: Integers | None = None
) -> Iterator[tuple[int, int]]:
    """Cuts a list into as few pieces as its order and the limits allow.

    Args:
        size: bytes of each entry of the list.
        limits: of a piece. An entry that alone exceeds them is a piece of its own.
        crossing: whether a piece ends with the entry with which it reaches the limit of bytes, and not before the
            entry with which it would exceed it.
        files: how many files each entry stands for; one file when left out.

    Yields:
        [first, end) of each piece.
    """
    total = np.cumsum(size)
    counts = np.arange(1, len(size) + 1) if files is None else np.cumsum(files)
    first = 0
    while first < len(size):
        before, counted = (int(total[first - 1]), int(counts[first - 1])) if first else (0, 0)
        end = int(np.searchsorted(counts, counted + limits.files, side="right"))
        if limits.bytes is not None and crossing:
            end = min(end, int(np.searchsorted(total, before + limits.bytes, side="left")) + 1)
        elif limits.bytes is not None:
            end = min(end, int(np.searchsorted(total, before + limits.bytes, side="right")))
        end = max(end, first + 1)
        yield first, end
        first = end


def first_piece(size: Integers, most_bytes: int) -> int:
    """How many entries to take until their bytes reach a limit, the crossing entry included.

    Args:
        size: bytes of each entry.
        most_bytes: the limit.
    """
    return next((end for _, end in pieces(size, Limits(most_bytes), crossing=True)), 0)
