"""The one error tree: each refusal has a code, an SQLSTATE and a text that names the value and what is accepted."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def first_line(error: BaseException) -> str:
    """The first line of an error's text, which is what people can read of an error of Spark's."""
    return next(iter(str(error).strip().splitlines()), "")


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
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.sql_state = sql_state or type(self).sql_state

    def __str__(self) -> str:
        return f"[{self.code}] {self.message} SQLSTATE: {self.sql_state}"


def known_error(error: BaseException) -> UseError:
    """The error itself when it is one of ours, else an internal one that says its kind and its first line."""
    return error if isinstance(error, UseError) else UseError(f"{type(error).__name__}: {first_line(error)}")


class InvalidArgumentError(UseError):
    """A parameter, option or property has a value that is not accepted."""

    code = "USE_INVALID_ARGUMENT"
    sql_state = "22023"

    @classmethod
    def of(cls, name: str, value: object, accepted: str) -> InvalidArgumentError:
        """Names the parameter, the value and what is accepted."""
        shown = f"'{value}'" if isinstance(value, str) else str(value)
        return cls(f"{name} = {shown} is not accepted: {accepted}.")


class UnknownNameError(UseError):
    """A strategy, option, procedure, column or revision that does not exist; the text gives the nearest match."""

    code = "USE_UNKNOWN_NAME"
    sql_state = "42704"

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
        """Names what is unknown, the nearest known name and all known ones."""
        names = sorted(known)
        by_lower = {n.lower(): n for n in names}
        near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
        hint = f" Did you mean {by_lower[near[0]]}?" if near else ""
        codes = {"column": ("USE_UNKNOWN_COLUMN", "42703"), "procedure": ("USE_UNKNOWN_PROCEDURE", "42883")}
        code, state = codes.get(kind, (f"USE_UNKNOWN_{kind.upper().replace(' ', '_')}", "42704"))
        listed = ", ".join(names) if names else "none"
        return cls(f"There is no {kind} '{name}'.{hint} Known: {listed}.", code=code, sql_state=state)


class TableError(UseError):
    """The table is missing, or not one that can be worked on."""

    code = "USE_TABLE_NOT_FOUND"
    sql_state = "42P01"

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
        text = f"table = '{name}' is not a table name: {detail.strip()}"
        return cls(text, code="USE_INVALID_TABLE_NAME", sql_state="42602")

    @classmethod
    def view(cls, name: str) -> TableError:
        """A view instead of a table."""
        text = f"table = '{name}' is a view: give the Delta table behind it."
        return cls(text, code="USE_NOT_A_TABLE", sql_state="42809")

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
    def no_columns(cls, name: str, strategy: str) -> IndexConfigurationError:
        """The strategy needs index columns and the table declares none."""
        return cls(
            f"table = '{name}' has no index columns, which {strategy} needs: "
            f"ALTER TABLE {name} SET TBLPROPERTIES ('use.index.columns' = 'a,b')."
        )

    @classmethod
    def not_indexed(cls, name: str) -> IndexConfigurationError:
        """There is nothing of an index that could be removed or checked."""
        text = f"table = '{name}' has no index: neither its properties nor its files say anything of one."
        return cls(text, code="USE_NOT_INDEXED")

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
