"""Checks of the changes that a statement makes to a table's properties and columns, before its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from catalog.columns.column_names import FoundColumn, find_column, find_path, find_stored, split_names, written_name
from catalog.columns.key_columns import key_order
from catalog.errors import IndexConfigurationError, InvalidArgumentError, TableError, UseError
from catalog.properties.alert_properties import HEALTH_PREFIX
from catalog.properties.checks import check_index, check_property
from catalog.properties.declared_stats import COLUMN_STATS_KEY, with_moved_columns
from catalog.properties.fleet_properties import BUDGET_KEYS
from catalog.properties.index_properties import (
    AS_INDEXED_KEY,
    AUTO_COLUMNS_KEY,
    COLUMN_MAPPING,
    COLUMNS_KEY,
    check_distinct,
    is_automatic,
)
from catalog.properties.inherited import NOTHING_INHERITED, InheritedProperties
from catalog.properties.lifecycle_properties import (
    CLUSTERING_PREFIX,
    COMPACTION_PREFIX,
    ORDER_BY_KEY,
    PRIMARY_KEY_KEY,
)
from catalog.properties.names import in_namespace, is_inherited, unknown_property
from catalog.properties.optimization_properties import PREFIX
from catalog.properties.retention_properties import (
    DELTA_RETENTION,
    RETENTION_HOURS,
    check_retention,
    lengthened_retention,
)
from otree.errors import IndexFormatError
from otree.revision import newest_revision
from procedures.service.schedule import check_index_of_schedule, check_schedule


@dataclass(frozen=True)
class TableMetadata:
    """The declaration of a table.

    Attributes:
        configuration: its properties.
        schema: its schema, logical names; without columns where a statement leaves it to the table's files.
        partition: its partition columns, logical names.
    """

    configuration: Mapping[str, str]
    schema: StructType
    partition: tuple[str, ...] = ()


def checked_change(
    before: TableMetadata, after: TableMetadata, inherited: InheritedProperties = NOTHING_INHERITED
) -> dict[str, str | None]:
    """Checks the changes that a statement makes.

    A property below ``use.`` that the statement sets must exist and have an accepted value. A column that is indexed
    cannot be dropped. Properties that name a renamed column get its new name.

    Args:
        before: the table as it is; empty for a new table.
        after: the table as the statement would leave it.
        inherited: what it has from its database and from the session.

    Returns:
        Properties to be set in the same commit; None for one that is to be removed.

    Raises:
        UnknownNameError: a property, column, transformation or strategy that does not exist.
        InvalidArgumentError: a value that is not accepted, or a property that only a database can have.
        IndexConfigurationError: an indexed column is dropped, or gets a type that cannot be indexed, or a strategy
            needs index columns that the table does not have.
        RetentionError: ``use.retention.hours`` is below Delta's retention.
    """
    changed = sorted(k for k, v in after.configuration.items() if in_namespace(k) and before.configuration.get(k) != v)
    for key in changed:
        unknown = unknown_property(key)
        if unknown is not None:
            raise unknown
        if key in BUDGET_KEYS:
            accepted = "nothing on a table: set it on its database, whose tables share the budget"
            raise InvalidArgumentError.of(key, after.configuration[key], accepted)
    if AUTO_COLUMNS_KEY in changed and before.schema.fields:
        text = f"only what USE writes: set {COLUMNS_KEY} to name columns, or unset this property for a new choice"
        raise InvalidArgumentError.of(AUTO_COLUMNS_KEY, after.configuration[AUTO_COLUMNS_KEY], text)
    moved = _moved_columns(before, after) if before.schema != after.schema and before.schema.fields else {}
    configuration = _with(after.configuration, moved)
    mapping_mode = configuration.get(COLUMN_MAPPING, "none")
    for key in changed:
        check_property(key, configuration[key], after.schema, after.partition, mapping_mode)
    if any(key.startswith((PREFIX, CLUSTERING_PREFIX, COMPACTION_PREFIX, HEALTH_PREFIX)) for key in changed):
        check_schedule(configuration)
    if any(key.startswith(PREFIX) for key in changed):
        check_index_of_schedule(inherited.effective(configuration, after.schema.names))
    if after.schema.fields and {PRIMARY_KEY_KEY, ORDER_BY_KEY} & set(changed):
        # That both are there was checked before.
        key_order(after.schema, *((key, configuration[key]) for key in (PRIMARY_KEY_KEY, ORDER_BY_KEY)))
    pair = (RETENTION_HOURS.name, DELTA_RETENTION.name)
    if any(before.configuration.get(key) != configuration.get(key) for key in pair):
        check_retention(configuration)
    if RETENTION_HOURS.name in changed:
        moved |= lengthened_retention(configuration)
    if after.schema.fields and _fits(before):
        check_index(configuration, after.schema, after.partition)
    return moved


def check_defaults(properties: Mapping[str, str]) -> None:
    """Checks the properties of USE that a statement sets on a database, as defaults of its tables.

    Args:
        properties: what the statement sets.

    Raises:
        UnknownNameError: a property that does not exist.
        InvalidArgumentError: a value that is not accepted, or a property that only a table can have.
    """
    ours = {key: text for key, text in properties.items() if in_namespace(key)}
    for key, text in sorted(ours.items()):
        unknown = unknown_property(key)
        if unknown is not None:
            raise unknown
        if not is_inherited(key):
            raise InvalidArgumentError.of(key, text, "nothing on a database: set it on a table")
        check_property(key, text, StructType(), ())
    if any(key.startswith((PREFIX, CLUSTERING_PREFIX, COMPACTION_PREFIX, HEALTH_PREFIX)) for key in ours):
        check_schedule(ours)


def check_other_format(table: str, provider: str, properties: Mapping[str, str]) -> None:
    """Refuses properties that would have no effect, because the table is not a Delta table.

    Properties below ``use.`` that USE does not have may belong to other software.

    Args:
        table: name of the table.
        provider: its format.
        properties: what a statement sets.

    Raises:
        TableError: one of the properties is of USE.
    """
    ours = sorted(key for key in properties if in_namespace(key) and unknown_property(key) is None)
    if ours:
        raise TableError.without_effect(table, provider, ours[0])


def _with(configuration: Mapping[str, str], entries: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**configuration, **entries}
    return {key: value for key, value in merged.items() if value is not None}


def _fits(metadata: TableMetadata) -> bool:
    """Whether the index fits the table so far; a statement is not refused for an earlier mistake."""
    try:
        check_index(metadata.configuration, metadata.schema, metadata.partition)
    except (UseError, IndexFormatError):
        return False
    return True


def _moved_columns(before: TableMetadata, after: TableMetadata) -> dict[str, str | None]:
    """The properties that name columns, as they must be once columns are renamed or dropped."""
    configuration = after.configuration
    entries: dict[str, str | None] = {}
    _check_dropped(before, after)
    for key in (COLUMNS_KEY, AUTO_COLUMNS_KEY, AS_INDEXED_KEY, PRIMARY_KEY_KEY, ORDER_BY_KEY):
        if key in configuration and not (key == COLUMNS_KEY and is_automatic(configuration[key])):
            entries[key] = _moved_text(configuration[key], before.schema, after.schema)
    if COLUMN_STATS_KEY in configuration:

        def moved(name: str) -> str | None:
            column = find_column(before.schema, name)
            # An unknown name stays as it is and is refused where it is read.
            return name if column is None else _moved_name(name, column, after.schema)

        entries[COLUMN_STATS_KEY] = with_moved_columns(configuration[COLUMN_STATS_KEY], moved)
    return {key: value for key, value in entries.items() if configuration.get(key) != value}


def _moved_text(text: str, before: StructType, after: StructType) -> str:
    """The text of ``use.index.columns`` for columns that may have been renamed; the same when none was."""
    try:
        entries = split_names(text)
    except ValueError:
        return text
    moved = []
    for name, kind in entries:
        column = find_column(before, name)
        to = name if column is None else _moved_name(name, column, after) or name
        moved.append(to + (f":{kind}" if kind else ""))
    unmoved = [name + (f":{kind}" if kind else "") for name, kind in entries]
    return text if moved == unmoved else ",".join(moved)


def _moved_name(name: str, column: FoundColumn, schema: StructType) -> str | None:
    """How a column is named from now on: as before while that leads to it; None when it was dropped."""
    to = find_path(schema, column.stored_path)
    if to is None:
        return None
    same_name = find_column(schema, name)
    return name if same_name is not None and same_name.path == to.path else written_name(schema, to)


def _check_dropped(before: TableMetadata, after: TableMetadata) -> None:
    """Refuses that an indexed column is dropped, or hidden by another one."""
    dropped = []
    for column in _indexed(before):
        to = find_path(after.schema, column.stored_path)
        if to is None:
            dropped.append(column.name)
        else:
            check_distinct(after.schema, to.stored)
    if dropped:
        raise IndexConfigurationError.dropped(dropped)
    for key in (PRIMARY_KEY_KEY, ORDER_BY_KEY):
        for column in _named(after.configuration.get(key), before.schema):
            if find_path(after.schema, column.stored_path) is None:
                raise IndexConfigurationError.needed(column.plain_name, key)


def _named(text: str | None, schema: StructType) -> list[FoundColumn]:
    """The columns that a list of names leads to; another engine may have written anything."""
    try:
        entries = split_names(text or "")
    except ValueError:
        return []
    return [column for name, _ in entries if (column := find_column(schema, name)) is not None]


def _indexed(metadata: TableMetadata) -> list[FoundColumn]:
    """The columns that the properties, or else the newest revision, ask to index, as far as they can be found."""
    configuration, schema = metadata.configuration, metadata.schema
    text = configuration.get(COLUMNS_KEY)
    if is_automatic(text):
        # A column that is chosen and not indexed yet may go: the service then chooses anew.
        text = None
    try:
        latest = newest_revision(configuration)
    except IndexFormatError:
        return []
    if text is not None and (latest is None or configuration.get(AS_INDEXED_KEY) != text):
        return _named(text, schema)
    columns = [find_stored(schema, column) for column in latest.columns] if latest is not None else []
    return [column for column in columns if column is not None]
