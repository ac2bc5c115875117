"""A table that is nothing but a folder: its state files, without Spark."""

import json
from pathlib import Path
from typing import Any

from catalog.tables import ManagedTable


class FolderHandle:
    """The part of the shim's ``FoundTable`` that reads and writes small files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def createText(self, file: str, text: str) -> bool:  # noqa: N802 - the shim's name
        if (self.root / file).exists():
            return False
        self.writeText(file, text)
        return True

    def writeText(self, file: str, text: str) -> None:  # noqa: N802
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def readText(self, file: str) -> str | None:  # noqa: N802
        path = self.root / file
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def listNames(self, folder: str) -> str:  # noqa: N802
        path = self.root / folder
        return json.dumps([f.name for f in path.iterdir() if f.is_file()] if path.is_dir() else [])

    def delete(self, file: str) -> None:
        (self.root / file).unlink(missing_ok=True)


def folder_table(root: Path, handle: Any = None) -> ManagedTable:
    """A table at ``root``; only its state files can be used."""
    return ManagedTable(None, "t", str(root), handle or FolderHandle(root))  # type: ignore[arg-type]
