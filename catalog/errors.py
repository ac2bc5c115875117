"""The one error tree: each refusal has a code, an SQLSTATE and a text that names the value and what is accepted."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

# Clients show one line: a name or a predicate may have been given with line ends or other control characters in it.
_LINE_ENDS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


def first_line(error: BaseException) -> str:
    """The first line of an error's text, which is what people can read of an error of Spark's."""
    return next(iter(str(error).strip().splitlines()), "")


def _shown(value: object) -> str:
    """A value as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


class UseError(Exception):
    """Root of all errors of ours.

    In SQL the same error is an ``AnalysisException`` with the same code as its condition.

    Args:
        message: one sentence or two: what was given, what is accepted.
        code: stable condition name, ``USE_…``.
        sql_state: five-character SQLSTATE.
    """

    code = "USE_INTERNAL"
    sql_state = "XX000"

    def __init__(self, message: str, *, code: str | None = None, sql_state: str | None = None) -> None:
        message = _LINE_ENDS.sub(" ", message).strip()
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.sql_state = sql_state or type(self).sql_state

    def __str__(self) -> str:
        return f"[{self.code}] {self.message} SQLSTATE: {self.sql_state}"


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name that is most like a name, in any case; None when none is like it.

    Args:
        name: what was given.
        known: names that exist.
        cutoff: how alike they have to be, from 0 to 1 for the same.
    """
    by_lower = {n.lower(): n for n in sorted(known)}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else None


class InvalidArgumentError(UseError):
    """A parameter, option or property has a value that is not accepted."""

    code = "USE_INVALID_ARGUMENT"
    sql_state = "22023"

    @classmethod
    def of(cls, name: str, value: object, accepted: str) -> InvalidArgumentError:
        """Names the parameter, the value and what is accepted."""
        return cls(f"{name} = {_shown(value)} is not accepted: {accepted}.")

    @classmethod
    def missing(cls, name: str, accepted: str) -> InvalidArgumentError:
        """Names the parameter that was left out, and what is accepted."""
        return cls(f"{name} is missing: {accepted}.")


class TooComplexError(UseError):
    """A text is longer, or nested more deeply, than a parser can take; the text names the limit."""

    code = "USE_TOO_COMPLEX"
    sql_state = "54001"

    @classmethod
    def of(cls, name: str, limit: str) -> TooComplexError:
        """Names the parameter or property and what it must stay within."""
        return cls(f"{name} is too complex: it must have {limit}.")


class UnknownNameError(UseError):
    """A strategy, option, procedure, column or revision that does not exist; the text gives the nearest match."""

    code = "USE_UNKNOWN_NAME"
    sql_state = "42704"

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
        """Names what is unknown, the nearest known name and all known ones."""
        names = sorted(known)
        near = nearest_name(name, names)
        hint = f" Did you mean {near}?" if near else ""
        codes = {"column": ("USE_UNKNOWN_COLUMN", "42703"), "procedure": ("USE_UNKNOWN_PROCEDURE", "42883")}
        code, state = codes.get(kind, (f"USE_UNKNOWN_{kind.upper().replace(' ', '_')}", "42704"))
        listed = ", ".join(names) if names else "none"
        return cls(f"There is no {kind} '{name}'.{hint} Known: {listed}.", code=code, sql_state=state)


class TableError(UseError):
    """The table is missing, or not one that can be worked on."""

    code = "USE_TABLE_NOT_FOUND"
    sql_state = "42P01"

    @property
    def is_missing(self) -> bool:
        """Whether there is no such table, or no longer; of any other one something is wrong."""
        return self.code == TableError.code

    @classmethod
    def missing(cls, name: str, detail: str) -> TableError:
        """No table of this name."""
        return cls(f"table = '{name}' was not found{f' ({detail})' if detail else ''}: give a table name or a path.")

    @classmethod
    def gone(cls) -> TableError:
        """A table that was found a moment ago, or that only the metastore still has."""
        return cls("The table has no Delta log any more: it was dropped, or its folder was moved.")

    @classmethod
    def invalid_name(cls, name: str, detail: str) -> TableError:
        """The name cannot be parsed."""
        text = (
            f"table = '{name}' is not a table name: {detail.strip().rstrip('.')}. Write db.table, with parts like "
            "`a b` in backquotes, or an absolute path."
        )
        return cls(text, code="USE_INVALID_TABLE_NAME", sql_state="42602")

    @classmethod
    def version(cls, name: str, table: str) -> TableError:
        """A version of a table, as paths for time travel name it."""
        text = (
            f"table = '{name}' names a version of the Delta table {table}: only the table itself is accepted; "
            "leave the version out."
        )
        return cls(text, code="USE_TIME_TRAVEL", sql_state="0A000")

    @classmethod
    def inside(cls, name: str, table: str) -> TableError:
        """A path below the root of a table, such as the folder of a partition."""
        text = (
            f"table = '{name}' is a path inside the Delta table {table}: only the whole table is accepted; "
            "use.optimize takes some of its files with where."
        )
        return cls(text, code="USE_NOT_A_TABLE", sql_state="42809")

    @classmethod
    def unreadable(cls, name: str, detail: str) -> TableError:
        """A Delta table whose log cannot be read."""
        text = (
            f"table = '{name}' cannot be read: {detail.rstrip('.')}. Check the files of its _delta_log, and that this "
            "version of Delta reads them."
        )
        return cls(text, code="USE_TABLE_UNREADABLE", sql_state="XX001")

    @classmethod
    def view(cls, name: str) -> TableError:
        """A view instead of a table."""
        text = f"table = '{name}' is a view: give the Delta table behind it."
        return cls(text, code="USE_NOT_A_TABLE", sql_state="42809")

    @classmethod
    def virtual(cls, name: str, table: str) -> TableError:
        """A virtual table, or the view of a table that ``use_catalog`` gives."""
        hint = f"give the table itself, {table}" if table else "give a Delta table"
        text = f"table = '{name}' is a virtual table, which has no files: {hint}."
        return cls(text, code="USE_NOT_A_DELTA_TABLE", sql_state="42809")

    @classmethod
    def named_as(cls, name: str, path: str) -> TableError:
        """A Delta table by its path, but as files of another format."""
        text = f"table = '{name}' names the files of a Delta table: give the table itself, delta.`{path}`."
        return cls(text, code="USE_NOT_A_DELTA_TABLE", sql_state="42809")

    @classmethod
    def not_delta(cls, name: str, provider: str) -> TableError:
        """A table of another format."""
        text = f"table = '{name}' is not a Delta table ({provider}): only Delta tables are accepted."
        return cls(text, code="USE_NOT_A_DELTA_TABLE", sql_state="42809")


class IndexConfigurationError(UseError):
    """The table's index properties are missing or do not fit its schema."""

    code = "USE_NO_INDEX_COLUMNS"
    sql_state = "55000"

    @classmethod
    def no_columns(cls, name: str, strategy: str, mistakes: Iterable[UseError] = ()) -> IndexConfigurationError:
        """The strategy needs index columns and the table declares none; ``mistakes`` are in its properties."""
        text = (
            f"table = '{name}' has no index columns, which {strategy} needs: "
            f"ALTER TABLE {name} SET TBLPROPERTIES ('use.index.columns' = 'a,b')."
        )
        return cls(" ".join([text, *(mistake.message for mistake in mistakes)]))

    @classmethod
    def not_indexed(cls, name: str) -> IndexConfigurationError:
        """There is nothing of an index that could be removed or checked."""
        text = f"table = '{name}' has no index: neither its properties nor its files say anything of one."
        return cls(text, code="USE_NOT_INDEXED")

    @classmethod
    def dropped(cls, columns: Iterable[str]) -> IndexConfigurationError:
        """A statement that drops columns which the table is indexed by."""
        text = (
            f"The table is indexed by {', '.join(columns)}, which cannot be dropped: name other columns in "
            "use.index.columns first, or remove the index with CALL use.drop_index."
        )
        return cls(text, code="USE_INDEXED_COLUMN", sql_state="2BP01")

    @classmethod
    def unindexable(cls, column: str, data_type: str, accepted: str) -> IndexConfigurationError:
        """The column's type has no place in the index."""
        text = f"use.index.columns: column '{column}' of type {data_type} cannot be indexed: {accepted}."
        return cls(text, code="USE_UNINDEXABLE_TYPE", sql_state="42K09")


