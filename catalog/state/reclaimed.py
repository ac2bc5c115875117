"""The oldest version that a reclamation leaves, recorded below ``_use/`` before it deletes any file.

Each record is a file that is created once and whose name says everything. Of two reclamations at the same time, the one
that leaves more versions can therefore not replace the record of the other one, however long it is suspended.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.errors import ProtectionError, VersionError
from catalog.state.protection import confirmed_protections
from catalog.state.state_files import Unreadable, access_problem, parse, read
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)

RECLAIMED_FOLDER = "reclaimed"
# Where earlier versions of USE kept the record.
RECLAIMED_FILE = "reclaimed.json"
_NAME = re.compile(r"(\d{19})-(.+)\.json", re.ASCII)
_PLAIN_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
_MOST_VERSION = 2**63 - 1
# By as much may clocks differ.
_CLOCK_MILLIS = 3_600_000
_ADVICE = "Time travel to versions that were reclaimed fails with an error of Delta. The next purge replaces the file."


@dataclass(frozen=True)
class Reclaimed:
    """The record of a reclamation.

    Attributes:
        table_id: Delta's metadata id; another table may be at the place now.
        oldest: the oldest version left, apart from protected ones.
        at: epoch milliseconds.
    """

    table_id: str
    oldest: int
    at: int


def parse_reclaimed(text: str) -> Reclaimed | Unreadable:
    """Returns the record in a file's text, or why there is none; total."""
    return parse(
        text,
        lambda fields: Reclaimed(
            fields.text("table_id"), fields.whole_number("oldest", most=_MOST_VERSION), fields.whole_number("at")
        ),
    )


def oldest_left(table: ManagedTable, table_id: str) -> int:
    """The oldest version that was not reclaimed, apart from protected ones; 0 if nothing was, or nobody can tell.

    Args:
        table: the table.
        table_id: Delta's metadata id of the newest version.
    """
    return _oldest_left(table, table_id)[0]


def _oldest_left(
    table: ManagedTable, table_id: str, committed: int | None = None
) -> tuple[int, ProtectionError | None]:
    """The oldest version left according to all records that can be read, and the error about one that cannot.

    Args:
        table: the table.
        table_id: Delta's metadata id of the newest version.
        committed: when the version was committed that is asked for. Records of other ids count if they are not older:
            CREATE OR REPLACE gives a table another id, and its versions go on.
    """
    unreadable, found = None, []
    try:
        found = _recorded(table, table_id, None if committed is None else committed - _CLOCK_MILLIS)
    except (Py4JError, PySparkException, OSError) as error:
        unreadable = ProtectionError.uncertain(f"{table.state_folder}/{RECLAIMED_FOLDER}", access_problem(error))
        logger.warning("%s/%s: %s. %s", table.state_folder, RECLAIMED_FOLDER, access_problem(error), _ADVICE)
    former = read(table, RECLAIMED_FILE, parse_reclaimed, _ADVICE)
    if isinstance(former, Unreadable):
        unreadable = ProtectionError.uncertain(f"{table.state_folder}/{RECLAIMED_FILE}", str(former))
    elif isinstance(former, Reclaimed) and former.table_id == table_id:
        found.append(former.oldest)
    return max(found, default=0), unreadable


def _recorded(table: ManagedTable, table_id: str, others_since: int | None = None) -> list[int]:
    """The oldest versions left that reclamations of a table have recorded.

    Args:
        table: the table.
        table_id: Delta's metadata id.
        others_since: a time, epoch milliseconds, from which on records of other ids count, too; None = never.
    """
    found = []
    for name in table.list_state(RECLAIMED_FOLDER):
        named = _NAME.fullmatch(name)
        if named is not None and (named[2] == _key(table_id) or _is_since(table, name, others_since)):
            found.append(int(named[1]))
    return found


def _is_since(table: ManagedTable, name: str, time: int | None) -> bool:
    """Whether a record was made since a time; one that cannot be read counts, since its name says everything else."""
    if time is None:
        return False
    record = read(table, f"{RECLAIMED_FOLDER}/{name}", parse_reclaimed, _ADVICE)
    return isinstance(record, Unreadable) or (isinstance(record, Reclaimed) and record.at >= time)


def _key(table_id: str) -> str:
    """The id of a table in names of files; a digest of ids that other writers have chosen otherwise than Delta."""
    if _PLAIN_ID.fullmatch(table_id):
        return table_id
    return hashlib.sha256(table_id.encode("utf-8", "surrogatepass")).hexdigest()


def _file(table_id: str, oldest: int) -> str:
    return f"{RECLAIMED_FOLDER}/{oldest:019}-{_key(table_id)}.json"


def record_reclaimed(table: ManagedTable, table_id: str, oldest: int, now: int) -> int:
    """Records that versions are going to be reclaimed, before the first file is deleted.

    Args:
        table: the table.
        table_id: Delta's metadata id of the newest version.
        oldest: the oldest version that is left, apart from protected ones.
        now: epoch milliseconds.

    Returns:
        The oldest version left, which never goes down.
    """
    before = oldest_left(table, table_id)
    if oldest > before:
        text = json.dumps({"table_id": table_id, "oldest": oldest, "at": now}, separators=(",", ":"))
        table.create_state(_file(table_id, oldest), text)
        _forget_before(table, table_id, before)
    return max(oldest, before)


def _forget_before(table: ManagedTable, table_id: str, oldest: int) -> None:
    """Deletes the records before one. The last one before the newest stays, for a listing that began before that."""
    try:
        for recorded in _recorded(table, table_id):
            if recorded < oldest:
                table.delete_state(_file(table_id, recorded))
    except (Py4JError, PySparkException, OSError) as error:
        logger.info("Records of earlier reclamations stay in %s (%s)", table.state_folder, access_problem(error))


def check_not_reclaimed(
    table: ManagedTable, version: int | None, *, is_certain: bool = False, committed: int | None = None
) -> None:
    """Refuses a version that was reclaimed.

    Args:
        table: the table.
        version: the version; None for a time before the log begins.
        is_certain: refuses a version also if nobody can tell.
        committed: when the version was committed, epoch milliseconds; without it, records count that were made since
            the table was last replaced.

    Raises:
        VersionError: it was reclaimed.
        ProtectionError: with ``is_certain``, a file cannot be read.
    """
    oldest, unreadable = _oldest_left(table, table.state().facts().table_id, committed)
    if unreadable is not None and is_certain:
        raise unreadable
    if oldest == 0 or (version is not None and version >= oldest):
        return
    try:
        protected = confirmed_protections(table)
    except ProtectionError:
        if is_certain:
            raise
        # Any version may be protected; Delta finds out whether its files are there.
        return
    if version in [protection.version for protection in protected]:
        return
    raise VersionError.reclaimed(table.name, version, oldest, [f"{p.version} ({p.name})" for p in protected])
