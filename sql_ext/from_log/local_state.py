"""The files of ours below a table in a folder of this machine."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from catalog.locations import STATE_FOLDER


@dataclass(frozen=True)
class LocalState:
    """A ``StateFolder`` without Spark.

    Attributes:
        folder: of the table, absolute.
    """

    folder: Path

    @property
    def name(self) -> str:
        """The name of the table as a session has it."""
        return f"spark_catalog.delta.`{str(self.folder).replace('`', '``')}`"

    @property
    def location(self) -> str:
        """The folder of the table as a session has it."""
        return f"file:{self.folder}"

    @property
    def state_folder(self) -> str:
        """See ``StateFolder``."""
        return f"{self.location}/{STATE_FOLDER}"

    def read_state(self, file: str) -> str | None:
        """See ``StateFolder``."""
        path = self.folder / STATE_FOLDER / file
        try:
            # A named pipe without a writer would block.
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError(f"{path} is no regular file")
            return path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def list_state(self, folder: str) -> list[str]:
        """See ``StateFolder``."""
        try:
            return sorted(entry.name for entry in (self.folder / STATE_FOLDER / folder).iterdir() if entry.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []
