"""Finding columns, nested ones included, by the name users give and by the name they are stored under."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql.types import DataType, StructField, StructType

from catalog.errors import UnknownNameError

_NEEDS_QUOTES = re.compile(r"[.`*]")


@dataclass(frozen=True)
class FoundColumn:
    """A column of a schema.

    Attributes:
        path: logical names from the top-level column to the field.
        stored_path: the same names as column mapping stores them.
        data_type: its type.
    """

    path: tuple[str, ...]
    stored_path: tuple[str, ...]
    data_type: DataType

    @property
    def name(self) -> str:
        """The name as SQL and ``F.col`` read it: parts joined by dots, in backquotes where a part needs them."""
        return _quoted(self.path)

    @property
    def stored_name(self) -> str:
        """The stored name as ``F.col`` reads it over rows as files have them."""
        return _quoted(self.stored_path)

    @property
    def plain_name(self) -> str:
        """The name as table properties have it: parts joined by dots."""
        return ".".join(self.path)

    @property
    def stored(self) -> str:
        """The name as revisions have it: stored parts joined by dots."""
        return ".".join(self.stored_path)

    @property
    def type_name(self) -> str:
        """Spark's simple name of the type."""
        return self.data_type.simpleString()

    @property
    def is_nested(self) -> bool:
        """Whether it is a field of another column."""
        return len(self.path) > 1


def _quoted(parts: tuple[str, ...]) -> str:
    return ".".join("`" + p.replace("`", "``") + "`" if _NEEDS_QUOTES.search(p) else p for p in parts)


def physical_name(field: StructField) -> str:
    """The name under which column mapping stores a field; its own name without mapping."""
    return str((field.metadata or {}).get("delta.columnMapping.physicalName", field.name))


def find_column(schema: StructType, name: str) -> FoundColumn | None:
    """The column of a logical name, in any case; a top-level name that holds dots wins over a path."""
    return _find(schema, name.lower(), lambda field: field.name.lower())


def find_stored(schema: StructType, stored: str) -> FoundColumn | None:
    """The column that a revision names."""
    return _find(schema, stored, physical_name)


def logical_name(schema: StructType, physical: str) -> str:
    """The current name, as ``F.col`` reads it, of the column stored as ``physical``.

    Raises:
        UnknownNameError: the schema has no such column.
    """
    found = find_stored(schema, physical)
    if found is None:
        raise UnknownNameError.of("column", physical, schema.names)
    return found.name


def _find(schema: StructType, wanted: str, name_of: Callable[[StructField], str]) -> FoundColumn | None:
    for field in schema.fields:
        if name_of(field) == wanted:
            return FoundColumn((field.name,), (physical_name(field),), field.dataType)
    for field in schema.fields:
        start = name_of(field) + "."
        if isinstance(field.dataType, StructType) and wanted.startswith(start):
            inner = _find(field.dataType, wanted[len(start) :], name_of)
            if inner is not None:
                return FoundColumn(
                    (field.name, *inner.path), (physical_name(field), *inner.stored_path), inner.data_type
                )
    return None
