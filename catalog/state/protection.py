"""Protected versions: a file below ``_use/protected`` for each, which keeps the files of the version from deletion.

An unreadable file may protect any version, so that nothing may be deleted until it is gone; see decision 066.

A protection that is being made stops deletions at once. A second file, below ``_use/confirmed``, confirms it after its
version was found whole: until then, nobody may conclude from it that the files of the version were kept.
"""

from __future__ import annotations

import json
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.epoch_millis import moment
from catalog.errors import InvalidArgumentError, ProtectionError, UnknownNameError, WriteDeniedError
from catalog.state.lease import this_process
from catalog.state.state_files import NOT_ACCESSIBLE, Missing, Unreadable, access_problem, parse, read
from catalog.table.managed_table import ManagedTable

PROTECTED_FOLDER = "protected"
CONFIRMED_FOLDER = "confirmed"
ACCEPTED_NAMES = "1 to 100 letters, digits, '.', '_' and '-', beginning with a letter or digit"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SUFFIX = ".json"
_MOST_VERSION = 2**63 - 1
_ADVICE = "No file of the table is deleted until CALL use.unprotect has removed it."


@dataclass(frozen=True)
class Protection:
    """A protected version.

    Attributes:
        name: of the protection.
        version: the version.
        since: epoch milliseconds.
        by: host and process that requested it.
        id: name of the file that confirms it; None for one of an earlier version of USE, which counts as confirmed.
    """

    name: str
    version: int
    since: int
    by: str
    id: str | None = None

    @property
    def text(self) -> str:
        """The same for people."""
        since = moment(self.since)
        when = f" since {since.isoformat(timespec='seconds')}" if since else ""
        return f"version {self.version}, protected as '{self.name}' by {self.by}{when}"


