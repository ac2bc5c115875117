"""A table that is nothing but a folder: its state files, without Spark."""

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from catalog.table.managed_table import ManagedTable


class FolderHandle:
    """The part of ``TableHandle`` that reads and writes small files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create_text(self, file: str, text: str) -> bool:
        if (self.root / file).exists():
            return False
        self.write_text(file, text)
        return True

    def write_text(self, file: str, text: str) -> None:
        path = self.root / file
        if path.is_dir():
            raise Py4JError(f"{path} is a directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read_text(self, file: str) -> str | None:
        path = self.root / file
        if path.is_dir():
            raise Py4JError(f"{path} is a directory")
        return path.read_bytes().decode("utf-8", "replace") if path.is_file() else None

    def list_names(self, folder: str) -> list[str]:
        path = self.root / folder
        return sorted(f.name for f in path.iterdir() if f.is_file()) if path.is_dir() else []

    def delete(self, file: str) -> None:
        path = self.root / file
        if path.is_dir() and any(path.iterdir()):
            raise Py4JError(f"{path} is not empty")
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def folder_table(root: Path, handle: Any = None) -> ManagedTable:
    """A table at ``root``; only its state files can be used."""
    return ManagedTable(None, "t", str(root), handle or FolderHandle(root))  # type: ignore[arg-type]


class MemoryHandle:
    """The same over a dictionary, for thousands of cases: texts by path, or an error that reading raises."""

    def __init__(self, files: dict[str, str | Exception]) -> None:
        self.files = dict(files)

    def create_text(self, file: str, text: str) -> bool:
        if file in self.files:
            return False
        self.files[file] = text
        return True

    def write_text(self, file: str, text: str) -> None:
        if isinstance(found := self.files.get(file), Exception):
            raise found
        self.files[file] = text

    def read_text(self, file: str) -> str | None:
        if isinstance(found := self.files.get(file), Exception):
            raise found
        return found

    def list_names(self, folder: str) -> list[str]:
        found = [f.removeprefix(f"{folder}/") for f in self.files if f.startswith(f"{folder}/")]
        return sorted(name for name in found if "/" not in name)

    def delete(self, file: str) -> None:
        if isinstance(found := self.files.get(file), Exception):
            raise found
        self.files.pop(file, None)


def memory_table(files: dict[str, str | Exception]) -> ManagedTable:
    """A table whose state files are ``files``, by their paths below ``_use/``."""
    return folder_table(Path("/t"), MemoryHandle({f"_use/{name}": text for name, text in files.items()}))
