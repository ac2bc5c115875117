"""Folders below ``_use/`` with files of one JSON object per line, many of which become one file.

A reader takes one line per key, so that a crash between the steps of a merge, and two processes that merge the same
files, cost space and nothing else.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from catalog.state.state_files import Missing, Unreadable, parse, read

if TYPE_CHECKING:
    from catalog.table.managed_table import ManagedTable

# A merged file of this many characters is not merged again.
FULL_CHARACTERS = 8_000_000
# Parts stay this long after a merge, for readers that listed the folder before it.
GRACE_MILLIS = 10 * 60_000
# The number orders the files of a folder, such as the time of the newest line.
FILE_NAME = re.compile(r"(\d+)-[^/]+\.json")
_FULL = "-full-"
_PARTS = ".parts"
_PARTS_ADVICE = "Its parts are merged once more. Delete the file, unless it is being written just now."

_Line = TypeVar("_Line")


@dataclass(frozen=True)
class MergedParts:
    """The list of the files that a merged file contains.

    Attributes:
        merged_at: epoch milliseconds.
        parts: names of files of the store.
    """

    merged_at: int
    parts: tuple[str, ...]


def parse_parts(text: str, latest: int) -> MergedParts | Unreadable:
    """Parses the list of the parts of a merged file.

    Args:
        text: the text.
        latest: epoch milliseconds; a later list is invalid, since its parts might never be old enough to be deleted.
    """
    return parse(
        text, lambda fields: MergedParts(fields.whole_number("merged_at", most=latest), tuple(fields.texts("parts")))
    )


class MergedLines(NamedTuple):
    """The lines of several files without duplicates: the number of the file that gets them, and their texts."""

    number: int
    lines: Sequence[str]


class _Listing(NamedTuple):
    """The parts of a merged file that exist."""

    merged_at: int
    name: str
    parts: frozenset[str]


@dataclass(frozen=True)
class LineFolder(Generic[_Line]):
    """The files of one folder.

    Attributes:
        table: the table.
        folder: relative to ``_use/``.
        parse: the lines of a file, or why it cannot be read.
        join: merges the lines of several files, the oldest file first.
        advice: the remedy for a file that cannot be read.
        full_characters: a merged file of this many characters is not merged again.
    """

    table: ManagedTable
    folder: str
    parse: Callable[[str], list[_Line] | Unreadable]
    join: Callable[[list[_Line]], MergedLines]
    advice: str
    full_characters: int = FULL_CHARACTERS

    def names(self) -> list[str]:
        """Returns the names of all files of the folder, lists of parts among them."""
        return self.table.list_state(self.folder)

    def read(self, name: str) -> list[_Line] | None:
        """Returns the lines of a file; None if any line cannot be read."""
        lines = read(self.table, f"{self.folder}/{name}", self.parse, self.advice)
        return None if isinstance(lines, (Missing, Unreadable)) else lines

    def unmerged(self, now: int, has: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Returns the names of the files that a merge would take, oldest first.

        Args:
            now: epoch milliseconds.
            has: whether a file is to be merged.
        """
        names = self.names()
        merged = {part for listing in self._listings(names, now) for part in listing.parts}
        return [n for n in names if _is_part(n) and has(n) and n not in merged]

    def current(self, now: int) -> list[str]:
        """Returns the names of all files but those that a merged file contains.

        Args:
            now: epoch milliseconds.
        """
        names = self.names()
        merged = {part for listing in self._listings(names, now) for part in listing.parts}
        return [n for n in names if FILE_NAME.fullmatch(n) and n not in merged]

    def removable(self, now: int) -> int:
        """Returns how many files the next merge deletes because a merged file has contained them for long enough.

        Args:
            now: epoch milliseconds.
        """
        return sum(
            len(listing.parts) + 1
            for listing in self._listings(self.names(), now)
            if now - listing.merged_at >= GRACE_MILLIS
        )

    def merge(self, now: int, most_files: int, has: Callable[[str], bool] = lambda _: True) -> int:
        """Merges files into one if there are more than ``most_files``.

        The parts stay for ``GRACE_MILLIS`` after the merge; a second file lists them until then.

        Args:
            now: epoch milliseconds.
            most_files: so many files are not merged.
            has: whether a file is to be merged.

        Returns:
            The number of files that were merged.
        """
        names = self.names()
        if len(names) <= most_files:
            return 0
        merged_before = self._delete_old_parts(names, now)
        parts = [n for n in names if _is_part(n) and has(n) and n not in merged_before]
        if len(parts) <= most_files:
            return 0
        lines: list[_Line] = []
        readable: list[str] = []
        for name in parts:
            of_file = self.read(name)
            if of_file is None:
                # The file is still being written, or is not a file of the folder.
                continue
            readable.append(name)
            lines += of_file
        if len(readable) < 2:
            return 0
        number, texts = self.join(lines)
        text = "\n".join(texts)
        kind = _FULL if len(text) >= self.full_characters else "-merged-"
        name = f"{number}{kind}{len(texts)}-{uuid.uuid4().hex}"
        self.table.write_state(f"{self.folder}/{name}.json", text)
        self.table.write_state(f"{self.folder}/{name}{_PARTS}", json.dumps({"merged_at": now, "parts": readable}))
        return len(readable)

    def delete(self, names: Sequence[str], now: int) -> int:
        """Deletes files with the parts that they contain, which would be merged once more without them.

        Args:
            names: of the files.
            now: epoch milliseconds.

        Returns:
            The number of files that were deleted.
        """
        if not names:
            return 0
        listings = {listing.name: listing.parts for listing in self._listings(self.names(), now)}
        deleted, left = dict[str, None](), list(names)
        for name in left:
            if name in deleted:
                continue  # two processes have merged it
            listing = name.removesuffix(".json") + _PARTS
            left += listings.get(listing, ())
            deleted |= dict.fromkeys([name, *([listing] if listing in listings else ())])
        # The parts first: if the process ends before it has deleted all, the file still contains those that are left.
        for name in reversed(deleted):
            self.table.delete_state(f"{self.folder}/{name}")
        return len(deleted)

    def _listings(self, names: list[str], now: int) -> list[_Listing]:
        # The clocks of hosts differ slightly.
        parsed = partial(parse_parts, latest=now + GRACE_MILLIS)
        listings = []
        for name in names:
            if name.endswith(_PARTS):
                listing = read(self.table, f"{self.folder}/{name}", parsed, _PARTS_ADVICE)
                if isinstance(listing, MergedParts):
                    parts = frozenset(part for part in listing.parts if FILE_NAME.fullmatch(part)).intersection(names)
                    listings.append(_Listing(listing.merged_at, name, parts))
        return listings

    def _delete_old_parts(self, names: list[str], now: int) -> set[str]:
        """Deletes the parts of earlier merges after the grace period; returns the names of all merged parts."""
        merged: set[str] = set()
        # Oldest first: a merged file may be a part of a later one.
        for merged_at, name, parts in sorted(self._listings(names, now), key=lambda listing: listing.merged_at):
            if now - merged_at >= GRACE_MILLIS:
                if parts and self.read(name.removesuffix(_PARTS) + ".json") is None:
                    # The merged file was damaged in the meantime: its parts stay and are merged again.
                    continue
                for part in parts:
                    self.table.delete_state(f"{self.folder}/{part}")
                self.table.delete_state(f"{self.folder}/{name}")
            merged.update(parts)
        return merged


def _is_part(name: str) -> bool:
    """Whether a merge may take the file."""
    return FILE_NAME.fullmatch(name) is not None and _FULL not in name
