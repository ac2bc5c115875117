"""All errors of USE: each has a code, an SQLSTATE and a message that names the value and what is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from catalog.control_characters import without_control_characters
from catalog.counted_nouns import agreeing
from catalog.similar_names import nearest_names

# An error lists no more known names than people read; all strategies are among them.
_MOST_NAMES = 12
# `CALL use.help` lists names of these kinds.
_KINDS_OF_HELP = ("procedure", "parameter")


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text, which is the readable part of an error of Spark."""
    return next(iter(str(error).strip().splitlines()), "")


def _shown(value: object) -> str:
    """Returns a value in SQL notation."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


class UseError(Exception):
    """Root of all errors of USE.

    In SQL the same error is an ``AnalysisException`` with the same code as its condition.

    Args:
        message: one or two sentences: the value, and what is accepted.
        code: stable condition name, ``USE_…``.
        sql_state: five-character SQLSTATE.
    """

    code = "USE_INTERNAL"
    sql_state = "XX000"

    def __init__(self, message: str, *, code: str | None = None, sql_state: str | None = None) -> None:
        # Messages are one line, but names and predicates in them may have several.
        message = without_control_characters(message).strip()
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.sql_state = sql_state or type(self).sql_state

    def __str__(self) -> str:
        return f"[{self.code}] {self.message} SQLSTATE: {self.sql_state}"


def _listed(kind: str, names: Sequence[str]) -> str:
    """Returns the first names, and where all of them are listed."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names) or "none"
    place = "; CALL use.help() lists them" if kind in _KINDS_OF_HELP else ""
    return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more{place}"


class InvalidArgumentError(UseError):
    """A parameter, option or property has an invalid value."""

    code = "USE_INVALID_ARGUMENT"
    sql_state = "22023"

    @classmethod
    def of(cls, name: str, value: object, accepted: str) -> InvalidArgumentError:
        """Builds the error from the parameter, the value and what is accepted."""
        return cls(f"{name} = {_shown(value)} is not accepted: {accepted}.")

    @classmethod
    def missing(cls, name: str, accepted: str) -> InvalidArgumentError:
        """Builds the error for a missing parameter."""
        return cls(f"{name} is missing: {accepted}.")


class TooComplexError(UseError):
    """A text is too long or too deeply nested to parse; the message names the limit."""

    code = "USE_TOO_COMPLEX"
    sql_state = "54001"

    @classmethod
    def of(cls, name: str, limit: str) -> TooComplexError:
        """Builds the error from the parameter or property and its limit."""
        return cls(f"{name} is too complex: it must have {limit}.")

    @classmethod
    def too_many_files(cls, table: str, most: int) -> TooComplexError:
        """A table has more files than are looked at together."""
        return cls(
            f"{table} has more than {most} files, which are not compared with each other. Restrict the call by where, "
            "one part of the table after another."
        )


_KINDS_WITH_IDS = frozenset({"plan", "run"})


class UnknownNameError(UseError):
    """A strategy, option, procedure, column or revision does not exist; the message suggests a name."""

    code = "USE_UNKNOWN_NAME"
    sql_state = "42704"

    @classmethod
    def of(
        cls, kind: str, name: str, known: Iterable[str], parameter: str = "", others: bool = False
    ) -> UnknownNameError:
        """Builds the error from the unknown name and either the nearest known name or the first known names.

        Args:
            kind: what it would be a name of.
            name: the unknown name.
            known: names that exist.
            parameter: where the name was given, unless the kind tells.
            others: whether there are more names than these.
        """
        names = sorted(known)
        # Similar ids have nothing in common.
        near = [] if kind in _KINDS_WITH_IDS else nearest_names(name, names)
        codes = {"column": ("USE_UNKNOWN_COLUMN", "42703"), "procedure": ("USE_UNKNOWN_PROCEDURE", "42883")}
        code, state = codes.get(kind, (f"USE_UNKNOWN_{kind.upper().replace(' ', '_')}", "42704"))
        listed = _listed(kind, names) + (" and others" if others else "")
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {listed}."
        place = f"{parameter}: " if parameter else ""
        return cls(f"{place}There is no {kind} '{name}'. {hint}", code=code, sql_state=state)

    @classmethod
    def of_another_system(cls, kind: str, name: str, advice: str) -> UnknownNameError:
        """Builds the error from a name that another system has, and what to use instead."""
        return cls(f"There is no {kind} '{name}'. {advice}", code=f"USE_UNKNOWN_{kind.upper()}", sql_state="42704")


class TableError(UseError):
    """The table is missing, or is not a table that USE supports."""

    code = "USE_TABLE_NOT_FOUND"
    sql_state = "42P01"

    # The format of a table that is not a Delta table, where it is known.
    provider: str | None = None

    @property
    def is_missing(self) -> bool:
        """Whether the table does not exist, in contrast to another problem with it."""
        return self.code == TableError.code

    @classmethod
    def missing(cls, name: str, detail: str, near: str | None = None) -> TableError:
        """There is no table of this name; ``near`` is the most similar one."""
        hint = f". Did you mean {near}?" if near else ": give a table name or a path."
        return cls(f"table = '{name}' was not found{f' ({detail})' if detail else ''}{hint}")

    @classmethod
    def gone(cls) -> TableError:
        """The table was dropped in the meantime, or exists only in the metastore."""
        return cls("The table no longer has a Delta log: it was dropped, or its folder was moved.")

    @classmethod
    def invalid_name(cls, name: str, detail: str) -> TableError:
        """The table name cannot be parsed."""
        if "/" in name and "`" not in name:
            detail = "relative paths are not accepted"
        text = (
            f"table = '{name}' is not a table name: {detail.strip().rstrip('.')}. Write db.table, with parts like "
            "`a b` in backquotes, or an absolute path."
        )
        return cls(text, code="USE_INVALID_TABLE_NAME", sql_state="42602")

    @classmethod
    def version(cls, name: str, table: str) -> TableError:
        """The name or path names a version of a table for time travel."""
        text = (
            f"table = '{name}' names a version of the Delta table {table}: only the table itself is accepted; "
            "omit the version."
        )
        return cls(text, code="USE_TIME_TRAVEL", sql_state="0A000")

    @classmethod
    def inside(cls, name: str, table: str) -> TableError:
        """The path is below the root of a table, such as the folder of a partition."""
        text = (
            f"table = '{name}' is a path inside the Delta table {table}: only the whole table is accepted; "
            "use.optimize can restrict files with where."
        )
        return cls(text, code="USE_NOT_A_TABLE", sql_state="42809")

    @classmethod
    def unreadable(cls, name: str, detail: str) -> TableError:
        """The log of the Delta table cannot be read."""
        text = (
            f"table = '{name}' cannot be read: {detail.rstrip('.')}. Check its _delta_log, and whether this "
            "version of Delta supports them."
        )
        return cls(text, code="USE_TABLE_UNREADABLE", sql_state="XX001")

    @classmethod
    def view(cls, name: str) -> TableError:
        """The name is a view."""
        text = f"table = '{name}' is a view: use its Delta table."
        return cls(text, code="USE_NOT_A_TABLE", sql_state="42809")

    @classmethod
    def virtual(cls, name: str, table: str) -> TableError:
        """The name is a virtual table, or a table of ``use_catalog``."""
        hint = f"use the table itself, {table}" if table else "use a Delta table"
        text = f"table = '{name}' is a virtual table, which has no files: {hint}."
        return cls(text, code="USE_NOT_A_DELTA_TABLE", sql_state="42809")

    @classmethod
    def named_as(cls, name: str, path: str) -> TableError:
        """The name refers to the files of a Delta table in another format."""
        text = f"table = '{name}' names the files of a Delta table: use the table itself, delta.`{path}`."
        return cls(text, code="USE_NOT_A_DELTA_TABLE", sql_state="42809")

    @classmethod
    def without_effect(cls, name: str, provider: str, key: str) -> TableError:
        """A property of ours is set on a table of another format."""
        convert = ", or convert it with CALL use.index(…, convert => true)" if provider.lower() == "parquet" else ""
        advice = "set it on its tables" if provider == "view" else f"create it USING delta{convert}"
        text = f"table = '{name}' is not a Delta table ({provider}), so {key} would have no effect: {advice}."
        return cls(text, code="USE_NOT_A_DELTA_TABLE", sql_state="42809")

    @classmethod
    def not_delta(cls, name: str, provider: str) -> TableError:
        """The table has another format."""
        text = f"table = '{name}' is not a Delta table ({provider}): only Delta tables are accepted."
        error = cls(text, code="USE_NOT_A_DELTA_TABLE", sql_state="42809")
        error.provider = provider
        return error


class IndexConfigurationError(UseError):
    """The index properties of the table are missing or do not match its schema."""

    code = "USE_NO_INDEX_COLUMNS"
    sql_state = "55000"

    @classmethod
    def no_columns(cls, name: str, strategy: str, mistakes: Iterable[UseError] = ()) -> IndexConfigurationError:
        """The strategy needs index columns, and the table has none; ``mistakes`` are errors in its properties."""
        text = (
            f"table = '{name}' has no index columns, which {strategy} needs: "
            f"ALTER TABLE {name} SET TBLPROPERTIES ('use.index.columns' = 'a,b')."
        )
        return cls(" ".join([text, *(mistake.message for mistake in mistakes)]))

    @classmethod
    def missing_for(cls, strategy: str) -> IndexConfigurationError:
        """A statement asks for a strategy that needs index columns, for a table that has none."""
        text = (
            f"The table has no index columns, which {strategy} needs: set use.index.columns = 'a,b' in the same "
            "statement or in one before it. Where the service chooses them ('auto'), set use.fleet.enabled instead."
        )
        return cls(text)

    @classmethod
    def not_chosen(cls) -> IndexConfigurationError:
        """A write is to be indexed, and the service has not chosen the index columns yet."""
        text = (
            "The service has not chosen index columns yet (use.index.columns = 'auto'), so writes cannot be indexed: "
            "set use.index.onWrite = 'false', write to a table of the format delta, or name the columns."
        )
        return cls(text)

    @classmethod
    def not_indexed(cls, name: str) -> IndexConfigurationError:
        """The table has no index to remove or check."""
        text = f"table = '{name}' has no index: it has neither index properties nor tagged files."
        return cls(text, code="USE_NOT_INDEXED")

    @classmethod
    def dropped(cls, columns: Iterable[str]) -> IndexConfigurationError:
        """A statement drops indexed columns."""
        text = (
            f"The table is indexed by {', '.join(columns)}, which cannot be dropped: set other columns in "
            "use.index.columns first, or remove the index with CALL use.drop_index."
        )
        return cls(text, code="USE_INDEXED_COLUMN", sql_state="2BP01")

    @classmethod
    def needed(cls, column: str, key: str) -> IndexConfigurationError:
        """A statement drops a column that a property names."""
        text = f"The column {column} cannot be dropped, because {key} names it: unset that property first."
        return cls(text, code="USE_INDEXED_COLUMN", sql_state="2BP01")

    @classmethod
    def unindexable(cls, column: str, data_type: str, accepted: str) -> IndexConfigurationError:
        """The type of the column cannot be indexed."""
        text = f"use.index.columns: column '{column}' of type {data_type} cannot be indexed: {accepted}."
        return cls(text, code="USE_UNINDEXABLE_TYPE", sql_state="42K09")


class AmbiguousColumnError(IndexConfigurationError):
    """The index has one name for several columns, as it joins the parts of a name by dots."""

    code = "USE_AMBIGUOUS_COLUMN"
    sql_state = "42702"

    @classmethod
    def of(cls, stored: str, columns: Iterable[str]) -> AmbiguousColumnError:
        """Several columns are stored under a joined name.

        Args:
            stored: the name.
            columns: how they are written in statements.
        """
        text = f"The columns {' and '.join(columns)} cannot be indexed: the index has one name for them, '{stored}'."
        return cls(text)


class NotSupportedError(UseError):
    """The feature is declared but not supported in this version."""

    code = "USE_NOT_SUPPORTED"
    sql_state = "0A000"


class MissingPackageError(UseError):
    """A Python package that the feature needs is not installed."""

    code = "USE_MISSING_PACKAGE"
    sql_state = "55000"

    @classmethod
    def of(cls, package: str, extra: str | None = None) -> MissingPackageError:
        """Builds the error from the package and the extra of this project that has it; None = every installation."""
        name = "use-spark" if extra is None else f'"use-spark[{extra}]"'
        return cls(f"The Python package {package} is not installed: pip install {name}.")


class UnusableJavaError(UseError):
    """Spark cannot start because Java is missing or has an unsupported version."""

    code = "USE_UNUSABLE_JAVA"
    sql_state = "55000"

    @classmethod
    def of(cls, trouble: str, advice: str) -> UnusableJavaError:
        """Builds the error from the problem and how to solve it."""
        return cls(f"Spark cannot start: {trouble}; {advice}.")


class NotAttachedError(UseError):
    """Python is not attached to the Spark application, so SQL cannot call procedures."""

    code = "USE_NOT_ATTACHED"
    sql_state = "55000"

    @classmethod
    def here(cls) -> NotAttachedError:
        """The application of this process is not attached."""
        return cls("Python is not attached to this Spark application: call sql_ext.attach(spark) first.")

    @classmethod
    def ended(cls) -> NotAttachedError:
        """The session is one of an application that has ended."""
        return cls("The session has ended: create a new one, and call sql_ext.attach(spark).")

    @classmethod
    def at_server(cls) -> NotAttachedError:
        """The server of a Spark Connect client is not attached."""
        return cls(
            "The server of this Spark Connect client has no catalog 'use': configure its driver with sql_ext.configure "
            "and call sql_ext.attach there."
        )


class FileSystemError(UseError):
    """A file system is unknown, unreachable, or denies access."""

    code = "USE_FILE_SYSTEM"
    sql_state = "58030"

    @classmethod
    def of(cls, name: str, trouble: str) -> FileSystemError:
        """Builds the error from the table and the problem, with advice."""
        return cls(f"table = '{name}' cannot be read: {trouble}.")


class SparkFailedError(UseError):
    """Spark or Delta failed without an error condition."""

    code = "USE_SPARK_FAILED"
    sql_state = "58000"

    @classmethod
    def of(cls, detail: str) -> SparkFailedError:
        """Builds the error from the message of Spark."""
        return cls(f"Spark failed: {detail.rstrip('.')}. The log of the driver may have more details.")


class RetentionError(UseError):
    """A vacuum uses a retention below the table's own without ``force``."""

    code = "USE_RETENTION_TOO_SHORT"
    sql_state = "22023"


class VersionError(UseError):
    """A version of a table does not exist, or its files were reclaimed."""

    code = "USE_VERSION_RECLAIMED"
    sql_state = "22003"

    @classmethod
    def reclaimed(cls, table: str, version: int | None, oldest: int, protected: Iterable[str] = ()) -> VersionError:
        """The files of the version were reclaimed; ``version`` is None for a time before the oldest version."""
        what = "This time" if version is None else f"Version {version}"
        kept = ", ".join(protected)
        return cls(
            f"{what} of {table} was reclaimed: the oldest version left is {oldest}"
            f"{f', and these versions are protected: {kept}' if kept else ''}."
        )

    @classmethod
    def missing(cls, version: int, oldest: int, newest: int, name: str = "version") -> VersionError:
        """There is no such version; ``name`` is the parameter that named it."""
        text = f"{name} = {version} does not exist: versions from {oldest} to {newest} are accepted."
        return cls(text, code="USE_UNKNOWN_VERSION")

    @classmethod
    def incomplete(cls, version: int, files: int) -> VersionError:
        """Files of the version are missing."""
        missing = f"{files} of its files {agreeing(files, 'is', 'are')} missing"
        text = f"version = {version} cannot be read any more: {missing}. Choose a later version."
        return cls(text, code="USE_UNKNOWN_VERSION")


