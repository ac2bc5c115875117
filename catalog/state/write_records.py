"""Records of rewrites that are writing files: a file below ``_use/writes`` for each, which a killed rewrite leaves.

The names of the files that a rewrite writes contain its id. So a vacuum finds the files of a killed rewrite in the
folders that its record names, and recognizes them without the record.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.state.state_files import Missing, Unreadable, access_problem, parse, read
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)

WRITES_FOLDER = "writes"
# A rewrite of more folders than this is found by a listing of the table only.
MAX_FOLDERS = 10_000
FILE_NAME = "-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-use[0-9]+[^/]*$"
"""Regular expression of the end of a file's path that a rewrite has written."""

# The table's own folder in a record.
_ROOT = "."
_RECORD = re.compile(r"[0-9a-f]{32}\.json", re.ASCII)
_ADVICE = "A vacuum in mode full finds the files of that rewrite."


@dataclass(frozen=True)
class WriteRecord:
    """A rewrite that was writing files.

    Attributes:
        write_id: its id, 32 hexadecimal digits.
        started_at: epoch milliseconds.
        folders: where it writes, relative to the table; '' is the table's root.
    """

    write_id: str
    started_at: int
    folders: tuple[str, ...]

    @property
    def mark(self) -> str:
        """The text that the names of its files contain."""
        return str(uuid.UUID(self.write_id))


def folders_of(paths: Iterable[str]) -> tuple[str, ...]:
    """The folders below the table in which some files are; a rewrite writes to the folders of its inputs.

    Args:
        paths: as in the log. Absolute ones are left out.

    Returns:
        Sorted and decoded; none if there are more than ``MAX_FOLDERS``.
    """
    is_absolute = re.compile("([a-zA-Z][a-zA-Z0-9+.-]*:|/)").match
    folders = {posixpath.dirname(unquote(path)) for path in paths if not is_absolute(path)}
    return tuple(sorted(folders)) if len(folders) <= MAX_FOLDERS else ()


def parse_record(write_id: str, text: str) -> WriteRecord | Unreadable:
    """The record in a file's text, or why there is none; total.

    Args:
        write_id: id of the rewrite.
        text: the text.
    """
    return parse(
        text,
        lambda fields: WriteRecord(
            write_id,
            fields.whole_number("started_at"),
            tuple("" if folder == _ROOT else folder for folder in fields.strings("folders") if _is_below(folder)),
        ),
    )


def _is_below(folder: str) -> bool:
    # With a colon in its first part, Hadoop takes it for a URI of its own. Spark writes no names with NUL.
    first, *_ = parts = folder.split("/")
    return not folder.startswith("/") and ":" not in first and ".." not in parts and "\x00" not in folder


def record_write(table: ManagedTable, record: WriteRecord) -> None:
    """Records a rewrite before it writes the first file. A record that cannot be written is logged."""
    folders = [folder or _ROOT for folder in record.folders]
    text = json.dumps({"started_at": record.started_at, "folders": folders}, separators=(",", ":"))
    try:
        table.create_state(_file(record.write_id), text)
    except (Py4JError, PySparkException, OSError) as error:
        logger.info("Write %s of %s is not recorded: %s", record.write_id, table.name, access_problem(error))


def forget_write(table: ManagedTable, write_id: str) -> None:
    """Removes the record of a rewrite that was committed, or whose files were deleted. Never fails."""
    try:
        table.delete_state(_file(write_id))
    except (Py4JError, PySparkException, OSError) as error:
        logger.info("The record of write %s of %s is left: %s", write_id, table.name, access_problem(error))


def writes_before(table: ManagedTable, time: int) -> Iterator[WriteRecord]:
    """The rewrites that began before a time and have a record; unreadable records are left out.

    Args:
        table: the table.
        time: epoch milliseconds.
    """
    for name in table.list_state(WRITES_FOLDER):
        if _RECORD.fullmatch(name):
            record = _read(table, name.removesuffix(".json"))
            if isinstance(record, WriteRecord) and record.started_at < time:
                yield record


def _read(table: ManagedTable, write_id: str) -> WriteRecord | Missing | Unreadable:
    return read(table, _file(write_id), lambda text: parse_record(write_id, text), _ADVICE)


def _file(write_id: str) -> str:
    return f"{WRITES_FOLDER}/{write_id}.json"
