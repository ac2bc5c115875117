"""What the commits of statements say of their layout, and of how often they ran again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from pyspark.sql import functions as F

from catalog.jvm.json_lines import json_reader
from catalog.jvm.session import metadata_session
from catalog.jvm.vanished_files import read_again
from catalog.table.snapshot import TableSnapshot

STATEMENT_TAG = "use.statement"
"""Tag in the commit info of a statement of a session with USE. The shim writes it (StatementTransaction.scala)."""

_COMMITS = "commitInfo STRUCT<tags: MAP<STRING, STRING>>"
# Commits have 20 digits; checkpoints and merged logs are other files of the same folder.
_COMMIT_FILES = "{{{0:017d},{1:017d}}}???.json"
_OPEN_COST_BYTES = "65536"


@dataclass(frozen=True)
class StatementNotes:
    """What happened to the statements of sessions with USE, as far as the log has their commits.

    Attributes:
        statements: how many were committed.
        repeated: how many of them ran again, because rewrites had taken files that they read.
        plain_files: files that they wrote without a layout, by the code of the reason.
        key_errors: MERGEs that looked at all files because the keys of their source could not be read, by the code of
            the error.
    """

    statements: int = 0
    repeated: int = 0
    plain_files: Mapping[str, int] | None = None
    key_errors: Mapping[str, int] | None = None

    @classmethod
    def of(cls, tags: Iterable[str]) -> StatementNotes:
        """Adds up the tags of commits; a tag that cannot be read counts as a statement.

        Args:
            tags: texts of ``STATEMENT_TAG``.
        """
        statements, repeated, plain_files, key_errors = 0, 0, Counter[str](), Counter[str]()
        for text in tags:
            note = _parsed(text)
            repeats, files, key_error = note.get("repeats"), note.get("plain_files"), note.get("keys_error")
            statements += 1
            repeated += _is_count(repeats) and repeats > 0
            if isinstance(files, dict):
                plain_files.update({str(code): count for code, count in files.items() if _is_count(count)})
            if isinstance(key_error, str):
                key_errors[key_error] += 1
        return cls(statements, repeated, dict(sorted(plain_files.items())), dict(sorted(key_errors.items())))

    @property
    def plain_total(self) -> int:
        """Files that statements wrote without a layout."""
        return sum((self.plain_files or {}).values())

    @property
    def reasons(self) -> str:
        """The codes of the reasons with the number of files; empty without such files."""
        return _counts(self.plain_files)

    @property
    def key_errors_total(self) -> int:
        """MERGEs that looked at all files because of an error."""
        return sum((self.key_errors or {}).values())

    @property
    def key_error_codes(self) -> str:
        """The codes of these errors with the number of MERGEs; empty without such errors."""
        return _counts(self.key_errors)


def statement_notes(snapshot: TableSnapshot) -> StatementNotes:
    """Reads the notes of the newest commits, between 1,000 and 2,000 of them; one Spark job.

    Args:
        snapshot: the newest version.
    """
    session = metadata_session(snapshot.spark, 0)
    session.conf.set("spark.sql.files.openCostInBytes", _OPEN_COST_BYTES)
    thousand = snapshot.version // 1_000
    commits = json_reader(session, _COMMITS).option(
        "pathGlobFilter", _COMMIT_FILES.format(max(thousand - 1, 0), thousand)
    )
    tag = F.col("commitInfo.tags")[STATEMENT_TAG]

    def tags() -> list[str]:
        rows = commits.json(f"{snapshot.location}/_delta_log").select(tag.alias("tag")).where("tag IS NOT NULL")
        found: list[str] = rows.toArrow()["tag"].to_pylist()
        return found

    return StatementNotes.of(read_again(tags))


def _counts(by_code: Mapping[str, int] | None) -> str:
    return ", ".join(f"{code} {count}" for code, count in (by_code or {}).items())


def _is_count(value: object) -> TypeGuard[int]:
    """Whether a value is a number of files or of attempts, however many of them are added up."""
    return isinstance(value, int) and 0 <= value < 2**31


def _parsed(text: str) -> dict[str, Any]:
    try:
        note = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}
