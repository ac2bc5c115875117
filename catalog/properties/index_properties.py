"""The table properties of ours, typed: parsed once, refused with a clear error when they do not fit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.columns.column_names import (
    AUTOMATIC,
    FoundColumn,
    columns_stored_as,
    find_column,
    find_stored,
    has_physical_names,
    logical_name,
    physical_name,
    quoted_path,
    split_names,
)
from catalog.errors import AmbiguousColumnError, IndexConfigurationError, InvalidArgumentError, UnknownNameError
from catalog.properties.declared_stats import COLUMN_STATS_KEY, declared_stats
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.settings.setting import BOOLEAN, FRACTIONS, TEXT, Setting, choice, duration, whole_number
from otree.data_types import EXTENDED_TYPES, format_data_type
from otree.hash_types import HASH_TYPES_KEY_PREFIX, hash_type
from otree.revision import (
    REVISION_KEY_PREFIX,
    STAGING_REVISION_ID,
    Revision,
)
from otree.transformation import KINDS, DeclaredStats, kinds_for
from otree.transformer import EMPTY, QUANTILES, Transformer

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "COLUMN_STATS_KEY",
    "HASH_TYPES_KEY_PREFIX",
    "IndexConfiguration",
    "hash_type",
    "indexable_type",
    "logical_name",
    "physical_name",
]

COLUMNS_KEY = "use.index.columns"
# The columns that the service has chosen where the owner leaves the choice to it.
AUTO_COLUMNS_KEY = "use.index.autoColumns"
AUTO_PERIOD_KEY = "use.index.autoPeriod"
AS_INDEXED_KEY = "use.index.columnsAsIndexed"
# Per revision, what only readers like ours understand of it: columns and their types, as JSON.
EXTENSIONS_KEY_PREFIX = "use.index.extensions."
COMPATIBILITY_KEY = "use.index.compatibility"
CUBE_SIZE_KEY = "use.index.cubeSize"
# Samples that new layouts serve with files of their own.
SAMPLE_FRACTIONS_KEY = "use.index.sampleFractions"
# Whether inserts are indexed as they are written.
ON_WRITE_KEY = "use.index.onWrite"

# A property of Delta.
COLUMN_MAPPING = "delta.columnMapping.mode"

CUBE_SIZE_RANGE = (1_000, 5_000_000)
COMPATIBILITIES = ("", "qbeast")
_MOST_COLUMNS = 16


def column_entries(key: str, text: str) -> list[tuple[str, str]]:
    """The columns of a text such as ``a,`b,c`:hashing``, by name, and the transformation of each ('' = its type's own).

    Raises:
        InvalidArgumentError: an empty name, or an open backquote.
        UnknownNameError: a transformation that does not exist.
    """
    expected = (
        "column names separated by commas, such as 'a,b:hashing', in backquotes where one holds a comma, colon or dot"
    )
    try:
        entries = split_names(text)
    except ValueError as error:
        raise InvalidArgumentError.of(key, text, f"{error}; {expected}") from error
    for name, kind in entries:
        if not name:
            raise InvalidArgumentError.of(key, text, expected)
        if name.lower() == AUTOMATIC and not kind:
            alone = f"column names, or {COLUMNS_KEY} = '{AUTOMATIC}' alone, with which the service chooses them"
            raise InvalidArgumentError.of(key, text, f"{alone}; a column of this name is written `{name}`")
        if kind.lower() == "histogram":
            raise InvalidArgumentError.of(key, text, f"histogram is deprecated in the format; use {name}:{QUANTILES}")
        offered = [known.name for known in KINDS.values() if known.offered]
        if kind and kind.lower() not in offered:
            raise UnknownNameError.of("transformation", kind, offered)
    if len(entries) > _MOST_COLUMNS:
        raise InvalidArgumentError.of(key, text, f"at most {_MOST_COLUMNS} columns")
    # Names that differ in case only are one column or two, as the session says: the schema shows it.
    twice = next((name for name, count in Counter(name for name, _ in entries).items() if count > 1), None)
    if twice is not None:
        raise InvalidArgumentError.of(key, text, f"column '{twice}' must be named once")
    return [(name, kind.lower()) for name, kind in entries]


def is_automatic(text: str | None) -> bool:
    """Whether a value of ``use.index.columns`` leaves the choice of the columns to the service."""
    return text is not None and text.strip().lower() == AUTOMATIC


def _check_columns(key: str, text: str) -> None:
    if not is_automatic(text):
        column_entries(key, text)


COLUMNS = Setting(
    COLUMNS_KEY,
    TEXT,
    "Columns to index, separated by commas, each with its transformation if need be: 'a,b:hashing'; 'auto': those that "
    "the service chooses from recorded reads.",
    check=_check_columns,
)
AUTO_PERIOD = Setting(
    AUTO_PERIOD_KEY,
    duration("a positive duration such as '30 days' or '12 hours'", spark_syntax=False),
    "With use.index.columns = 'auto', the time between two changes of the chosen columns, at least.",
    "30 days",
)
CUBE_SIZE = Setting(
    CUBE_SIZE_KEY,
    whole_number(1, 9, "a positive whole number of rows"),
    "Rows that an inner cube holds.",
    unset="rows of one target file, {:,} to {:,}".format(*CUBE_SIZE_RANGE),
)
SAMPLE_FRACTIONS = Setting(
    SAMPLE_FRACTIONS_KEY,
    FRACTIONS,
    "Fractions that are often sampled, separated by commas: '0.15,0.01'. Rewritten files end at them, where these are "
    "large enough, so that such a sample reads its rows only.",
    "",
)
COLUMN_STATS = Setting(COLUMN_STATS_KEY, TEXT, "What the owner knows of the values of columns, as JSON.")
COMPATIBILITY = Setting(
    COMPATIBILITY_KEY,
    choice(COMPATIBILITIES, "'qbeast', or nothing"),
    "With 'qbeast', an index that other writers of the format cannot read is refused.",
    "",
)
ON_WRITE = Setting(ON_WRITE_KEY, BOOLEAN, "Whether inserts are indexed as they are written.")
INDEX_SETTINGS: tuple[Setting[object], ...] = (
    COLUMNS,
    AUTO_PERIOD,
    CUBE_SIZE,
    TARGET_FILE_BYTES,
    SAMPLE_FRACTIONS,
    COLUMN_STATS,
    COMPATIBILITY,
    ON_WRITE,
)


@dataclass(frozen=True)
class IndexConfiguration:
    """What a table's properties ask of its index.

    Attributes:
        transformers: one per indexed column, physical names.
        logical_columns: the same columns as users name them.
        cube_size: rows per cube, or None for the rows of one target file.
        target_file_bytes: size that data files should have.
        hash_types: how each column hashes today; see ``hash_type``.
        declared: what the owner says about the values of each column.
        extensions: columns, by stored name, that other writers of the format could not index so, and what they are.
        sample_fractions: samples for which bands of weights end, ascending.
    """

    transformers: tuple[Transformer, ...]
    logical_columns: tuple[str, ...]
    cube_size: int | None
    target_file_bytes: int
    hash_types: tuple[str, ...]
    declared: tuple[DeclaredStats, ...]
    extensions: Mapping[str, str]
    sample_fractions: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        configuration: Mapping[str, str],
        schema: StructType,
        latest: Revision | None,
        partition: tuple[str, ...] = (),
    ) -> IndexConfiguration | None:
        """Reads the properties; None when the table has no index columns.

        A table indexed by another writer of the format has a revision and no ``use.index.columns``: its newest
        revision says what is indexed, or the staging one when no data is indexed yet.

        Raises:
            UnknownNameError: a column that the schema does not have.
            IndexConfigurationError: a column type that cannot be indexed, or a column whose name is that of another one
                in the index, too.
            InvalidArgumentError: a malformed value.
        """
        target = TARGET_FILE_BYTES.value(configuration)
        cube_size = CUBE_SIZE.optional_value(configuration)
        text = configuration.get(COLUMNS_KEY)
        as_indexed = (
            latest is not None
            and configuration.get(AS_INDEXED_KEY) == text
            and all(find_stored(schema, t.column) is not None for t in latest.transformers)
            and (text is None or has_physical_names(schema) or _are_indexed(text, schema, latest))
        )
        if text is not None and not as_indexed:
            columns = _columns(text, schema, partition, _are_named(configuration, schema))
        else:
            # Resolved when the revision was made: since then a column may have been renamed, or its type widened.
            revision = latest or _staged(configuration)
            if revision is None:
                return None
            cube_size = cube_size or (None if text else revision.desired_cube_size)
            columns = [(_stored(schema, t.column), t.kind) for t in revision.transformers]
        transformers = tuple(_transformer(column, kind) for column, kind in columns)
        indexed = [column for column, _ in columns]
        extensions = _extensions(indexed, transformers)
        _check_compatibility(configuration, extensions, partition)
        return cls(
            transformers,
            tuple(column.name for column in indexed),
            cube_size,
            target,
            tuple(hash_type(column.type_name) for column in indexed),
            _declared(configuration, schema, indexed, transformers),
            extensions,
            SAMPLE_FRACTIONS.value(configuration),
        )

    def remembered(self, configuration: Mapping[str, str], revision_id: int) -> dict[str, str]:
        """Properties that remember for which column text, and with which types, a revision is made."""
        text = {AS_INDEXED_KEY: configuration[COLUMNS_KEY]} if COLUMNS_KEY in configuration else {}
        types = {HASH_TYPES_KEY_PREFIX + str(revision_id): ";".join(self.hash_types)}
        more = {EXTENSIONS_KEY_PREFIX + str(revision_id): json.dumps(dict(self.extensions))} if self.extensions else {}
        return {**text, **types, **more}


def is_outdated(index: IndexConfiguration | None, latest: Revision | None, configuration: Mapping[str, str]) -> bool:
    """Whether the next data that is indexed would start a revision, wherever it lies.

    Args:
        index: what the properties ask for; None without index columns.
        latest: the newest revision; None before the first indexing.
        configuration: properties of the table itself.
    """
    if index is None or latest is None:
        return False
    hashed_as = configuration.get(f"{HASH_TYPES_KEY_PREFIX}{latest.revision_id}")
    return (
        index.transformers != latest.transformers
        or (index.cube_size is not None and index.cube_size != latest.desired_cube_size)
        or (hashed_as is not None and hashed_as != ";".join(index.hash_types))
    )


def indexable_type(data_type: DataType) -> str | None:
    """The format's name of a Spark type; None when it cannot be indexed."""
    # A string with a collation has a name of its own: its equality is not that of bytes, which hashing relies on.
    return format_data_type(data_type.simpleString())


def _columns(
    text: str, schema: StructType, partition: tuple[str, ...], are_named: bool
) -> list[tuple[FoundColumn, str]]:
    """The columns that the property names, and their transformations ('' = the type's own).

    Args:
        text: the property.
        schema: logical schema.
        partition: partition columns, logical names.
        are_named: whether the stored names of the columns are known.
    """
    resolved: list[tuple[FoundColumn, str]] = []
    for name, kind in column_entries(COLUMNS_KEY, text):
        column = find_column(schema, name)
        if column is None:
            raise UnknownNameError.of("column", name, schema.names)
        if any(column.path == earlier.path for earlier, _ in resolved):
            raise InvalidArgumentError.of(COLUMNS_KEY, text, f"column '{name}' must be named once")
        if column.path[0] in partition:
            raise InvalidArgumentError.of(
                COLUMNS_KEY, text, f"'{name}' is a partition column, whose values already select files"
            )
        if are_named:
            check_distinct(schema, column.stored)
        resolved.append((column, kind))
    return resolved


def _are_indexed(text: str, schema: StructType, revision: Revision) -> bool:
    """Whether a revision has the columns of a text; a removed column mapping stores them under other names."""
    found = (find_column(schema, name) for name, _ in split_names(text))
    return all(column is None or column.stored in revision.columns for column in found)


def check_distinct(schema: StructType, stored: str) -> None:
    """Refuses a name that revisions would have for several columns, since they join the parts of a name by dots.

    Raises:
        AmbiguousColumnError: more than one column is stored under it.
    """
    columns = columns_stored_as(schema, stored)
    if len(columns) > 1:
        raise AmbiguousColumnError.of(stored, [quoted_path(column) for column in columns])


def _are_named(configuration: Mapping[str, str], schema: StructType) -> bool:
    """Whether the stored names of columns are known: column mapping names them after CREATE TABLE was checked."""
    return configuration.get(COLUMN_MAPPING, "none").lower() == "none" or has_physical_names(schema)


def _stored(schema: StructType, stored: str) -> FoundColumn:
    check_distinct(schema, stored)
    column = find_stored(schema, stored)
    if column is None:
        raise UnknownNameError.of("column", stored, schema.names)
    return column


def _staged(configuration: Mapping[str, str]) -> Revision | None:
    """The staging revision of a table that was made for an index and has no indexed data yet."""
    text = configuration.get(f"{REVISION_KEY_PREFIX}{STAGING_REVISION_ID}")
    revision = None if text is None else Revision.from_json(text)
    known = revision is not None and revision.transformers and all(t.kind != EMPTY for t in revision.transformers)
    return revision if known else None


def transformations_of(data_type: DataType) -> tuple[str, ...]:
    """The transformations that a column of this type can have, the default first; none when it cannot be indexed."""
    name = indexable_type(data_type)
    return () if name is None else kinds_for(name, data_type.simpleString())


def _transformer(column: FoundColumn, kind: str) -> Transformer:
    accepted = transformations_of(column.data_type)
    name = column.plain_name
    data_type = indexable_type(column.data_type)
    if data_type is None:
        raise IndexConfigurationError.unindexable(
            name, column.type_name, "numbers, booleans, dates, timestamps, strings and binaries are accepted"
        )
    if (kind or accepted[0]) not in accepted:
        raise IndexConfigurationError.unindexable(
            name, f"{column.type_name} as {kind}", f"its transformation is {' or '.join(accepted)}"
        )
    return Transformer(kind or accepted[0], column.stored, data_type)


def _declared(
    configuration: Mapping[str, str],
    schema: StructType,
    columns: Sequence[FoundColumn],
    transformers: Sequence[Transformer],
) -> tuple[DeclaredStats, ...]:
    stats = declared_stats(configuration.get(COLUMN_STATS_KEY), schema)
    declared = []
    for column, transformer in zip(columns, transformers, strict=True):
        of_column = stats.get(column.stored, DeclaredStats())
        declared.append(KINDS[transformer.kind].relevant(of_column, column.type_name))
    return tuple(declared)


def _extensions(columns: Sequence[FoundColumn], transformers: Sequence[Transformer]) -> dict[str, str]:
    """What other writers of the format could not index so: nested fields, some types, hashes of times."""
    extensions = {}
    for column, transformer in zip(columns, transformers, strict=True):
        is_extension = KINDS[transformer.kind].is_extension(transformer.data_type)
        if column.is_nested or column.type_name in EXTENDED_TYPES or is_extension:
            extensions[column.stored] = column.type_name
    return extensions


def _check_compatibility(
    configuration: Mapping[str, str], extensions: Mapping[str, str], partition: tuple[str, ...]
) -> None:
    required = COMPATIBILITY.value(configuration)
    if not required:
        return
    for column, type_name in extensions.items():
        raise IndexConfigurationError.unindexable(
            column,
            type_name,
            f"{COMPATIBILITY_KEY} = '{required}' asks for an index that every reader of the format has",
        )
    unread = {
        "deletion vectors": configuration.get("delta.enableDeletionVectors", "").lower() == "true",
        "column mapping": configuration.get(COLUMN_MAPPING, "none").lower() != "none",
        "partition columns": bool(partition),
    }
    for feature, present in unread.items():
        if present:
            raise InvalidArgumentError.of(
                COMPATIBILITY_KEY,
                required,
                f"the table has {feature}, with which other readers of the format lose rows",
            )