def check_name(name: str) -> None:
    """Refuses a text that is not a valid name of a protection.

    Raises:
        InvalidArgumentError: it is none.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidArgumentError.of("name", name, ACCEPTED_NAMES)


def parse_protection(name: str, text: str) -> Protection | Unreadable:
    """The protection in a file's text, or why there is none; total.

    Args:
        name: of the protection.
        text: the text.
    """
    return parse(
        text,
        lambda fields: Protection(
            name,
            fields.whole_number("version", most=_MOST_VERSION),
            fields.whole_number("since"),
            fields.text("by"),
            fields.text_or_none("id"),
        ),
    )


def protections(table: ManagedTable) -> tuple[Protection, ...]:
    """The protections of a table, sorted by version and name.

    Raises:
        ProtectionError: one of them cannot be read.
    """
    try:
        files = table.list_state(PROTECTED_FOLDER)
    except (Py4JError, PySparkException, OSError) as error:
        raise ProtectionError.unreadable(f"{table.state_folder}/{PROTECTED_FOLDER}", access_problem(error)) from error
    readable = []
    for file in files:
        protection = _protection(table, file)
        if isinstance(protection, Unreadable):
            raise ProtectionError.unreadable(f"{table.state_folder}/{PROTECTED_FOLDER}/{file}", str(protection))
        if protection is not None:
            readable.append(protection)
    return tuple(sorted(readable, key=lambda p: (p.version, p.name)))


def confirmed_protections(table: ManagedTable) -> tuple[Protection, ...]:
    """The protections of which it is certain that deletions have kept the files of their versions.

    Raises:
        ProtectionError: one of them cannot be read.
    """
    found = protections(table)
    try:
        confirmed = table.list_state(CONFIRMED_FOLDER) if found else []
    except (Py4JError, PySparkException, OSError) as error:
        raise ProtectionError.unreadable(f"{table.state_folder}/{CONFIRMED_FOLDER}", access_problem(error)) from error
    return tuple(
        protection for protection in found if protection.id is None or f"{protection.id}{_SUFFIX}" in confirmed
    )


def _protection(table: ManagedTable, file: str) -> Protection | Unreadable | None:
    name = file.removesuffix(_SUFFIX)
    if _NAME.fullmatch(name) is None or not file.endswith(_SUFFIX):
        return Unreadable(NOT_ACCESSIBLE, "it has no name of a protection")
    protection = read(table, f"{PROTECTED_FOLDER}/{file}", lambda text: parse_protection(name, text), _ADVICE)
    # It was removed since the folder was listed.
    return None if isinstance(protection, Missing) else protection


def protect(table: ManagedTable, name: str, version: int, now: int) -> Protection:
    """Protects a version; later deletions keep the files that the version needs. It is not confirmed yet.

    Args:
        table: the table.
        name: of the protection.
        version: the version.
        now: epoch milliseconds.

    Raises:
        ProtectionError: the name is used already.
        WriteDeniedError: the file cannot be written.
    """
    made = Protection(name, version, now, this_process(), uuid.uuid4().hex)
    text = json.dumps({"version": version, "since": now, "by": made.by, "id": made.id})
    try:
        written = table.create_state(_file(name), text)
    except (Py4JError, PySparkException, OSError) as error:
        if _is_stored(table, name, text):
            # Only the answer was lost.
            return made
        raise _not_protected(table, _file(name), error) from error
    if not written:
        there = _protection(table, name + _SUFFIX)
        raise ProtectionError.exists(name, there.text if isinstance(there, Protection) else "its file cannot be read")
    return made


def confirm(table: ManagedTable, protection: Protection) -> None:
    """Confirms a protection, whose version was found whole.

    Raises:
        WriteDeniedError: the file cannot be written.
    """
    file = f"{CONFIRMED_FOLDER}/{protection.id}{_SUFFIX}"
    try:
        table.create_state(file, json.dumps({"name": protection.name}))
    except (Py4JError, PySparkException, OSError) as error:
        raise _not_protected(table, file, error) from error


def _not_protected(table: ManagedTable, file: str, error: Exception) -> WriteDeniedError:
    return WriteDeniedError(
        f"{table.state_folder}/{file} cannot be written ({access_problem(error)}). The version is not protected: check "
        "the rights and the free space there."
    )


def _is_stored(table: ManagedTable, name: str, text: str) -> bool:
    """Whether a write that failed has stored its text all the same; a part of it, which stops deletions, is deleted."""
    try:
        stored = table.read_state(_file(name))
        if stored is not None and stored != text and text.startswith(stored):
            table.delete_state(_file(name))
        return stored == text
    except (Py4JError, PySparkException, OSError):
        return False


def unprotect(table: ManagedTable, name: str) -> Protection | None:
    """Ends a protection.

    Args:
        table: the table.
        name: of the protection; its file may be unreadable.

    Returns:
        The protection; None if its file could not be read.

    Raises:
        UnknownNameError: there is no protection of this name.
        WriteDeniedError: the file cannot be deleted.
    """
    files = table.list_state(PROTECTED_FOLDER)
    if name + _SUFFIX not in files:
        raise UnknownNameError.of("protection", name, [file.removesuffix(_SUFFIX) for file in files])
    there = _protection(table, name + _SUFFIX)
    problem = "the file system keeps it"
    try:
        table.delete_state(_file(name))
    except (Py4JError, PySparkException, OSError) as error:
        problem = access_problem(error)
    is_kept = name + _SUFFIX in table.list_state(PROTECTED_FOLDER)
    # Otherwise another process has used the name again.
    if is_kept and _protection(table, name + _SUFFIX) == there:
        path = f"{table.state_folder}/{_file(name)}"
        raise WriteDeniedError(f"{path} cannot be deleted ({problem}). The version stays protected: check the rights.")
    if not isinstance(there, Protection):
        return None
    if there.id is not None and _ID.fullmatch(there.id):
        # A confirmation that stays confirms nothing any more.
        with suppress(Py4JError, PySparkException, OSError):
            table.delete_state(f"{CONFIRMED_FOLDER}/{there.id}{_SUFFIX}")
    return there


def _file(name: str) -> str:
    return f"{PROTECTED_FOLDER}/{name}{_SUFFIX}"