class NotSupportedError(UseError):
    """Declared, but not available in this version: refused by name rather than ignored."""

    code = "USE_NOT_SUPPORTED"
    sql_state = "0A000"


class NotAttachedError(UseError):
    """Python is not attached to the Spark application, so that SQL of ours reaches nothing."""

    code = "USE_NOT_ATTACHED"
    sql_state = "55000"

    @classmethod
    def here(cls) -> NotAttachedError:
        """In the application of this process."""
        return cls("Python is not attached to this Spark application: call sql_ext.attach(spark) first.")

    @classmethod
    def at_server(cls) -> NotAttachedError:
        """In the one that serves a Spark Connect client."""
        return cls(
            "The server of this Spark Connect client has no catalog 'use': configure its driver with sql_ext.configure "
            "and call sql_ext.attach there."
        )


class FileSystemError(UseError):
    """A file system is unknown, cannot be reached, or denies access."""

    code = "USE_FILE_SYSTEM"
    sql_state = "58030"

    @classmethod
    def of(cls, name: str, trouble: str) -> FileSystemError:
        """Names the table, what is wrong and what to do."""
        return cls(f"table = '{name}' cannot be looked at: {trouble}.")


class SparkFailedError(UseError):
    """Spark or Delta failed without a condition of its own."""

    code = "USE_SPARK_FAILED"
    sql_state = "58000"

    @classmethod
    def of(cls, detail: str) -> SparkFailedError:
        """Says what Spark says."""
        return cls(f"Spark failed: {detail.rstrip('.')}. The log of the driver may say more.")


