"""Finding columns, nested ones included, by the name users give and by the name they are stored under.

A name may be quoted as in SQL: parts in backquotes are taken literally, with a backquote doubled, so that a column
may hold commas, colons, dots and backquotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from catalog.errors import UnknownNameError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

AUTOMATIC = "auto"
"""In place of index columns, the word for columns that the service chooses; a column of this name is in backquotes."""
DECLARED_TYPE_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""In the metadata of a field of strings, the type that was declared: CHAR(n) or VARCHAR(n)."""
PHYSICAL_NAME_KEY = "delta.columnMapping.physicalName"
"""In the metadata of a field, the name under which column mapping stores it."""

_NEEDS_QUOTES = re.compile(r"[.`*,:]|^\s|\s$|^$")
# A part of a quoted name, and what ends it.
_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.]+))\s*(\.|$)")


@dataclass(frozen=True)
class FoundColumn:
    """A column of a schema.

    Attributes:
        path: logical names from the top-level column to the field.
        stored_path: the same names as column mapping stores them.
        data_type: its type.
        is_padded: whether Spark pads its values when it reads them: those of CHAR(n).
    """

    path: tuple[str, ...]
    stored_path: tuple[str, ...]
    data_type: DataType
    is_padded: bool = False

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
        """The parts joined by dots, for messages."""
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
    return ".".join(_in_backquotes(part) if _NEEDS_QUOTES.search(part) else part for part in parts)


def quoted_name(name: str) -> str:
    """The name of a top-level column as ``F.col`` reads it, whatever letters it has."""
    return _in_backquotes(name)


