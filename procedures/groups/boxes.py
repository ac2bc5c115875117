"""Boxes around the values of files: what the choice of files that are rewritten together needs to know of them."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.files.file_table import FileTable, Floats, Integers


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes with the bytes of the files in them. One entry per box.

    Attributes:
        size: bytes.
        low: lower corners, shape (boxes, dimensions), NaN where they are not known. Without dimensions, only sizes are
            known.
        high: upper corners; boxes are closed.
    """

    size: Integers
    low: Floats
    high: Floats

    @classmethod
    def of(cls, files: FileTable, positions: Integers) -> Boxes:
        """The boxes of some files.

        Args:
            files: the files, with the ranges of some columns.
            positions: of the files wanted.
        """
        return cls(files.size[positions], files.low[positions], files.high[positions])

    def __len__(self) -> int:
        """The number of boxes."""
        return len(self.size)