class RetentionError(UseError):
    """A vacuum below the retention floor without ``force``."""

    code = "USE_RETENTION_TOO_SHORT"
    sql_state = "22023"


class WriteDeniedError(UseError):
    """The file system denies writing below the table."""

    code = "USE_WRITE_DENIED"
    sql_state = "42501"


class ConcurrentChangeError(UseError):
    """Another writer changed what a rewrite had read; nothing of the rewrite was committed."""

    code = "USE_CONCURRENT_CHANGE"
    sql_state = "40001"


class CommitUnknownError(UseError):
    """The commit may or may not have happened; every file is kept."""

    code = "USE_COMMIT_UNKNOWN"
    sql_state = "40003"

    def __init__(self, message: str, *, write_id: str | None = None) -> None:
        """``write_id`` is that of the rewrite, which tells later whether the commit appeared."""
        super().__init__(message)
        self.write_id = write_id


class RowsChangedError(UseError):
    """Rows written differ from rows read; the rewrite was abandoned before its commit."""

    code = "USE_ROWS_CHANGED"
    sql_state = "XX001"


class IndexUnreadableError(UseError):
    """A property or tag of the index cannot be read: damaged, or of a kind that this version does not know."""

    code = "USE_INDEX_FORMAT"
    sql_state = "XX002"

    @classmethod
    def transformation(cls, kind: str, column: str) -> IndexUnreadableError:
        """A transformation that rows cannot be placed by."""
        return cls(
            f"The index column {column} has a {kind}, by which this version cannot place rows: "
            "use a version that knows it, or index the table by other columns."
        )