def _in_backquotes(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


def physical_name(field: StructField) -> str:
    """The name under which column mapping stores a field; its own name without mapping."""
    return str((field.metadata or {}).get(PHYSICAL_NAME_KEY, field.name))


def _lower_name(field: StructField) -> str:
    return field.name.lower()


def find_column(schema: StructType, name: str) -> FoundColumn | None:
    """The column of a logical name, in any case.

    Args:
        schema: logical schema.
        name: such as ``a``, ``s.x``, or with quoted parts ``s.`x.y` ``. Without quotes, a top-level name that holds
            dots wins over a path.
    """
    parts = _quoted_parts(name.lower())
    column = None if parts is None else _find_path(schema, parts, _lower_name)
    return column or next(_all_of(schema, name.lower(), _lower_name), None)


def written_name(schema: StructType, column: FoundColumn) -> str:
    """The name of a column that ``find_column`` leads back to the column, as properties and procedures take it."""
    resolved = find_column(schema, column.name)
    if resolved is not None and resolved.path == column.path and column.name.lower() != AUTOMATIC:
        return column.name
    return quoted_path(column)


def quoted_path(column: FoundColumn) -> str:
    """The name of a column with each part in backquotes, which no other column has."""
    return ".".join(_in_backquotes(part) for part in column.path)


def is_in(name: str, columns: Collection[str]) -> bool:
    """Whether a name may lead to one of some top-level columns, or into it.

    Args:
        name: as users write it.
        columns: top-level names in lower case.
    """
    lower = name.lower()
    parts = _quoted_parts(lower)
    return parts[0] in columns if parts else lower in columns or lower.split(".")[0] in columns


def split_names(text: str) -> list[tuple[str, str]]:
    """Splits a list of columns such as ``a, `b,c`:hashing``.

    Args:
        text: names separated by commas, each with its transformation after a colon if it has one. A part of a name
            that begins with a backquote ends with one.

    Returns:
        Each name as written, and its transformation ('' when it has none), without blanks around them.

    Raises:
        ValueError: a backquote is not closed, or nothing follows a colon.
    """
    entries = []
    for entry in _split(text, ","):
        name, *kind = (piece.strip() for piece in _split(entry, ":", most=1))
        if kind == [""]:
            raise ValueError(f"the transformation of '{name}' is missing after the colon")
        entries.append((name, kind[0] if kind else ""))
    return entries


def _split(text: str, separator: str, most: int | None = None) -> list[str]:
    """Splits at separators that are not between backquotes."""
    pieces: list[str] = []
    start, position, at_start = 0, 0, True
    while position < len(text):
        character = text[position]
        if character == "`" and at_start:
            position = _closing(text, position)
        elif character == separator and (most is None or len(pieces) < most):
            pieces.append(text[start:position])
            start = position + 1
        # Elsewhere a backquote is a letter like others.
        at_start = character in (separator, ".") or (at_start and character.isspace())
        position += 1
    return [*pieces, text[start:]]


def _closing(text: str, opening: int) -> int:
    """Where the backquote is that closes one; two in a row stand for a letter of the name."""
    position = opening + 1
    while position < len(text):
        if text[position] == "`":
            if text[position + 1 : position + 2] != "`":
                return position
            position += 1
        position += 1
    raise ValueError(f"the backquote at position {opening + 1} is not closed")


def _quoted_parts(name: str) -> tuple[str, ...] | None:
    """The parts of a name that has backquotes; None where it has none, or is not quoted as SQL quotes."""
    if "`" not in name:
        return None
    parts, position = [], 0
    while True:
        match = _PART.match(name, position)
        if match is None:
            return None
        parts.append(match[1].replace("``", "`") if match[1] else match[2].strip())
        if match[3] == "":
            return tuple(parts)
        position = match.end()


def _find_path(schema: StructType, names: tuple[str, ...], name_of: Callable[[StructField], str]) -> FoundColumn | None:
    """The column that these names lead to, one for each level."""
    field = next((f for f in schema.fields if name_of(f) == names[0]), None)
    if field is None:
        return None
    if len(names) == 1:
        return column_of(field)
    struct = _as_struct(field.dataType)
    inner = None if struct is None else _find_path(struct, names[1:], name_of)
    return inner and _within(field, inner)


def _as_struct(data_type: DataType) -> StructType | None:
    """The type as a struct, None for any other type; told by its fields, because Spark may be missing."""
    return cast("StructType", data_type) if hasattr(data_type, "fields") else None


def column_of(field: StructField) -> FoundColumn:
    """The column that a top-level field is."""
    is_padded = str((field.metadata or {}).get(DECLARED_TYPE_KEY, "")).lower().startswith("char")
    return FoundColumn((field.name,), (physical_name(field),), field.dataType, is_padded)


def _within(field: StructField, inner: FoundColumn) -> FoundColumn:
    path, stored_path = (field.name, *inner.path), (physical_name(field), *inner.stored_path)
    return replace(inner, path=path, stored_path=stored_path)


def find_stored(schema: StructType, stored: str) -> FoundColumn | None:
    """The column that a revision names; None if there is none, or if the name does not tell several apart."""
    found = columns_stored_as(schema, stored)
    return found[0] if len(found) == 1 else None


def columns_stored_as(schema: StructType, stored: str) -> list[FoundColumn]:
    """All columns that a revision calls so, top-level ones first.

    More than one after a column was added: which of them was indexed is not known any more.
    """
    return list(_all_of(schema, stored, physical_name))


def has_physical_names(schema: StructType) -> bool:
    """Whether column mapping has named the columns."""
    return any(PHYSICAL_NAME_KEY in (field.metadata or {}) for field in schema.fields)


def find_path(schema: StructType, stored_path: tuple[str, ...]) -> FoundColumn | None:
    """The column that is stored under these names, one for each level."""
    return _find_path(schema, stored_path, physical_name)


def column_stored_as(schema: StructType, physical: str) -> FoundColumn:
    """The column stored as ``physical``.

    Raises:
        UnknownNameError: the schema has no such column.
    """
    column = find_stored(schema, physical)
    if column is None:
        raise UnknownNameError.of("column", physical, schema.names)
    return column


def logical_name(schema: StructType, physical: str) -> str:
    """The current name, as ``F.col`` reads it, of the column stored as ``physical``.

    Raises:
        UnknownNameError: the schema has no such column.
    """
    return column_stored_as(schema, physical).name


def shown_name(schema: StructType, stored: str) -> str:
    """The current name of an indexed column, to show; the stored name if the column was dropped."""
    column = find_stored(schema, stored)
    return stored if column is None else column.name


def _all_of(schema: StructType, wanted: str, name_of: Callable[[StructField], str]) -> Iterator[FoundColumn]:
    """The columns whose names, joined by dots, are the wanted one; those of the upper level come first."""
    for field in schema.fields:
        if name_of(field) == wanted:
            yield column_of(field)
    for field in schema.fields:
        start = name_of(field) + "."
        struct = _as_struct(field.dataType)
        if struct is not None and wanted.startswith(start):
            for inner in _all_of(struct, wanted[len(start) :], name_of):
                yield _within(field, inner)
