"""A table that is nothing but a folder: its state files, without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
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

    def location(self) -> str:
        return "/t"

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


class RecordingHandle(MemoryHandle):
    """Keeps the paths that are asked for, whatever is done with them.

    Args:
        files: texts by path.
        below: parts of the folder in which all paths have to be.
    """

    def __init__(self, files: Mapping[str, str | Exception], below: Sequence[str] = ("_use",)) -> None:
        super().__init__(dict(files))
        self.below = tuple(below)
        self.asked: set[str] = set()

    def create_text(self, file: str, text: str) -> bool:
        self.asked.add(file)
        return super().create_text(file, text)

    def write_text(self, file: str, text: str) -> None:
        self.asked.add(file)
        super().write_text(file, text)

    def read_text(self, file: str) -> str | None:
        self.asked.add(file)
        return super().read_text(file)

    def list_names(self, folder: str) -> list[str]:
        self.asked.add(folder)
        return super().list_names(folder)

    def list_names_containing(self, folder: str, texts: Sequence[str]) -> list[str]:
        # Relative to the table, not to the folder of the state.
        self.asked.add("/".join((*self.below, folder)) if is_below(folder) else folder)
        return [name for name in super().list_names(folder) if any(text in name for text in texts)]

    def delete(self, file: str) -> None:
        self.asked.add(file)
        super().delete(file)

    @property
    def outside(self) -> set[str]:
        """The paths that are not in the folder, or that have steps upwards."""
        return {
            file
            for file in self.asked
            if not is_below(file) or PurePosixPath(file).parts[: len(self.below)] != self.below
        }


def is_below(path: str) -> bool:
    """Whether Hadoop takes a path for one below its parent: it is relative, has no scheme and no steps upwards."""
    first = path.partition("/")[0]
    return not path.startswith("/") and ":" not in first and ".." not in path.split("/") and "\x00" not in path


def memory_table(files: dict[str, str | Exception]) -> ManagedTable:
    """A table whose state files are ``files``, by their paths below ``_use/``."""
    return folder_table(Path("/t"), MemoryHandle({f"_use/{name}": text for name, text in files.items()}))
