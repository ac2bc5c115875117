"""The Delta tables below folders and prefixes of object stores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from catalog.errors import FileSystemError, TableError
from catalog.locations import path_of_file_url
from sql_ext.readers.delta_files import causes_of
from sql_ext.readers.log_segment import LOG

# Names, databases and environments above a table; a deeper folder is data of something else.
_DEEPEST = 8
_THREADS = 16
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def find_tables(path: str, storage_options: Mapping[str, str]) -> list[str]:
    """Returns the table of a path, or the tables below it, in the order of their names.

    Folders whose names begin with ``_`` or ``.`` and folders inside of tables are left out.

    Args:
        path: a folder, or a URL of an object store.
        storage_options: for object stores, as deltalake takes them.

    Raises:
        TableError: there is no table.
        FileSystemError: the folder cannot be listed.
    """
    local = path_of_file_url(path) or path
    found = sorted(_remote_tables(path, storage_options) if _URL.match(local) else _local_tables(local))
    if not found:
        raise TableError.missing(path, f"no folder with a {LOG} in it")
    return found


def _local_tables(path: str) -> Iterator[str]:
    if not Path(path).is_dir():
        return
    todo = [(str(Path(path)), 0)]
    while todo:
        folder, depth = todo.pop()
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries if entry.is_dir()]
        except OSError as error:
            if depth == 0:
                raise FileSystemError.of(path, error.strerror or str(error)) from error
            continue  # A folder that the user may not list has no tables for this user.
        if LOG in names:
            yield folder
        elif depth < _DEEPEST:
            todo += [(str(Path(folder) / name), depth + 1) for name in names if _may_have_tables(name)]


def _remote_tables(path: str, storage_options: Mapping[str, str]) -> Iterator[str]:
    from deltalake.exceptions import DeltaError
    from deltalake.fs import DeltaStorageHandler

    root = path.rstrip("/")
    try:
        files = pafs.PyFileSystem(DeltaStorageHandler(root, dict(storage_options)))
        level = [""]
        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in range(_DEEPEST + 1):
                following: list[str] = []
                for folder, names in zip(level, pool.map(lambda f: _folders_of(files, f), level), strict=True):
                    if LOG in names:
                        yield f"{root}/{folder}".rstrip("/")
                    else:
                        following += [f"{folder}/{name}".strip("/") for name in names if _may_have_tables(name)]
                level = following
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        raise FileSystemError.of(path, causes_of(error)) from error


def _folders_of(files: pafs.FileSystem, folder: str) -> Sequence[str]:
    found = files.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    return [info.base_name for info in found if info.type == pafs.FileType.Directory]


def _may_have_tables(name: str) -> bool:
    return not name.startswith(("_", "."))