class ProtectionError(UseError):
    """A protection exists already, cannot be read, or names a version that the log has lost."""

    code = "USE_PROTECTION"
    sql_state = "55000"

    @classmethod
    def exists(cls, name: str, detail: str) -> ProtectionError:
        """The name is taken."""
        text = f"name = '{name}' is used already ({detail}): choose another name, or call use.unprotect first."
        return cls(text, code="USE_ALREADY_PROTECTED", sql_state="42710")

    @classmethod
    def unreadable(cls, path: str, problem: str) -> ProtectionError:
        """The file of a protection cannot be read."""
        return cls(
            f"{path} cannot be read ({problem}), so that it is unknown which version it protects. No file is deleted "
            "until the file can be read, or use.unprotect has removed it.",
            code="USE_PROTECTION_UNREADABLE",
        )

    @classmethod
    def uncertain(cls, path: str, problem: str) -> ProtectionError:
        """Versions are perhaps being deleted, and the file that says which cannot be read."""
        return cls(
            f"{path} cannot be read ({problem}), so that it is unknown which versions are being deleted. Nothing was "
            "protected: call again, and if the error comes back, delete the file while no purge or vacuum runs."
        )

    @classmethod
    def lost(cls, name: str, version: int, oldest: int, newest: int) -> ProtectionError:
        """The log no longer has the protected version, so that its files are unknown."""
        return cls(
            f"Version {version}, protected as '{name}', is not in the log, which has versions {oldest} to {newest}: "
            f"its files are unknown. No file is deleted until use.unprotect has removed '{name}'.",
            code="USE_PROTECTED_VERSION_LOST",
        )


class WriteDeniedError(UseError):
    """The file system denies writing below the table."""

    code = "USE_WRITE_DENIED"
    sql_state = "42501"


class ConcurrentChangeError(UseError):
    """A concurrent commit conflicts; nothing was committed."""

    code = "USE_CONCURRENT_CHANGE"
    sql_state = "40001"


class CommitUnknownError(UseError):
    """The commit may or may not have succeeded; every file is kept."""

    code = "USE_COMMIT_UNKNOWN"
    sql_state = "40003"

    def __init__(self, message: str, *, write_id: str | None = None) -> None:
        """``write_id`` identifies the rewrite in the history, if the commit succeeded."""
        super().__init__(message)
        self.write_id = write_id


class PlanUnreadableError(UseError):
    """A stored plan cannot be read: one of its files is missing, damaged, or was edited."""

    code = "USE_PLAN_UNREADABLE"
    sql_state = "XX001"

    @classmethod
    def of(cls, plan_id: str, problem: str) -> PlanUnreadableError:
        """Builds the error from the plan and what is wrong with its files."""
        return cls(f"plan = '{plan_id}' cannot be read ({problem}): make another plan with use.plan.")


class ToleranceNotMetError(UseError):
    """A sample does not answer a query within the tolerance, and the caller wants no other answer."""

    code = "USE_TOLERANCE_NOT_MET"
    sql_state = "55000"

    @classmethod
    def of(cls, fraction: float, most: float, names: Iterable[str]) -> ToleranceNotMetError:
        """Builds the error from the fraction that was read, the largest allowed one, and the aggregates outside."""
        return cls(
            f"A sample of {fraction:g} does not reach the tolerance for {', '.join(names) or 'any group'}: increase "
            f"tolerance or max_fraction (now {most:g}), or set on_miss to exact or estimate."
        )

    @classmethod
    def no_interval(cls, names: str, why: str) -> ToleranceNotMetError:
        """Builds the error about aggregates that have no interval."""
        return cls(f"{names} has no interval: {why}. Leave it out, or set on_miss to exact.")


class RowsChangedError(UseError):
    """The rows written differ from the rows read; the rewrite was abandoned before its commit."""

    code = "USE_ROWS_CHANGED"
    sql_state = "XX001"


class IndexUnreadableError(UseError):
    """A property or tag of the index cannot be read: it is damaged, or this version does not support it."""

    code = "USE_INDEX_FORMAT"
    sql_state = "XX002"

    @classmethod
    def transformation(cls, kind: str, column: str) -> IndexUnreadableError:
        """This version does not support a transformation."""
        return cls(
            f"The index column {column} has a {kind}, which this version does not support: "
            "use a version that supports it, or index the table by other columns."
        )
